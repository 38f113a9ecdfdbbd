package rego

import (
	"maps"
	"slices"
)

// fake is a module made by hand: what OPA's ABI asks for, with functions that do no more than needed.
type fake struct {
	funcs    map[string][]byte // code by name, instead of or besides the usual; nil: the function is not there
	texts    map[uint32]string // at addresses of the memory
	imports  []byte            // besides OPA's
	extra    int               // functions among them
	version  []int             // of the ABI
	start    bool              // the function start is called first
	sections []byte            // at the end
	exported map[string]signature
}

// Addresses of texts.
const (
	atBuiltins    = 1024
	atEntrypoints = 2048
	atResult      = 4096
	atHeap        = 16384
)

// Functions that a module imports, in the order of hostFuncs.
const (
	callAbort    = 0
	callBuiltin0 = 2
	callBuiltin1 = 3
)

// usual is the code of the functions: builtins and entrypoints give texts, a value is its own text, and
// memory is given out from a global.
func usual() map[string][]byte {
	get0 := []byte{0x20, 0}
	return map[string][]byte{
		"builtins": constant(atBuiltins), "entrypoints": constant(atEntrypoints), "opa_eval": constant(atResult),
		"opa_json_dump": get0, "opa_value_dump": get0, "opa_json_parse": get0, "opa_value_parse": get0,
		"opa_malloc":       {0x23, 0, 0x23, 0, 0x20, 0, 0x6a, 0x24, 0}, // global.get 0 twice, local.get 0, i32.add, global.set 0
		"opa_heap_ptr_get": {0x23, 0}, "opa_heap_ptr_set": {0x20, 0, 0x24, 0},
	}
}

// constant is i32.const: its number is signed.
func constant(n uint32) []byte {
	b := []byte{0x41}
	for rest := int32(n); ; {
		c := byte(rest & 0x7f)
		rest >>= 7
		if rest == 0 && c < 0x40 || rest == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func code(parts ...[]byte) []byte { return slices.Concat(parts...) }

// store writes a byte.
func store(addr uint32, c byte) []byte {
	return code(constant(addr), constant(uint32(c)), []byte{0x3a, 0, 0})
}

func (f fake) encode() []byte {
	funcs := usual()
	maps.Copy(funcs, f.funcs)
	maps.DeleteFunc(funcs, func(_ string, b []byte) bool { return b == nil })
	names := slices.Sorted(maps.Keys(funcs))
	b := []byte("\x00asm\x01\x00\x00\x00")
	var types []byte
	for n := range 16 { // n/2 parameters and n%2 results
		types = append(append(types, 0x60, byte(n/2)), slices.Repeat([]byte{0x7f}, n/2)...)
		types = append(append(types, byte(n%2)), slices.Repeat([]byte{0x7f}, n%2)...)
	}
	var imports []byte
	for _, h := range hostFuncs {
		imports = append(wasmName(wasmName(imports, "env"), h.name), kindFunc, byte(h.params*2+h.results))
	}
	imports = append(wasmName(wasmName(imports, "env"), "memory"), kindMemory, 0, 2)
	more := 0
	if f.imports != nil {
		imports, more = append(imports, f.imports...), 1
	}
	b = wasmSection(b, 1, 16, types)
	b = wasmSection(b, 2, len(hostFuncs)+1+more, imports)
	var declared, exports, bodies []byte
	for i, name := range names {
		s := f.signature(name)
		index := len(hostFuncs) + f.extra + i
		declared = append(declared, byte(s.params*2+s.results))
		exports = append(wasmName(exports, name), kindFunc, byte(index))
		body := append(append([]byte{0}, funcs[name]...), 0x0b)
		bodies = append(leb(bodies, uint32(len(body))), body...)
	}
	version := f.version
	if version == nil {
		version = []int{1, 3}
	}
	globals := append(append([]byte{0x7f, 1}, constant(atHeap)...), 0x0b)
	for i, n := range version {
		globals = append(append(append(globals, 0x7f, 0), constant(uint32(n))...), 0x0b)
		exports = append(wasmName(exports, []string{"opa_wasm_abi_version", "opa_wasm_abi_minor_version"}[i]), kindGlobal, byte(i+1))
	}
	b = wasmSection(b, 3, len(names), declared)
	b = wasmSection(b, 6, 1+len(version), globals)
	b = wasmSection(b, 7, len(names)+len(version), exports)
	if f.start {
		b = wasmSection(b, 8, len(hostFuncs)+slices.Index(names, "start"), nil)
	}
	b = wasmSection(b, 10, len(names), bodies)
	return append(f.data(b), f.sections...)
}

func (f fake) signature(name string) signature {
	for _, list := range []map[string]signature{f.exported, required, optional} {
		if s, is := list[name]; is {
			return s
		}
	}
	return signature{}
}

func (f fake) data(b []byte) []byte {
	texts := map[uint32]string{atBuiltins: `{}`, atEntrypoints: `{"gate/decision": 0}`, atResult: `{{"result": true}}`}
	maps.Copy(texts, f.texts)
	var data []byte
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		data = append(append(append(data, 0), constant(at)...), 0x0b)
		data = append(leb(data, uint32(len(texts[at])+1)), texts[at]+"\x00"...)
	}
	return wasmSection(b, 11, len(texts), data)
}

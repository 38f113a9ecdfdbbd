package rego

import "fmt"

// imports are the functions that OPA's modules import from env, with the number of their parameters and
// results, all i32. The order is that of the types in the binary below.
var hostFuncs = []struct {
	name            string
	params, results int
}{
	{"opa_abort", 1, 0}, {"opa_println", 1, 0},
	{"opa_builtin0", 2, 1}, {"opa_builtin1", 3, 1}, {"opa_builtin2", 4, 1}, {"opa_builtin3", 5, 1}, {"opa_builtin4", 6, 1},
}

// hostModule is the name of the module with the functions in Go.
const hostModule = "host"

// glue is the module env: OPA's modules import the memory and the functions from it, and functions in Go
// cannot be in one module with a memory. It has the memory, imports the functions and exports all.
func glue(least, most uint32) []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	var types, imports, exports []byte
	for i, f := range hostFuncs {
		types = append(types, 0x60)
		for _, n := range []int{f.params, f.results} {
			types = append(types, byte(n))
			for range n {
				types = append(types, 0x7f) // i32
			}
		}
		imports = append(wasmName(wasmName(imports, hostModule), f.name), kindFunc, byte(i))
		exports = append(wasmName(exports, f.name), kindFunc, byte(i))
	}
	exports = append(wasmName(exports, "memory"), kindMemory, 0)
	memory := leb(leb([]byte{1}, least), most) // 1: with a maximum
	b = wasmSection(b, 1, len(hostFuncs), types)
	b = wasmSection(b, 2, len(hostFuncs), imports)
	b = wasmSection(b, 5, 1, memory)
	return wasmSection(b, 7, len(hostFuncs)+1, exports)
}

func leb(b []byte, n uint32) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func wasmName(b []byte, name string) []byte { return append(leb(b, uint32(len(name))), name...) }

func wasmSection(b []byte, id byte, entries int, body []byte) []byte {
	body = append(leb(nil, uint32(entries)), body...)
	return append(leb(append(b, id), uint32(len(body))), body...)
}

// strangers are the imports of a module that OPA's do not have, as words.
func strangers(imports []imported) (list []string) {
next:
	for _, i := range imports {
		if i.module == "env" && i.kind == kindMemory && i.name == "memory" {
			continue
		}
		for _, f := range hostFuncs {
			if i.module == "env" && i.kind == kindFunc && i.name == f.name {
				continue next
			}
		}
		list = append(list, fmt.Sprintf("%s %s", kindNames[i.kind], shown(i.module+"."+i.name)))
	}
	return list
}

package rego

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// signature is the number of parameters and results of an exported function, all i32.
type signature struct{ params, results int }

// required are the functions that every module has; one of ways is how it is evaluated.
var (
	required = map[string]signature{
		"builtins": {0, 1}, "entrypoints": {0, 1}, "opa_malloc": {1, 1}, "opa_json_parse": {2, 1}, "opa_json_dump": {1, 1},
		"opa_heap_ptr_get": {0, 1}, "opa_heap_ptr_set": {1, 0},
	}
	optional = map[string]signature{
		"opa_value_parse": {2, 1}, "opa_value_dump": {1, 1}, "opa_free": {1, 0}, "opa_eval": {7, 1},
		"eval": {1, 1}, "opa_eval_ctx_new": {0, 1}, "opa_eval_ctx_set_input": {2, 0}, "opa_eval_ctx_set_data": {2, 0},
		"opa_eval_ctx_set_entrypoint": {2, 0}, "opa_eval_ctx_get_result": {1, 1},
	}
)

// checkExports finds out that the functions of the ABI are there, and are what they should be.
func checkExports(code wazero.CompiledModule) error {
	if len(code.ImportedMemories()) != 1 {
		return errors.New("the module does not import the memory env.memory, as OPA's modules do")
	}
	exports := code.ExportedFunctions()
	for name, want := range required {
		if exports[name] == nil {
			return fmt.Errorf("the module has no function %s, as OPA's modules do", name)
		}
		if !want.is(exports[name]) {
			return fmt.Errorf("the function %s of the module has other parameters than OPA's", name)
		}
	}
	for name, want := range optional {
		if exports[name] != nil && !want.is(exports[name]) {
			return fmt.Errorf("the function %s of the module has other parameters than OPA's", name)
		}
	}
	return nil
}

func (s signature) is(f api.FunctionDefinition) bool {
	for _, t := range append(f.ParamTypes(), f.ResultTypes()...) {
		if t != api.ValueTypeI32 {
			return false
		}
	}
	return len(f.ParamTypes()) == s.params && len(f.ResultTypes()) == s.results
}

// instance is a module with a memory of its own, for one evaluation.
type instance struct {
	ctx      context.Context
	policy   *Policy
	env, mod api.Module
	mem      api.Memory
	data     uint32 // address of the data document
	working  bool   // a builtin is at work
}

// start makes an instance. It is the current one until it is closed.
func (p *Policy) start(ctx context.Context) (*instance, error) {
	i := &instance{ctx: ctx, policy: p}
	p.current = i
	memory := p.code.ImportedMemories()[0]
	most := p.pages()
	if own, has := memory.Max(); has {
		most = min(most, own)
	}
	var err error
	if i.env, err = p.runtime.InstantiateWithConfig(ctx, glue(memory.Min(), most), wazero.NewModuleConfig().WithName("env")); err == nil {
		i.mem = i.env.ExportedMemory("memory")
		i.mod, err = p.runtime.InstantiateModule(ctx, p.code, wazero.NewModuleConfig().WithName("policy").WithStartFunctions())
	}
	if err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (i *instance) close() {
	for _, m := range []api.Module{i.mod, i.env} {
		if m != nil {
			m.Close(context.Background())
		}
	}
	i.policy.current = nil
}

func (i *instance) has(names ...string) bool {
	for _, name := range names {
		if i.mod.ExportedFunction(name) == nil {
			return false
		}
	}
	return true
}

// call calls a function of the module.
func (i *instance) call(name string, args ...uint32) (uint32, error) {
	stack := make([]uint64, max(len(args), 1))
	for n, a := range args {
		stack[n] = uint64(a)
	}
	f := i.mod.ExportedFunction(name)
	if f == nil {
		return 0, fmt.Errorf("the module has no function %s", name)
	}
	if err := f.CallWithStack(i.ctx, stack); err != nil {
		return 0, err
	}
	return uint32(stack[0]), nil
}

// checkVersion finds out that the module has a version of the ABI that this package knows.
func (p *Policy) checkVersion(i *instance) error {
	version, minor := i.mod.ExportedGlobal("opa_wasm_abi_version"), i.mod.ExportedGlobal("opa_wasm_abi_minor_version")
	if version == nil {
		return &Error{errors.New("the module does not say its version, opa_wasm_abi_version, as OPA's modules do"), buildHint}
	}
	m := uint32(0)
	if minor != nil {
		m = uint32(minor.Get())
	}
	if v := uint32(version.Get()); v != 1 || m > 3 {
		return &Error{fmt.Errorf("the module has version %d.%d of OPA's ABI, expected 1.0 to 1.3", v, m), buildHint}
	}
	return nil
}

// text is the text at an address, which ends with a zero byte.
func (i *instance) text(addr uint32, what string) (string, error) {
	most := uint32(i.policy.options.Result)
	size := i.mem.Size()
	if addr == 0 || addr >= size {
		return "", faultf("the module gives %s at address %d of %d bytes of memory", what, addr, size)
	}
	n := min(size-addr, most+1)
	b, _ := i.mem.Read(addr, n)
	end := bytes.IndexByte(b, 0)
	switch {
	case end >= 0:
		return string(b[:end]), nil
	case n > most:
		return "", faultf("%s has more than %d bytes", what, most)
	}
	return "", faultf("%s has no end in the memory of the module", what)
}

// put writes a text to the memory of the module.
func (i *instance) put(s, what string) (uint32, error) {
	addr, err := i.call("opa_malloc", uint32(len(s)))
	if err != nil {
		return 0, err
	}
	if addr == 0 && len(s) > 0 || !i.mem.WriteString(addr, s) {
		return 0, faultf("the module gives %d bytes at address %d of %d for %s", len(s), addr, i.mem.Size(), what)
	}
	return addr, nil
}

// value makes a value of the module from its text.
func (i *instance) value(s, what string) (uint32, error) {
	at, err := i.put(s, what)
	if err != nil {
		return 0, err
	}
	parse := "opa_json_parse"
	if i.has("opa_value_parse") {
		parse = "opa_value_parse"
	}
	v, err := i.call(parse, at, uint32(len(s)))
	if err == nil && v == 0 {
		err = faultf("the module does not take %s", what)
	}
	return v, err
}

// dumped is the text of a value of the module.
func (i *instance) dumped(v uint32, what string) (string, error) {
	dump := "opa_json_dump"
	if i.has("opa_value_dump") {
		dump = "opa_value_dump"
	}
	at, err := i.call(dump, v)
	if err != nil {
		return "", err
	}
	s, err := i.text(at, what)
	if err == nil && i.has("opa_free") {
		_, err = i.call("opa_free", at)
	}
	return s, err
}

// names reads a map from names to numbers that a function of the module gives.
func (i *instance) names(function string) (map[string]uint32, error) {
	at, err := i.call(function)
	if err != nil {
		return nil, err
	}
	what := "the list of " + function
	s, err := i.dumped(at, what)
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(s)
	if err != nil {
		return nil, faultf("%s: %s", what, err)
	}
	o, is := v.(object)
	if !is {
		return nil, faultf("%s is no object", what)
	}
	names := map[string]uint32{}
	for _, m := range o {
		n, _ := m.value.(json.Number)
		id, err := strconv.ParseInt(string(n), 10, 32)
		if err != nil {
			return nil, faultf("%s has no number for %s", what, shown(m.key.(string)))
		}
		names[m.key.(string)] = uint32(id)
	}
	return names, nil
}

package rego

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// short is for modules that do not end; the others have long, since machines can be slow.
const short, long = 300 * time.Millisecond, 2 * time.Minute

// try loads a module and evaluates it, within little.
func try(wasm []byte, most time.Duration) (string, error) {
	limits := Limits{Memory: 1 << 20, Time: most, Result: 1 << 16}
	p, err := Load(context.Background(), wasm, nil, Options{Limits: limits})
	if err != nil {
		return "", err
	}
	defer p.Close()
	b, err := p.Eval(context.Background(), []byte(`{"a": 1}`))
	return string(b), err
}

// loop does something for ever.
func loop(body ...byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, body, []byte{0x0c, 0, 0x0b})
}

var (
	unreachable = []byte{0x00}
	grow        = []byte{0x41, 1, 0x40, 0, 0x1a}                                                // memory.grow by one page, drop
	growOrTrap  = []byte{0x41, 1, 0x40, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b}            // trap if it fails
	abort       = func(at uint32) []byte { return code(constant(at), []byte{0x10, callAbort}) } // and go on
	builtin0    = func(id uint32) []byte { return code(constant(id), constant(0), []byte{0x10, callBuiltin0}) }
)

func eval1(parts ...[]byte) map[string][]byte { return map[string][]byte{"opa_eval": code(parts...)} }

// last byte of the memory that a module begins with.
const last = 2*pageSize - 1

var zero = constant(0)

// hostile are modules, and what is said about them.
var hostile = map[string]struct {
	module fake
	want   string
}{
	"loop":                  {fake{funcs: eval1(loop(), zero)}, "the policy did not end within 300ms"},
	"loop of builtins":      {fake{funcs: map[string][]byte{"builtins": code(loop(), zero)}}, "the policy did not end within 300ms"},
	"loop at the start":     {fake{funcs: map[string][]byte{"start": loop()}, start: true}, "the policy did not end within 300ms"},
	"trap":                  {fake{funcs: eval1(unreachable)}, "the policy failed: wasm error: unreachable"},
	"division":              {fake{funcs: eval1(zero, zero, []byte{0x6d})}, "integer divide by zero"},
	"memory for ever":       {fake{funcs: eval1(loop(grow...), zero)}, "the policy did not end within 300ms"},
	"memory to the end":     {fake{funcs: eval1(loop(growOrTrap...), zero)}, "unreachable"},
	"recursion":             {fake{funcs: eval1([]byte{0x20, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0x10, 7 + 2})}, "stack overflow"},
	"read outside":          {fake{funcs: eval1(constant(last), []byte{0x28, 0, 0})}, "out of bounds memory access"},
	"abort":                 {fake{funcs: eval1(abort(5000), zero), texts: map[uint32]string{5000: "no \x1b[31mmore"}}, `the policy gave up: no \x1b[31mmore`},
	"abort outside":         {fake{funcs: eval1(abort(1<<30), zero)}, "the policy gave up, and the module gives the reason of an abort at address 1073741824 of"},
	"abort without an end":  {fake{funcs: eval1(store(last, 'x'), abort(last), zero)}, "the reason of an abort has no end"},
	"result outside":        {fake{funcs: eval1(constant(1 << 31))}, "the module gives the result at address 2147483648 of 131072 bytes"},
	"result at -1":          {fake{funcs: eval1(constant(1<<32 - 1))}, "the result at address 4294967295"},
	"result at the end":     {fake{funcs: eval1(constant(last + 1))}, "the result at address 131072"},
	"no result":             {fake{funcs: eval1(zero)}, "the result at address 0"},
	"result without an end": {fake{funcs: eval1(store(last, 'x'), constant(last))}, "the result has no end in the memory"},
	"result too long":       {fake{texts: map[uint32]string{atHeap * 2: strings.Repeat("x", 1<<16+1)}, funcs: eval1(constant(atHeap * 2))}, "the result has more than 65536 bytes"},
	"result is no value":    {fake{texts: map[uint32]string{atResult: "{{"}}, "the result is no value of Rego"},
	"result is deep":        {fake{texts: map[uint32]string{atResult: strings.Repeat("[", 600)}}, "in more than 500"},
	"malloc outside":        {fake{funcs: map[string][]byte{"opa_malloc": constant(1 << 30)}}, "the module gives 2 bytes at address 1073741824 of 131072 for the data document"},
	"malloc at 0":           {fake{funcs: map[string][]byte{"opa_malloc": zero}}, "at address 0"},
	"no data":               {fake{funcs: map[string][]byte{"opa_value_parse": zero}}, "the module does not take the data document"},
	"builtins are a list":   {fake{texts: map[uint32]string{atBuiltins: "[1]"}}, "the list of builtins is no object"},
	"builtins have words":   {fake{texts: map[uint32]string{atBuiltins: `{"sprintf": "x"}`}}, "the list of builtins has no number for sprintf"},
	"builtins are twice":    {fake{texts: map[uint32]string{atBuiltins: `{"a": 1, "a": 2}`}}, "is there twice"},
	"no entrypoint":         {fake{texts: map[uint32]string{atEntrypoints: `{}`}}, "the module has no entrypoint"},
	"strange builtin":       {fake{funcs: eval1(builtin0(9))}, "the module calls builtin 9, which it did not name"},
	"other arguments":       {fake{funcs: eval1(builtin0(9)), texts: map[uint32]string{atBuiltins: `{"sprintf": 9}`}}, "the module calls sprintf with 0 arguments, expected 2"},
	"builtin in a builtin": {fake{texts: map[uint32]string{atBuiltins: `{"hex.encode": 3}`}, funcs: map[string][]byte{
		"opa_value_dump": code([]byte{0x20, 0}, []byte{0x41, 0x81, 0x20, 0x46, 0x04, 0x7f}, constant(3), constant(0), constant(4097), []byte{0x10, callBuiltin1, 0x05, 0x20, 0, 0x0b}),
		"opa_eval":       code(constant(3), constant(0), constant(4097), []byte{0x10, callBuiltin1})}}, "the module calls hex.encode while a builtin is at work"},
	"builtin at the start": {fake{funcs: map[string][]byte{"start": code(builtin0(1), []byte{0x1a})}, start: true}, "the module calls opa_builtin0 before it is started"},
	"refused builtins": {fake{texts: map[uint32]string{atBuiltins: `{"http.send": 1, "frob": 2, "sprintf": 3, "rand.intn": 4, "time.now_ns": 5}`}},
		"the policy needs what cannot be had here: frob (it is not known here), http.send (the network is not part of the input), rand.intn (it is random), time.now_ns (the clock is not part of the input)"},
	"too old for sets":   {fake{version: []int{1, 0}, funcs: map[string][]byte{"opa_value_dump": nil, "opa_value_parse": nil}, texts: map[uint32]string{atBuiltins: `{"sprintf": 1}`}}, "is too old to tell a set from an array"},
	"no version":         {fake{version: []int{}}, "the module does not say its version"},
	"later version":      {fake{version: []int{1, 4}}, "the module has version 1.4 of OPA's ABI, expected 1.0 to 1.3"},
	"other version":      {fake{version: []int{2, 0}}, "the module has version 2.0"},
	"no malloc":          {fake{funcs: map[string][]byte{"opa_malloc": nil}}, "the module has no function opa_malloc"},
	"other signature":    {fake{exported: map[string]signature{"opa_eval": {6, 1}}}, "the function opa_eval of the module has other parameters"},
	"no way to evaluate": {fake{funcs: map[string][]byte{"opa_eval": nil}}, "the module has no function opa_eval_ctx_new"},
	"imports of WASI":    {fake{extra: 1, imports: append(wasmName(wasmName(nil, "wasi_snapshot_preview1"), "fd_write"), kindFunc, 9)}, "imports what OPA's modules do not: function wasi_snapshot_preview1.fd_write"},
	"import of a global": {fake{imports: append(wasmName(wasmName(nil, "env"), "x"), kindGlobal, 0x7f, 0)}, "imports what OPA's modules do not: global env.x"},
	"import of a table":  {fake{imports: append(wasmName(wasmName(nil, "env"), "t"), kindTable, 0x70, 0, 1)}, "table env.t"},
	"bad code":           {fake{funcs: eval1([]byte{0x6a})}, "the module is not valid WebAssembly"},
}

// TestHostile: whatever a module does is an error with its reason.
func TestHostile(t *testing.T) {
	for name, c := range hostile {
		most := long
		if strings.Contains(c.want, short.String()) {
			most = short
		}
		got, err := try(c.module.encode(), most)
		var e *Error
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !errors.As(err, &e) {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	if got, err := try(fake{}.encode(), long); got != "true" || err != nil {
		t.Errorf("the module without a fault: %s %v", got, err)
	}
}

// TestOldABI: modules before 1.2 are evaluated in steps, and those before 1.1 have JSON only.
func TestOldABI(t *testing.T) {
	steps := map[string][]byte{"opa_eval": nil, "eval": constant(0), "opa_eval_ctx_new": constant(64), "opa_eval_ctx_set_input": {},
		"opa_eval_ctx_set_data": {}, "opa_eval_ctx_set_entrypoint": {}, "opa_eval_ctx_get_result": constant(atResult)}
	if got, err := try(fake{version: []int{1, 1}, funcs: steps}.encode(), long); got != "true" || err != nil {
		t.Errorf("1.1: %s %v", got, err)
	}
	steps["opa_value_dump"], steps["opa_value_parse"] = nil, nil
	old := fake{version: []int{1, 0}, funcs: steps, texts: map[uint32]string{atResult: `[{"result": [1]}]`}}
	if got, err := try(old.encode(), long); got != "[1]" || err != nil {
		t.Errorf("1.0: %s %v", got, err)
	}
	steps["eval"] = constant(3)
	if _, err := try(old.encode(), long); err == nil || err.Error() != "the policy ended with error 3" {
		t.Error(err)
	}
}

// TestNoState: what an evaluation leaves in memory and globals is not there in the next one.
func TestNoState(t *testing.T) {
	// if memory[5000] != 0 { return 6000 } else { memory[5000] = 1; return the usual }
	counts := eval1(constant(5000), []byte{0x2d, 0, 0, 0x04, 0x7f}, constant(6000), []byte{0x05}, store(5000, 1), constant(atResult), []byte{0x0b})
	wasm := fake{funcs: counts, texts: map[uint32]string{6000: `{{"result": false}}`}}.encode()
	p, err := Load(context.Background(), wasm, nil, Options{})
	testkit.Must(t, err)
	defer p.Close()
	for range 3 {
		if got := eval(t, p, "{}"); got != "true" {
			t.Error(got)
		}
	}
}

// TestScan: a module that announces more than it has, or than a module may have, takes no memory.
func TestScan(t *testing.T) {
	head := "\x00asm\x01\x00\x00\x00"
	huge := string(leb(nil, 1<<32-1))
	for name, c := range map[string]struct{ wasm, want string }{
		"empty":          {"", "does not begin as a WebAssembly module"},
		"text":           {"package gate", "does not begin"},
		"component":      {"\x00asm\x0d\x00\x01\x00", "does not begin"},
		"section":        {head + "\x01" + huge, "4294967295 bytes are announced, there are 0"},
		"types":          {section(1, huge), "section type: 4294967295 entries"},
		"parameters":     {section(1, "\x01\x60"+huge), "parameters or results"},
		"imports":        {section(2, huge), "section import: 4294967295 entries"},
		"import name":    {section(2, "\x01"+huge), "bytes are announced"},
		"functions":      {section(3, huge), "section function: 4294967295 entries"},
		"table":          {section(4, "\x01\x70\x00"+huge), "a table of 4294967295 functions"},
		"memory":         {section(5, "\x01\x00\x01"), "a memory of its own"},
		"globals":        {section(6, huge), "section global: 4294967295 entries"},
		"exports":        {section(7, huge), "section export: 4294967295 entries"},
		"elements":       {section(9, "\x01\x00\x41\x00\x0b"+huge), "4294967295 elements"},
		"code":           {section(10, huge), "section code: 4294967295 entries"},
		"locals":         {section(10, "\x01\x08\x01"+huge+"\x7f\x0b"), "a function with 4294967295 variables"},
		"data":           {section(11, "\x01\x00\x41\x00\x0b"+huge), "bytes are announced"},
		"unknown":        {section(13, ""), "section 13 is not known"},
		"rest":           {section(3, "\x00\x00"), "1 bytes after the end of section 3"},
		"long number":    {section(3, "\x80\x80\x80\x80\x80\x00"), "a number of more than 5 bytes"},
		"global of func": {section(6, "\x01\x70\x00\xd2\x00\x0b"), "instruction 0xd2, expected a constant"},
		"name not UTF-8": {section(7, "\x01\x01\xff\x00\x00"), "a name that is not UTF-8"},
		"much code":      {section(10, strings.Repeat("\x00", maxCode+1)), "bytes of code, expected at most"},
	} {
		_, err := try([]byte(c.wasm), long)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func section(id byte, body string) string {
	return "\x00asm\x01\x00\x00\x00" + string(append(leb([]byte{id}, uint32(len(body))), body...))
}

// TestDamaged: no cut and no changed byte of a module is more than an error.
func TestDamaged(t *testing.T) {
	wasm := fake{}.encode()
	for i := range wasm {
		if _, err := try(wasm[:i], short); err == nil {
			t.Errorf("cut after %d bytes: no error", i)
		}
		for _, c := range []byte{wasm[i] ^ 1, wasm[i] ^ 0x80, 0, 0xff} {
			changed := slices.Clone(wasm)
			changed[i] = c
			try(changed, short)
		}
	}
}

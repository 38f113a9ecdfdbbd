// Package rego runs a policy in Rego that OPA compiled to WebAssembly.
//
// It is OPA's ABI 1.0 to 1.3 (https://www.openpolicyagent.org/docs/wasm), on an interpreter: a policy runs
// once in a process, and the interpreter is ready in a tenth of the time that a compiler takes
// (BenchmarkOnce). A decision is a function of the module, the data and the input. So each evaluation has
// an instance of its own, and what depends on anything else (a clock, a random number, the network) is
// refused when the module is loaded. The zones of time.* are those of the machine, and where it has none
// those that the Go toolchain has.
//
// A module is not trusted: its memory, time and sizes are bounded, and whatever it does is an error in words.
// OPA's own compiler cannot be bounded from here; compile policies where you trust their text.
package rego

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// Limits bound what a policy may take. A zero is the default.
type Limits struct {
	Wasm   int           // bytes of the module; 16 MiB
	Data   int           // bytes of the data document; 8 MiB
	Input  int           // bytes of the input; 8 MiB
	Result int           // bytes of a result, and of each value that goes to a builtin; 4 MiB
	Memory int           // bytes of the module's memory; 64 MiB
	Time   time.Duration // for loading, and for each evaluation; 5 s
}

// Options choose what is evaluated, and how.
type Options struct {
	Limits
	Entrypoint string    // by its name, as gate/decision; empty: the only one
	Now        time.Time // what time.now_ns gives; zero: a policy that asks for the time is refused
}

// Error is what is wrong with a policy, its data or its input.
type Error struct {
	Err  error
	Hint string // what to type; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ErrUndefined is of an entrypoint that has no value for an input.
var ErrUndefined = errors.New("the policy has no decision for this input")

// buildHint is how a module is made.
const buildHint = "opa build -t wasm -e gate/decision policy.rego && tar -xzf bundle.tar.gz /policy.wasm"

// Policy is a loaded module with its data. Its methods may be called from several goroutines; one
// evaluation runs at a time.
type Policy struct {
	options     Options
	runtime     wazero.Runtime
	code        wazero.CompiledModule
	data        string // canonical JSON
	entrypoints map[string]uint32
	builtins    map[uint32]*builtin
	entry       uint32 // of the chosen entrypoint
	name        string // of it

	running sync.Mutex
	current *instance // that runs, or nil
	stuck   bool      // an evaluation did not end, and still runs
	closed  bool
}

// Load reads a module and its data document (JSON; nil is an empty object), and finds out that it can be
// evaluated here. The caller must Close the policy.
func Load(ctx context.Context, wasm, data []byte, options Options) (*Policy, error) {
	defaults(&options.Limits)
	if len(wasm) > options.Wasm {
		return nil, &Error{Err: fmt.Errorf("the module has %d bytes, expected at most %d", len(wasm), options.Wasm)}
	}
	if data == nil {
		data = []byte("{}")
	}
	text, err := document("the data document", data, options.Data)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(text, "{") {
		return nil, &Error{Err: errors.New("the data document is no JSON object"), Hint: `{"config": {"version": "1"}}`}
	}
	module, err := scan(wasm)
	if err != nil {
		return nil, &Error{fmt.Errorf("this is not a module that OPA makes: %w", err), buildHint}
	}
	if list := strangers(module.imports); len(list) > 0 {
		return nil, &Error{fmt.Errorf("the module imports what OPA's modules do not: %s", strings.Join(list, ", ")), buildHint}
	}
	p := &Policy{options: options, data: text}
	if err := p.bounded(ctx, func(ctx context.Context) error { return p.load(ctx, module) }); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// defaults fills in what is not set.
func defaults(l *Limits) {
	for n, value := range map[*int]int{&l.Wasm: 16 << 20, &l.Data: 8 << 20, &l.Input: 8 << 20, &l.Result: 4 << 20, &l.Memory: 64 << 20} {
		if *n <= 0 {
			*n = value
		}
	}
	if l.Time <= 0 {
		l.Time = 5 * time.Second
	}
}

// features are those of WebAssembly 1 and what compilers take for granted since; not the ones that make a
// table or a function a value, which the policy's table has no use for.
const features = api.CoreFeaturesV1 | api.CoreFeatureSignExtensionOps | api.CoreFeatureNonTrappingFloatToIntConversion |
	api.CoreFeatureMultiValue | api.CoreFeatureBulkMemoryOperations

const pageSize = 65536

// pages is the most memory that the module may have.
func (p *Policy) pages() uint32 { return uint32(min(max(p.options.Memory/pageSize, 1), 65536)) }

// load compiles the module, and asks it what it has and what it needs.
func (p *Policy) load(ctx context.Context, module *scanned) error {
	if module.pages > p.pages() {
		const pageKiB uint64 = pageSize >> 10
		return &Error{Err: fmt.Errorf("the module begins with %d KiB of memory, expected at most %d", uint64(module.pages)*pageKiB, uint64(p.pages())*pageKiB)}
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).
		WithMemoryLimitPages(p.pages()).WithCloseOnContextDone(true).WithDebugInfoEnabled(false))
	var err error
	if p.code, err = p.runtime.CompileModule(ctx, module.wasm); err != nil {
		return &Error{fmt.Errorf("the module is not valid WebAssembly: %s", firstLine(err)), buildHint}
	}
	if err := checkExports(p.code); err != nil {
		return &Error{err, buildHint}
	}
	if err := p.host(ctx); err != nil {
		return err
	}
	i, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer i.close()
	if err := p.checkVersion(i); err != nil {
		return err
	}
	if err := p.learn(i); err != nil {
		return err
	}
	return i.setData(p.data)
}

// learn reads the names of the module's entrypoints and of the builtins that it needs.
func (p *Policy) learn(i *instance) error {
	needed, err := i.names("builtins")
	if err != nil {
		return err
	}
	if p.entrypoints, err = i.names("entrypoints"); err != nil {
		return err
	}
	if p.builtins, err = p.resolve(needed); err != nil {
		return err
	}
	if len(needed) > 0 && !i.has("opa_value_dump", "opa_value_parse") {
		return &Error{errors.New("the module calls builtins, and is too old to tell a set from an array: opa_value_dump is missing"), buildHint}
	}
	return p.choose()
}

// choose finds the entrypoint of the options.
func (p *Policy) choose() error {
	names := p.Entrypoints()
	p.name = p.options.Entrypoint
	if p.name == "" && len(names) == 1 {
		p.name = names[0]
	}
	entry, is := p.entrypoints[p.name]
	if is {
		p.entry = entry
		return nil
	}
	var list []string
	for _, name := range names[:min(len(names), 20)] {
		list = append(list, shown(name))
	}
	switch {
	case len(names) == 0:
		return &Error{errors.New("the module has no entrypoint"), buildHint}
	case p.name == "":
		return &Error{fmt.Errorf("the module has %d entrypoints, and none is chosen: %s", len(names), strings.Join(list, ", ")), "--entrypoint " + list[0]}
	}
	return &Error{fmt.Errorf("the module has no entrypoint %s, it has: %s", shown(p.name), strings.Join(list, ", ")), "--entrypoint " + list[0]}
}

// Entrypoints are the names of what can be evaluated, sorted.
func (p *Policy) Entrypoints() []string { return slices.Sorted(maps.Keys(p.entrypoints)) }

// Entrypoint is the name of what Eval evaluates.
func (p *Policy) Entrypoint() string { return p.name }

// Builtins are the names of the builtins that the module takes from here, sorted.
func (p *Policy) Builtins() (names []string) {
	for _, b := range p.builtins {
		names = append(names, b.name)
	}
	slices.Sort(names)
	return names
}

// Eval is the value of the entrypoint for an input in JSON (nil: there is none): JSON with sorted keys and
// without spaces, sets as sorted arrays. The error is ErrUndefined if it has no value.
func (p *Policy) Eval(ctx context.Context, input []byte) ([]byte, error) {
	var text string
	if input != nil {
		var err error
		if text, err = document("the input", input, p.options.Input); err != nil {
			return nil, err
		}
	}
	var result string
	err := p.bounded(ctx, func(ctx context.Context) error {
		i, err := p.start(ctx)
		if err != nil {
			return err
		}
		defer i.close()
		if err = i.setData(p.data); err == nil {
			result, err = i.eval(p.entry, text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return []byte(result), nil
}

// Close gives back what the policy holds.
func (p *Policy) Close() error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.runtime == nil || p.stuck || p.closed {
		return nil
	}
	p.closed = true
	return p.runtime.Close(context.Background())
}

// document is JSON in one form: sorted keys, no spaces.
func document(what string, b []byte, most int) (string, error) {
	if len(b) > most {
		return "", &Error{Err: fmt.Errorf("%s has %d bytes, expected at most %d", what, len(b), most)}
	}
	v, err := parseJSON(string(b))
	if err != nil {
		return "", &Error{Err: fmt.Errorf("%s is not JSON that reads in one way only: %w", what, err)}
	}
	return dump(v), nil
}

// shown is a name of a module for people.
func shown(name string) string { return verdict.Printable(name, 100) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return verdict.Printable(strings.TrimSuffix(line, " (recovered by wazero)"), 300)
}

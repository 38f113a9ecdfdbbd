package rego

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// host makes the module with the functions that a policy calls.
func (p *Policy) host(ctx context.Context) error {
	b := p.runtime.NewHostModuleBuilder(hostModule)
	for _, f := range hostFuncs {
		run := func(_ context.Context, stack []uint64) {
			i := p.current
			if i == nil || i.mod == nil {
				panic(faultf("the module calls %s before it is started", f.name))
			}
			switch f.name {
			case "opa_abort":
				panic(i.aborted(uint32(stack[0])))
			case "opa_println": // words for whoever writes the policy; they are no part of the decision
			default:
				stack[0] = uint64(i.builtin(f.params-2, stack))
			}
		}
		params, results := slices.Repeat([]api.ValueType{api.ValueTypeI32}, f.params), slices.Repeat([]api.ValueType{api.ValueTypeI32}, f.results)
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(run), params, results).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// aborted is why the module gave up, in its words.
func (i *instance) aborted(addr uint32) error {
	s, err := i.text(addr, "the reason of an abort")
	if err != nil {
		return faultf("the policy gave up, and %s", err)
	}
	return faultf("the policy gave up: %s", shown(s))
}

// builtin runs a builtin for the module. What it panics with ends the evaluation.
func (i *instance) builtin(arity int, stack []uint64) uint32 {
	b := i.policy.builtins[uint32(stack[0])]
	switch {
	case b == nil:
		panic(faultf("the module calls builtin %d, which it did not name", int32(stack[0])))
	case len(b.params) != arity:
		panic(faultf("the module calls %s with %d arguments, expected %d", b.name, arity, len(b.params)))
	case i.working:
		panic(faultf("the module calls %s while a builtin is at work", b.name))
	}
	i.working = true
	defer func() { i.working = false }()
	addr, err := i.run(b, stack[2:2+arity])
	if err != nil {
		panic(err)
	}
	return addr
}

// run gives the address of the result of a builtin, 0 if it is undefined.
func (i *instance) run(b *builtin, addresses []uint64) (uint32, error) {
	args := make([]any, len(addresses))
	for n, addr := range addresses {
		s, err := i.dumped(uint32(addr), "an argument of "+b.name)
		if err != nil {
			return 0, err
		}
		if args[n], err = parseValue(s); err != nil {
			return 0, faultf("an argument of %s: %s", b.name, err)
		}
	}
	v, err := b.apply(&call{ctx: i.ctx, policy: i.policy, name: b.name}, args)
	var own *fault
	switch {
	case errors.As(err, &own), i.ctx.Err() != nil:
		return 0, errors.Join(err, i.ctx.Err())
	case err != nil: // as OPA has it: the expression is undefined
		return 0, nil
	}
	s := dump(v)
	if len(s) > i.policy.options.Result {
		return 0, faultf("%s gives more than %d bytes", b.name, i.policy.options.Result)
	}
	if strings.ToValidUTF8(s, "") != s {
		return 0, faultf("%s gives a string that is not UTF-8", b.name)
	}
	return i.value(s, "a value of "+b.name)
}

// resolve finds the builtins that a module needs. All that cannot be had are in one error.
func (p *Policy) resolve(needed map[string]uint32) (map[uint32]*builtin, error) {
	found := map[uint32]*builtin{}
	var bad []string
	for name, id := range needed {
		b := builtins()[name]
		why := refused[name]
		if name == nowName && !p.options.Now.IsZero() {
			why = ""
		}
		switch {
		case why != "":
			bad = append(bad, fmt.Sprintf("%s (%s)", name, why))
		case b == nil:
			bad = append(bad, shown(name)+" (it is not known here)")
		default:
			found[id] = b
		}
	}
	if len(bad) == 0 {
		return found, nil
	}
	slices.Sort(bad)
	return nil, &Error{fmt.Errorf("the policy needs what cannot be had here: %s", strings.Join(bad, ", ")),
		"take what these give from the input or the data, or write the rule without them"}
}

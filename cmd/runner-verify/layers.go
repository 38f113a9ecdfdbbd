package main

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// eventPair is what events.ndjson says.
type eventPair struct {
	lines    int
	started  *schemas.RunStarted
	finished *schemas.RunFinished
	raw      [][]byte
}

// own reports whether this runner's rules hold beyond the contract's: it never
// writes elapsed time, which every archive of another implementation has.
func (p *eventPair) own() bool {
	return p.started != nil && p.started.ElapsedMS == nil && p.finished != nil && p.finished.ElapsedMS == nil
}

func (v *verifier) eventLine(line []byte, n int) error {
	const member = bundle.EventsName
	p := &v.events
	p.lines++
	if p.lines > 2 {
		v.add(ruleEventsPair, member, n, "a third event, expected run_started and run_finished alone")
		return nil
	}
	if !v.shallow(member, n, line) {
		return nil
	}
	ev, err := schemas.ParseEvent(line)
	if err != nil {
		v.add(ruleLineSchema, member, n, "%v", err)
		return nil
	}
	p.raw = append(p.raw, bytes.Clone(line))
	switch {
	case ev.Started != nil && p.lines == 1:
		p.started = ev.Started
		v.sameRun(member, n, ev.Started.RunID)
	case ev.Finished != nil && p.lines == 2:
		p.finished = ev.Finished
		v.sameRun(member, n, ev.Finished.RunID)
		v.eventResult(n, ev.Finished)
		v.canonicalEvents()
	default:
		v.add(ruleEventsPair, member, n, "expected %s here", [...]string{"run_started", "run_finished"}[p.lines-1])
	}
	return nil
}

// canonicalEvents checks the form of both events, once it is known whose they are.
func (v *verifier) canonicalEvents() {
	if !v.events.own() {
		return
	}
	v.canonicalLine(bundle.EventsName, 1, v.events.raw[0], v.events.started)
	v.canonicalLine(bundle.EventsName, 2, v.events.raw[1], v.events.finished)
	v.environment(v.events.started)
}

// environment checks the names of the variables that the runner set: those of a
// log are there when it was collected.
func (v *verifier) environment(e *schemas.RunStarted) {
	fault := func(format string, a ...any) { v.add(ruleEventsEnv, bundle.EventsName, 1, format, a...) }
	has := map[string]bool{}
	for i, key := range e.EnvKeys {
		if !slices.Contains(schemas.EnvKeys(), key) {
			fault("env_keys has %.100q, which no runner sets", key)
		}
		if i > 0 && e.EnvKeys[i-1] >= key {
			fault("env_keys has %.100q twice or not in order", key)
		}
		has[key] = true
	}
	shim := e.AgentShim != "none"
	switch {
	case shim && e.AgentShim != "openai-agents":
		fault("agent_shim is %.100q, expected none or openai-agents", e.AgentShim)
	case has[schemas.EnvSDKLog] != has[schemas.EnvSDKSchema]:
		fault("env_keys has one of %s and %s without the other", schemas.EnvSDKLog, schemas.EnvSDKSchema)
	case has[schemas.EnvSDKLog] != shim:
		fault("agent_shim is %s, which does not go with env_keys", e.AgentShim)
	case has[schemas.EnvRunID] != (has[schemas.EnvSDKLog] || has[schemas.EnvPolicyLog]):
		fault("env_keys has %s exactly when it has a log", schemas.EnvRunID)
	}
}

// canonicalLine checks that a line of this runner is the one way to write e.
func (v *verifier) canonicalLine(member string, n int, line []byte, e any) {
	if !v.events.own() {
		return
	}
	if again, err := schemas.Marshal(e); err != nil || !bytes.Equal(again, line) {
		v.notCanonical(member, n, again, line)
	}
}

func (v *verifier) notCanonical(member string, n int, canonical, line []byte) {
	v.add(ruleLineForm, member, n, "not in canonical form from byte %d on: order of keys, escapes or blanks differ", firstDifference(canonical, line))
}

func (v *verifier) eventResult(n int, f *schemas.RunFinished) {
	const member = bundle.EventsName
	if f.ExitCode != nil && f.Signal != nil {
		v.add(ruleEventsResult, member, n, "both exit_code %d and signal %d", *f.ExitCode, *f.Signal)
	}
	if zero := f.ExitCode != nil && *f.ExitCode == 0; f.Success != zero {
		v.add(ruleEventsResult, member, n, "success is %t, but exit_code is %s", f.Success, number(f.ExitCode))
	}
}

// kernelLayer is what the kernel lines add up to.
type kernelLayer struct {
	lines uint64
	next  uint64 // the seq expected next
	net   schemas.Coverage

	blocked uint64 // lines about refused network operations
	rule    uint32 // the highest number of a rule that refused one
}

// enforced takes lines about enforcement into account.
func (k *kernelLayer) enforced(e *schemas.KernelEvent) {
	if e.EventType == schemas.EventConnectBlocked {
		k.blocked++
		k.rule = max(k.rule, e.RuleID)
	}
}

func (v *verifier) kernelLines(r io.Reader) error {
	const member = bundle.KernelName
	parser := schemas.NewKernelParser(v.res.RunID)
	own := v.events.own()
	if own {
		v.effects.expect(v.report)
	}
	var e schemas.KernelEvent
	var again []byte
	return v.lines(member, r, func(line []byte, n int) error {
		k := &v.kernel
		k.lines++
		if err := parser.Parse(line, &e); err != nil {
			rule := ruleLineSchema
			if errors.Is(err, schemas.ErrRunID) {
				rule = ruleRunID
			}
			v.add(rule, member, n, "%v", err)
			k.next++
			return nil
		}
		if e.Seq != k.next {
			v.add(ruleSeq, member, n, "seq is %d, expected %d", e.Seq, k.next)
		}
		k.next = e.Seq + 1
		if own {
			if again = e.AppendJSON(again[:0], v.res.RunID); !bytes.Equal(again, line) {
				v.notCanonical(member, n, again, line)
			}
		}
		if what := underived(&e, own); what != "" {
			v.add(ruleKernelDerived, member, n, "%s", what)
		}
		if own && !isText(e.Value) {
			v.add(ruleKernelText, member, n, "value %.100q is not the escape of any byte string", e.Value)
		}
		if own {
			v.effects.see(&e)
			k.enforced(&e)
		}
		k.net.Add(e.EventType, e.Value)
		return v.values.Add(schemas.SetOf(e.EventType), e.Value)
	})
}

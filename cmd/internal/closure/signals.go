package closure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Signals says of each signal of the registry what the archive has.
func (r *Record) Signals() map[string]schemas.SignalDetail {
	out := map[string]schemas.SignalDetail{}
	for _, s := range schemas.Signals {
		d := r.signal(s.Name)
		if s.At != "" {
			d.EvidencePaths = []string{s.At}
		}
		out[s.Name] = d
	}
	return out
}

func captured() schemas.SignalDetail {
	return schemas.SignalDetail{Status: schemas.SignalCaptured}
}

func missing(format string, a ...any) schemas.SignalDetail {
	return schemas.SignalDetail{Status: schemas.SignalMissing, Reason: fmt.Sprintf(format, a...)}
}

func unknown(format string, a ...any) schemas.SignalDetail {
	return schemas.SignalDetail{Status: schemas.SignalUnknown, Reason: fmt.Sprintf(format, a...)}
}

func (r *Record) signal(name string) schemas.SignalDetail {
	switch name {
	case schemas.SignalHealth, schemas.SignalPlatform:
		return captured()
	case schemas.SignalRunCommand:
		return r.commandSignal()
	case schemas.SignalExitStatus:
		if r.finished != nil && (r.finished.ExitCode != nil || r.finished.Signal != nil) {
			return captured()
		}
		return missing("nobody saw the command end: record it with runner-exec, which starts it")
	case schemas.SignalKernelEvents, schemas.SignalProcessExecs, schemas.SignalFileAccesses, schemas.SignalNetwork:
		return r.kernelSignal()
	case schemas.SignalProcessTree:
		return r.layerSignal(schemas.MemberProcess, schemas.NoteProcesses, "record without --no-processes")
	case schemas.SignalFiltered:
		if values, there := r.notes[schemas.NoteNoise]; there {
			if table, _ := values.Get(schemas.KeyTable); table == schemas.NoiseNone {
				return captured()
			}
		}
		return r.layerSignal(schemas.MemberFiltered, schemas.NoteNoise, "record with runner-exec, which makes it")
	case schemas.SignalProcessArguments:
		return r.argumentsSignal()
	case schemas.SignalEventTimes:
		if r.has(schemas.MemberTimes) {
			return captured()
		}
		return missing("the archive has no times: record with runner-exec --times")
	case schemas.SignalFileRules, schemas.SignalNetworkRules:
		note := map[string]*schemas.Note{schemas.SignalFileRules: schemas.NoteFiles, schemas.SignalNetworkRules: schemas.NoteNetwork}[name]
		if _, there := r.notes[note]; there {
			return captured()
		}
		return missing("no such rules were enforced: record with runner-exec --policy FILE")
	}
	if d, is := r.wrapped(name); is {
		return d
	}
	return r.toolSignal(name)
}

// wrapped is about what wrappers, and runner-exec --replayable, record.
func (r *Record) wrapped(name string) (d schemas.SignalDetail, is bool) {
	switch name {
	case schemas.SignalEnvironmentValues:
		switch {
		case !r.has(schemas.MemberRunEnv):
			return missing("the archive has no environment: record with runner-exec --replayable"), true
		case r.secrets > 0:
			return unknown("%d variables are secrets, and were taken out", r.secrets), true
		}
	case schemas.SignalNetworkContents:
		switch {
		case r.net == nil:
			return missing("nothing recorded it: record behind runner-net"), true
		case r.net.Redacted > 0:
			return unknown("%d values of headers and queries were taken out", r.net.Redacted), true
		}
	case schemas.SignalRandomSeeds:
		if r.clock == nil {
			return missing("nothing gave a seed: record behind runner-clock"), true
		}
	case schemas.SignalClock:
		switch {
		case r.clock == nil:
			return missing("nothing recorded it: record behind runner-clock"), true
		case r.clock.Bad+r.clock.Lost > 0:
			return unknown("%d ticks are missing, and %d lines are none", r.clock.Lost, r.clock.Bad), true
		}
	case schemas.SignalFileContents:
		return missing("no layer records those outside of a workspace of runner-box"), true
	default:
		return d, false
	}
	return captured(), true
}

// toolSignal is about tool calls; everything else is in no archive.
func (r *Record) toolSignal(name string) schemas.SignalDetail {
	const typed = "start the tool servers through runner-policy, and record with runner-exec --policy FILE"
	policy, sdk := r.health.PolicyLayer != schemas.LayerAbsent, r.health.SDKLayer != schemas.LayerAbsent
	own, ownPolicy := r.notes[schemas.NoteToolPolicy]
	switch name {
	case schemas.SignalSDKEvents:
		if sdk {
			return captured()
		}
		return missing("the record has no sdk layer: record with runner-exec --agent-shim openai-agents")
	case schemas.SignalToolCalls:
		if policy || sdk {
			return captured()
		}
		return missing("neither a policy nor an sdk saw tool calls: %s", typed)
	case schemas.SignalPolicyDecisions, schemas.SignalToolTargets, schemas.SignalPolicyIdentity, schemas.SignalToolEffects:
		if !policy {
			return missing("the record has no policy layer: %s", typed)
		}
	}
	_, one := own.Get(schemas.KeyPolicy)
	switch name {
	case schemas.SignalPolicyDecisions:
		return captured()
	case schemas.SignalToolTargets:
		if ownPolicy {
			return captured()
		}
		return missing("the decisions do not have what calls named: runner-policy records it")
	case schemas.SignalPolicyIdentity:
		if one {
			return captured()
		}
		return missing("the calls were not all decided by one policy file")
	case schemas.SignalToolEffects:
		return r.effectsSignal()
	}
	return missing("no layer of this contract records it")
}

func (r *Record) effectsSignal() schemas.SignalDetail {
	kernel := r.kernelSignal()
	switch {
	case kernel.Status != schemas.SignalCaptured:
		return kernel
	case r.joined.Status != schemas.CorrelationClean:
		return unknown("the layers were joined with %d ambiguities: runner-verify --explain lists them", len(r.joined.Ambiguities))
	}
	return captured()
}

func (r *Record) commandSignal() schemas.SignalDetail {
	switch {
	case r.started == nil || len(r.started.Command) == 0:
		return missing("the command is not known: record it with runner-exec, which starts it")
	case r.command.plain > 0:
		return unknown("secrets were taken out without a digest: record with runner-exec --argv-key FILE")
	case r.command.digests > 0:
		return schemas.SignalDetail{Status: schemas.SignalRedacted, Reason: "secrets were taken out", Commitment: r.command.commitment()}
	}
	return captured()
}

func (r *Record) kernelSignal() schemas.SignalDetail {
	switch r.health.KernelLayer {
	case schemas.LayerComplete:
		return captured()
	case schemas.LayerAbsent:
		return missing("the record has no kernel layer: %s", r.loss())
	}
	return unknown("the kernel layer is %s: %s", r.health.KernelLayer, r.loss())
}

// layerSignal is about an optional layer whose note counts what it had no room for.
func (r *Record) layerSignal(member string, note *schemas.Note, typed string) schemas.SignalDetail {
	if !r.has(member) {
		return missing("the archive has no %s: %s", member, typed)
	}
	if n, _ := r.notes[note].Count(schemas.KeyOmitted); n > 0 {
		return unknown("%d more had no room in %s", n, member)
	}
	return captured()
}

func (r *Record) argumentsSignal() schemas.SignalDetail {
	switch tree := r.layerSignal(schemas.MemberProcess, schemas.NoteProcesses, "record without --no-processes"); {
	case tree.Status != schemas.SignalCaptured:
		return tree
	case !r.plain && r.arguments.digests == 0:
		return missing("arguments were not recorded: record with runner-exec --argv full")
	case r.unsaid:
		return unknown("the arguments of some programs were not read, or not all of them")
	case r.arguments.plain > 0:
		return unknown("secrets were taken out without a digest: record with runner-exec --argv-key FILE")
	case r.arguments.digests > 0:
		return schemas.SignalDetail{Status: schemas.SignalRedacted, Reason: "arguments, or parts of them, were replaced by digests", Commitment: r.arguments.commitment()}
	}
	return captured()
}

// Complete is what the archive has of the required signals.
func Complete(required []string, all map[string]schemas.SignalDetail) schemas.Completeness {
	c := schemas.Completeness{Required: slices.Sorted(slices.Values(required)), Captured: []string{}, Redacted: []string{}, Unknown: []string{}, BySignal: map[string]schemas.SignalDetail{}}
	c.Required = append([]string{}, slices.Compact(c.Required)...)
	for _, name := range c.Required {
		d := all[name]
		c.BySignal[name] = d
		switch d.Status {
		case schemas.SignalCaptured:
			c.Captured = append(c.Captured, name)
		case schemas.SignalRedacted:
			c.Redacted = append(c.Redacted, name)
		default:
			c.Unknown = append(c.Unknown, name)
		}
	}
	return c
}

func joinOr(parts []string, otherwise string) string {
	if len(parts) == 0 {
		return otherwise
	}
	return strings.Join(parts, "; ")
}

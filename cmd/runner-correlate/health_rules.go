package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// causes are the reasons why the kernel layer is not complete, as values of the note.
func (c *captureHealth) causes() (list []any) {
	for i := range schemas.Counters {
		r := &schemas.Counters[i]
		if r.Stage != schemas.StageCapture || r.Role != schemas.RoleLoss && r.Role != schemas.RoleEscape {
			continue
		}
		if n := c.n(r.Name); n > 0 {
			list = append(list, schemas.CountOf(r.Name, n))
		}
	}
	for _, cause := range schemas.Causes {
		if v := c.condition(cause.Name); v != "" {
			list = append(list, schemas.NoteValue{Key: cause.Name, Value: v})
		}
	}
	return list
}

// condition returns the value of a cause that is not simply a counter above 0, "" when
// the cause does not apply.
func (c *captureHealth) condition(cause string) string {
	switch cause {
	case schemas.CauseCanaryAfter, schemas.CauseCanaryBefore:
		if v := c.fact(cause); v != schemas.CanarySeen {
			return v
		}
	case schemas.CauseHooksMissing:
		return strings.Join(strings.Fields(c.fact(schemas.FactHooksMissing)), ",")
	case schemas.CauseInterference:
		return schemas.InterferenceKinds(c.fact(schemas.FactInterference))
	case schemas.CauseRedundantLost:
		lost, _ := schemas.ParseRedundant(c.fact(schemas.FactRedundant)) // check has parsed it before
		return difference(lost, 0)
	case schemas.CauseUnaccounted:
		return difference(c.n(schemas.CounterSeen), c.n(schemas.CounterEmitted)+c.n(schemas.CounterDropped))
	case schemas.CauseUnread:
		return difference(c.n(schemas.CounterEmitted), c.n(schemas.CounterRead))
	}
	return ""
}

// difference is by how much two counts differ that should be equal, "" when they are.
func difference(a, b uint64) string {
	if a == b {
		return ""
	}
	return strconv.FormatUint(max(a, b)-min(a, b), 10)
}

// confinement is the note about what the command was started without, if it was.
func (c *captureHealth) confinement() []string {
	fact, there := c.h.Facts[schemas.FactConfined]
	if !there {
		return nil
	}
	names, _ := schemas.SplitConfined(fact) // check has read it before
	var texts []any
	for _, name := range names {
		texts = append(texts, name)
	}
	return []string{schemas.NoteConfined.Format(texts...)}
}

// parts lists the counters of a family, by what follows its name.
func (c *captureHealth) parts(family string) (list []any) {
	for name, n := range c.h.Counters {
		if part, ok := strings.CutPrefix(name, family); ok {
			list = append(list, schemas.CountOf(part, n))
		}
	}
	return list
}

// quality lists the counters of inexact names that are above 0. Where the normalizer
// has the same counter for the lines that it kept, its number is used: a reader can
// compare that one with the lines of the archive.
func (c *captureHealth) quality(normalize *schemas.StageHealth) (list []any) {
	for i := range schemas.Counters {
		r := &schemas.Counters[i]
		if r.Stage != schemas.StageCapture || r.Role != schemas.RoleQuality {
			continue
		}
		n := c.n(r.Name)
		if kept, ok := normalize.Counters[r.Name]; ok {
			n = kept
		}
		if n > 0 {
			list = append(list, schemas.CountOf(r.Name, n))
		}
	}
	return list
}

// pastRules is what network rules do not cover (schemas/POLICY.md, "Network enforcement").
const pastRules = "past the network rules: families but IPv4, IPv6 and unix, sockets made outside the cgroup or connected before, " +
	"listeners without a bind, other names of unix sockets, routes that options or outer programs choose, programs that may change BPF"

// pastFiles is what file rules do not cover, whatever enforces them (schemas/POLICY.md,
// "File enforcement"), and pastMechanism what each mechanism lets through in addition.
const pastFiles = "past the file rules: descriptors opened before or outside of the run, memory mapped before, names that are only looked at, " +
	"work done for the command outside of its cgroup, copies of what may be read"

var pastMechanism = map[string]string{
	schemas.SourceLSM:      "past LSM: programs that may change BPF",
	schemas.SourceFanotify: "past fanotify: why a change was refused, FIFOs and devices in what is read-only, directories inherited as descriptors, file systems mounted by others",
	schemas.SourceLandlock: "past Landlock: why a call was refused, changes of mode, owner, times and attributes",
}

// optionalHooks are the parts whose absence is a blind spot, not a loss.
var optionalHooks = []struct{ fact, what string }{
	{schemas.FactIOUring, "io_uring operations"},
	{schemas.FactRedundant, "calls of tasks that were preempted in a probe"},
	{schemas.FactUnixHooks, "unix socket endpoints"},
}

// blind lists what this run could not observe.
func (c *captureHealth) blind() []any {
	list := []any{fmt.Sprintf("%s (%d)", schemas.BlindInherited, c.n(schemas.CounterInheritedFDs))}
	for _, s := range schemas.BlindSpots {
		list = append(list, s)
	}
	if n := c.n(schemas.CounterForeignSockets); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindForeign, n))
	}
	for _, r := range optionalHooks {
		if state := c.fact(r.fact); !schemas.Covers(state) {
			list = append(list, fmt.Sprintf("%s (%s)", r.what, state))
		}
	}
	for i := range schemas.Enforcements {
		switch e := &schemas.Enforcements[i]; {
		case !c.enforced(e):
		case e.Event == schemas.EventFileBlocked:
			list = append(list, pastFiles)
			if n := c.n(schemas.CounterFileRulesAuto); n > 0 {
				list = append(list, fmt.Sprintf("logs of the run that automatic rules let the command write to (%d)", n))
			}
			list = append(list, pastMechanism[c.fact(schemas.FactFileMechanism)])
		default:
			list = append(list, pastRules)
		}
	}
	return list
}

package health

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// causes are the reasons why the kernel layer is not complete, as values of the note.
func (c *Capture) causes() (list []any) {
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
func (c *Capture) condition(cause string) string {
	switch cause {
	case schemas.CauseCanaryAfter, schemas.CauseCanaryBefore:
		if v := c.Fact(cause); v != schemas.CanarySeen {
			return v
		}
	case schemas.CauseHooksMissing, schemas.CauseEngines:
		return strings.Join(strings.Fields(c.Fact(cause)), ",")
	case schemas.CauseInterference:
		return schemas.InterferenceKinds(c.Fact(schemas.FactInterference))
	case schemas.CauseRedundantLost:
		lost, _ := schemas.ParseRedundant(c.Fact(schemas.FactRedundant)) // check has parsed it before
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
func (c *Capture) confinement() []string {
	fact, there := c.Health.Facts[schemas.FactConfined]
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
func (c *Capture) parts(family string) (list []any) {
	for name, n := range c.Health.Counters {
		if part, ok := strings.CutPrefix(name, family); ok {
			list = append(list, schemas.CountOf(part, n))
		}
	}
	return list
}

// quality lists the counters of inexact names that are above 0. Where the normalizer
// has the same counter for the lines that it kept, its number is used: a reader can
// compare that one with the lines of the archive.
func (c *Capture) quality(normalize *schemas.StageHealth) (list []any) {
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

// blind lists what this run could not observe.
func (c *Capture) blind() []any {
	list := []any{fmt.Sprintf("%s (%d)", schemas.BlindInherited, c.n(schemas.CounterInheritedFDs))}
	for _, s := range schemas.BlindSpots {
		if n := c.n(schemas.CounterReceived); n > 0 && s == schemas.BlindReceived {
			s = fmt.Sprintf("%s (%d)", s, n)
		}
		list = append(list, s)
	}
	list = append(list, schemas.BlindScripts)
	if n := c.n(schemas.CounterForeignSockets); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindForeign, n))
	}
	for _, r := range schemas.BlindHooks {
		if state := c.Fact(r.Fact); !schemas.Covers(state) {
			list = append(list, fmt.Sprintf("%s (%s)", r.What, state))
		}
	}
	if strings.Contains(c.Fact(schemas.FactLoaded), schemas.LoadLoop+":") {
		list = append(list, schemas.BlindLoaders)
	}
	if n := c.n(schemas.CounterCoreDumps); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindCores, n))
	}
	if n := c.n(schemas.CounterEarlier); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindEarlier, n))
	}
	if n := c.n(schemas.CounterRoots); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindRoots, n))
	}
	if n := c.n(schemas.CounterSharedArguments); n > 0 {
		list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindArguments, n))
	}
	for i := range schemas.Enforcements {
		switch e := &schemas.Enforcements[i]; {
		case !c.Enforced(e):
		case e.Event == schemas.EventFileBlocked:
			list = append(list, schemas.BlindFileRules)
			if n := c.n(schemas.CounterFileRulesAuto); n > 0 {
				list = append(list, fmt.Sprintf("%s (%d)", schemas.BlindLogs, n))
			}
			list = append(list, schemas.BlindMechanism[c.Fact(schemas.FactFileMechanism)])
		default:
			list = append(list, schemas.BlindNetworkRules)
		}
	}
	return list
}

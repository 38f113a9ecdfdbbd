package schemas

import "strings"

// What a kernel line says about a tool call, in the words of kernel_effects
// (DERIVATION.md, "Bindings"): a verb, a blank, the value.

// EffectFailed comes before the verb of an operation that failed. What a rule
// refused has a verb that says so.
const EffectFailed = "failed-"

// verbOpen is the verb of an open whose access mode says nothing.
const verbOpen = "open"

// Refused reports whether an event type is of operations that a rule refused.
func Refused(eventType uint32) bool {
	return eventType == EventConnectBlocked || eventType == EventFileBlocked
}

// AppendEffect appends the effect of a kernel line. A line without a value has
// none, and dst comes back as it was.
func AppendEffect(dst []byte, e *KernelEvent) []byte {
	if len(e.Value) == 0 {
		return dst
	}
	if e.Status == StatusError && !Refused(e.EventType) {
		dst = append(dst, EffectFailed...)
	}
	return append(append(append(dst, effectVerb(e)...), ' '), e.Value...)
}

func effectVerb(e *KernelEvent) string {
	switch {
	case e.EventType == EventOpenat && (e.AccessMode == "" || e.AccessMode == AccessModes[OpenAccess]):
		return verbOpen
	case e.EventType == EventOpenat:
		return e.AccessMode
	case e.EventType < uint32(len(effectVerbs)) && effectVerbs[e.EventType] != "":
		return effectVerbs[e.EventType]
	}
	return KindOf(e.EventType)
}

// IsEffect reports whether a line shows something that was done: what failed or was
// refused was not done, and a text that is not a name cannot be compared.
func IsEffect(e *KernelEvent) bool {
	return len(e.Value) > 0 && e.Status != StatusError && !Refused(e.EventType) && SetOf(e.EventType) >= 0
}

// EffectDone reports whether the effect of a line says that something was done, and
// not that it failed or was refused.
func EffectDone(effect string) bool {
	verb, _, _ := strings.Cut(effect, " ")
	return !strings.HasPrefix(verb, EffectFailed) && verb != effectVerbs[EventConnectBlocked] && verb != effectVerbs[EventFileBlocked]
}

// ExecEffect is the effect of a program that was executed.
func ExecEffect(path string) string { return effectVerbs[EventExec] + " " + path }

// EffectVerbs are all verbs, with the event types that each covers.
func EffectVerbs() (verbs []string, of map[string][]uint32) {
	of = map[string][]uint32{}
	add := func(verb string, id uint32) {
		if of[verb] == nil {
			verbs = append(verbs, verb)
		}
		of[verb] = append(of[verb], id)
	}
	for _, mode := range AccessModes[:OpenAccess] {
		add(mode, EventOpenat)
	}
	add(verbOpen, EventOpenat)
	for _, t := range EventTypes {
		if t.Verb != "" {
			add(t.Verb, t.ID)
		}
	}
	return verbs, of
}

package schemas

import "strings"

// What a kernel line says about a tool call, in the words of kernel_effects
// (DERIVATION.md, "Bindings"): a verb, a blank, the value.

// EffectFailed comes before the verb of an operation that failed, EffectUnproven before that
// of one that nothing shows to have been done. An operation that a rule refused has its own verb.
const (
	EffectFailed   = "failed-"
	EffectUnproven = "unproven-"
)

// verbOpen is the verb of an open without a known access mode.
const verbOpen = "open"

// Refused reports whether an event type is for operations that a rule refused.
func Refused(eventType uint32) bool {
	return eventType == EventConnectBlocked || eventType == EventFileBlocked
}

// AppendEffect appends the effect of a kernel line. A line without a value has no effect,
// and dst is returned unchanged.
func AppendEffect(dst []byte, e *KernelEvent) []byte {
	if len(e.Value) == 0 {
		return dst
	}
	switch {
	case e.Status == StatusUnproven:
		dst = append(dst, EffectUnproven...)
	case e.Status == StatusError && !Refused(e.EventType):
		dst = append(dst, EffectFailed...)
	}
	return append(append(append(dst, EffectVerb(e)...), ' '), e.Value...)
}

// EffectVerb is the verb of a kernel line.
func EffectVerb(e *KernelEvent) string {
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

// IsEffect reports whether a line shows something that was done. Operations that failed,
// were refused or are unproven were not done as far as is known, and a text that is not a name cannot be compared.
func IsEffect(e *KernelEvent) bool {
	return len(e.Value) > 0 && e.Status != StatusError && e.Status != StatusUnproven && !Refused(e.EventType) && SetOf(e.EventType) >= 0
}

// EffectDone reports whether an effect is of an operation that is known to have been done.
func EffectDone(effect string) bool {
	verb, _, _ := strings.Cut(effect, " ")
	return !strings.HasPrefix(verb, EffectFailed) && !strings.HasPrefix(verb, EffectUnproven) && verb != effectVerbs[EventConnectBlocked] && verb != effectVerbs[EventFileBlocked]
}

// ExecEffect is the effect of a program that was executed.
func ExecEffect(path string) string { return effectVerbs[EventExec] + " " + path }

// EffectVerbNames are all verbs.
func EffectVerbNames() []string {
	verbs, _ := EffectVerbs()
	return verbs
}

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

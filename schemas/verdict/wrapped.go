package verdict

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// wrapped says what wrappers of the command recorded, where the notes say so.
func wrapped(notes []string) (out []string) {
	for _, note := range notes {
		if v, err := schemas.NoteBox.Parse(note); err == nil {
			n, _ := v.Count(schemas.KeyChanges)
			text := "the command ran in a box of runner-box: " + counted(n, "name") + " of its workspace differ" + third(n) + " at the end"
			if workspace, _ := v.Get(schemas.KeyWorkspace); workspace == schemas.WorkspaceCopy {
				text += ", which was a copy of the base, as no overlay could be mounted"
			}
			if unread, _ := v.Count(schemas.KeyUnread); unread > 0 {
				text += fmt.Sprintf(", and %d could not be described", unread)
			}
			if changed, _ := v.Count(schemas.KeyBaseChanged); changed > 0 {
				text += fmt.Sprintf("; others changed %s of its base meanwhile", counted(changed, "name"))
			}
			out = append(out, text)
		}
		if v, err := schemas.NoteExchanges.Parse(note); err == nil {
			n, _ := v.Count(schemas.KeyExchanges)
			mode, _ := v.Get(schemas.KeyMode)
			out = append(out, fmt.Sprintf("the command's network was runner-net (%s): the layer network has %s", mode, counted(n, "exchange")))
		}
		if v, err := schemas.NoteClock.Parse(note); err == nil {
			n, _ := v.Count(schemas.KeyTicks)
			text := "the clock and the random numbers of Node and Python were runner-clock's: they reported " + counted(n, "tick") + " about themselves"
			if lost, _ := v.Count(schemas.KeyLost); lost > 0 {
				text += fmt.Sprintf(", and %d more are lost", lost)
			}
			out = append(out, text)
		}
	}
	return out
}

// third is the ending of a verb whose subject is counted.
func third(n uint64) string {
	if n == 1 {
		return "s"
	}
	return ""
}

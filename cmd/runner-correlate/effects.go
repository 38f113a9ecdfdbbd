package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// verbs say what a kernel line of an event type is, as in
// schemas/STREAMS.md, "Operations". Opens are named by their access mode.
var verbs = map[uint32]string{
	schemas.EventConnect: "connect", schemas.EventExec: "exec", schemas.EventScript: "exec", schemas.EventExecFailed: "exec",
	schemas.EventSendto: "send", schemas.EventSendmsg: "send", schemas.EventSendmmsg: "send",
	schemas.EventBind: "bind", schemas.EventListen: "listen",
	schemas.EventFileBlocked: "file_blocked", schemas.EventConnectBlocked: "connect_blocked",
	schemas.EventUnlink: "unlink", schemas.EventRmdir: "rmdir", schemas.EventRenameFrom: "rename", schemas.EventRenameTo: "rename",
	schemas.EventLinkFrom: "link", schemas.EventLinkTo: "link", schemas.EventSymlink: "symlink", schemas.EventMkdir: "mkdir",
	schemas.EventTruncate: "truncate", schemas.EventChmod: "chmod", schemas.EventChown: "chown", schemas.EventMknod: "mknod",
	schemas.EventMount: "mount", schemas.EventMountSource: "mount", schemas.EventUmount: "umount",
	schemas.EventMoveMountFrom: "move_mount", schemas.EventMoveMountTo: "move_mount",
	schemas.EventPivotRootNew: "pivot_root", schemas.EventPivotRootOld: "pivot_root",
}

func refused(event uint32) bool {
	return event == schemas.EventConnectBlocked || event == schemas.EventFileBlocked
}

// appendEffect appends what a kernel line with a value says.
func appendEffect(dst []byte, e *schemas.KernelEvent) []byte {
	if e.Status == schemas.StatusError && !refused(e.EventType) {
		dst = append(dst, "failed-"...)
	}
	verb := verbs[e.EventType]
	switch {
	case e.EventType != schemas.EventOpenat && verb == "":
		verb = e.Kind
	case verb != "":
	case e.AccessMode == "" || e.AccessMode == schemas.AccessModes[3]:
		verb = "open"
	default:
		verb = e.AccessMode
	}
	return append(append(append(dst, verb...), ' '), e.Value...)
}

// isEffect reports whether a line shows something that was done: what failed or
// was refused was not, and a text that is no name cannot be compared.
func isEffect(e *schemas.KernelEvent) bool {
	return len(e.Value) > 0 && e.Status != schemas.StatusError && !refused(e.EventType) && schemas.SetOf(e.EventType) >= 0
}

// effectSet is the effects of one binding: the first ones of the stream.
type effectSet struct {
	list  []string
	bytes int
	cut   bool
}

// add notes an effect and returns by how much the set grew.
func (s *effectSet) add(text []byte) int {
	if s.cut {
		return 0
	}
	for _, have := range s.list {
		if have == string(text) {
			return 0
		}
	}
	if len(s.list) == schemas.MaxEffects || s.bytes+len(text) > schemas.MaxEffectBytes {
		s.cut = true
		return 0
	}
	s.list = append(s.list, string(text))
	s.bytes += len(text)
	return len(text) + effectCost
}

// effectCost is what a text costs in memory beside its bytes.
const effectCost = 32

func (s *effectSet) size() int { return s.bytes + len(s.list)*effectCost }

// budget keeps the effects of all bindings within bounds: those of bindings behind
// the first MaxEffectsTotal bytes are not written, so they need not be kept.
type budget struct {
	order []*decision
	held  int
}

func (b *budget) grew(n int) {
	if b.held += n; b.held <= 4*schemas.MaxEffectsTotal {
		return
	}
	b.trim()
}

func (b *budget) trim() {
	b.held = 0
	sum := 0
	for _, d := range b.order {
		sum += d.effects.bytes
		if sum > schemas.MaxEffectsTotal {
			d.effects = effectSet{cut: d.effects.cut || len(d.effects.list) > 0}
		}
		b.held += d.effects.size()
	}
}

// take sorts the effects of a set and gives them to a binding.
func (s *effectSet) take(b *schemas.Binding) {
	slices.Sort(s.list)
	b.KernelEffects, b.EffectsCut = s.list, s.cut
}

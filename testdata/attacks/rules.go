//go:build linux

package main

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// A rule explains differences between strace and the record; everything else is a failure. It explains
// a pair of what strace saw and what was recorded, or one without the other.
type rule struct {
	name       string
	pair       func(p *process, e *expected, l *told) bool
	unrecorded func(e *expected) bool
	unseen     func(l *told) bool
	missing    func(e *expected) bool // like unrecorded, of what was found with no line
}

var rules = []rule{
	{name: "noise: reads of the system's own files are counted, not listed",
		unrecorded: func(e *expected) bool { return e.kind == schemas.EventOpenat && system(e.value) }},
	{name: "exec: strace does not name the file that the kernel chose",
		unseen: func(l *told) bool { return l.Type == schemas.EventExec }},
	{name: "seccomp: what a filter answered is unproven",
		pair: func(p *process, e *expected, l *told) bool {
			return e.unrun && l.Status == statusUnproven && (l.text() == e.value || e.detachedPlace(l) || p.threads > 1 && e.sameName(l) ||
				e.bare == "" && l.Value == nil) // without a name it did nothing to its descriptor
		}},
	{name: "detached: strace names a file of an unmounted tree by its place there",
		pair: func(_ *process, e *expected, l *told) bool {
			return e.sameCall(l) && e.detachedPlace(l)
		}},
	{name: "detached: the address of a unix socket that starts in an unmounted tree has only its text",
		pair: func(_ *process, e *expected, l *told) bool {
			return e.address && e.sameCall(l) && l.text() == e.bare && strings.HasPrefix(e.value, "unix:/") && !strings.Contains(e.value, "/attacks-")
		}},
	{name: "refused: of an address that is too short, or that the socket cannot take, the record has none; of a listen it has the socket's",
		pair: func(_ *process, e *expected, l *told) bool {
			return e.address && e.sameCall(l) && e.ret < 0 && e.ret != -int64(unix.EAFNOSUPPORT) && e.value == "null" && (l.Value == nil || e.kind == schemas.EventListen)
		}},
	{name: "mapped: an IPv4 peer of an IPv6 socket is spelled as the socket has it",
		pair: func(_ *process, e *expected, l *told) bool {
			v4, mapped := strings.CutPrefix(l.text(), "[::ffff:")
			return mapped && e.sameCall(l) && strings.Replace(v4, "]", "", 1) == e.value
		}},
	{name: "ignored: an address without a family, or given to a connected stream, is no peer",
		unrecorded: func(e *expected) bool { return e.stream && e.address && e.ret >= 0 }},
	{name: "left: a message of sendmmsg that failed after others did not come to the hook",
		missing: func(e *expected) bool { return e.maybe }},
	{name: "null: of a failed call with an unreadable argument the record has no name",
		pair: func(_ *process, e *expected, l *told) bool { return e.ret < 0 && e.sameCall(l) && l.Value == nil }},
	{name: "open, B3: an IPv6 socket that was disconnected (connect without a family) still has its old peer's address",
		pair: func(_ *process, e *expected, l *told) bool {
			return e.address && e.value == "null" && e.ret == 0 && e.sameCall(l) && strings.HasSuffix(l.text(), "]:0")
		}},
	{name: "marked: the line says that its object may have changed",
		pair: func(_ *process, e *expected, l *told) bool { return e.sameCall(l) && l.Doubt != "" }},
	{name: "threads: strace looks at the working directory before or after the call, and another thread changed it between",
		pair: func(p *process, e *expected, l *told) bool { return p.threads > 1 && e.sameCall(l) && e.sameName(l) }},
}

// detachedPlace reports whether the line names the place in an unmounted tree. That of its top is empty.
func (e *expected) detachedPlace(l *told) bool {
	place := strings.Replace(l.text(), "detached:", "", 1)
	return place != l.text() && (place == e.value || slices.Contains(e.others, place) || place == "" && e.value == "/")
}

// sameName reports whether the line's text can be the name that the call was given, from another directory.
func (e *expected) sameName(l *told) bool {
	name := strings.TrimPrefix(e.bare, "unix:")
	name = name[strings.LastIndexByte(name, '/')+1:]
	return !e.isPlace(name) && (name == "" || name == ".." || strings.HasSuffix(l.text(), "/"+name))
}

// isPlace reports whether the value does not depend on a directory.
func (e *expected) isPlace(name string) bool {
	return e.address && !strings.HasPrefix(e.bare, "unix:") || strings.HasPrefix(name, "@")
}

func system(path string) bool {
	for _, dir := range []string{"/sys/", "/proc/", "/etc/", "/usr/", "/lib/", "/dev/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// explain compares the lines of one process. used counts the rules by name.
func explain(p *process, want []expected, have []told, used map[string]int) (missing []expected, more []told) {
	for _, r := range rules {
		before := len(want) + len(have)
		want = slices.DeleteFunc(want, func(e expected) bool { return r.unrecorded != nil && r.unrecorded(&e) })
		have = slices.DeleteFunc(have, func(l told) bool { return r.unseen != nil && r.unseen(&l) })
		if n := before - len(want) - len(have); n > 0 {
			used[r.name] += n
		}
	}
	for kind := range uint32(256) {
		var e []expected
		var l []told
		for i := range want {
			if want[i].kind == kind {
				e = append(e, want[i])
			}
		}
		for i := range have {
			if have[i].Type == kind {
				l = append(l, have[i])
			}
		}
		if p.threads == 1 && !p.ring && len(e) == len(l) {
			e, l = inOrder(p, e, l, used)
		} else {
			e, l = inAnyOrder(p, e, l, used)
		}
		missing, more = append(missing, e...), append(more, l...)
	}
	for _, r := range rules {
		before := len(missing)
		missing = slices.DeleteFunc(missing, func(e expected) bool { return r.missing != nil && r.missing(&e) })
		if n := before - len(missing); n > 0 {
			used[r.name] += n
		}
	}
	return missing, more
}

// inOrder: of one thread the lines are in the order of its calls.
func inOrder(p *process, want []expected, have []told, used map[string]int) (missing []expected, more []told) {
	for i := range want {
		e, l := &want[i], &have[i]
		if e.plain(l) {
			continue
		}
		at := slices.IndexFunc(rules, func(r rule) bool { return r.pair != nil && r.pair(p, e, l) })
		if at < 0 {
			missing, more = append(missing, *e), append(more, *l)
			continue
		}
		used[rules[at].name]++
	}
	return missing, more
}

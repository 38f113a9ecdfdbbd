//go:build linux

package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// A call whose structure strace does not show takes no line of one whose flags it shows: here the names of both differ from
// what strace saw, because another thread changed the working directory.
func TestStructureThatIsNotShown(t *testing.T) {
	line := func(value string, flags uint64) told {
		ret := -int64(unix.EINVAL)
		return told{Type: schemas.EventOpenat, Value: &value, Flags: &flags, Return: &ret, Status: schemas.StatusError}
	}
	want := []expected{
		{kind: schemas.EventOpenat, value: "/d/x", bare: "x", ret: -int64(unix.EINVAL), others: []string{"/r/x"}},
		{kind: schemas.EventOpenat, value: "/d/x", bare: "x", ret: -int64(unix.EINVAL), flags: openNumbers(unix.O_CREAT, 0, 0)},
	}
	want[1].others = []string{"null"}
	for _, have := range [][]told{
		{line("x", unix.O_CREAT), line("/e/y", unix.O_EXCL)},
		{line("/e/y", unix.O_EXCL), line("/e/x", unix.O_CREAT)},
		{line("/d/x", unix.O_EXCL), line("/e/x", unix.O_CREAT)},
		{line("/r/x", unix.O_CREAT), line("/e/x", unix.O_EXCL)},
	} {
		missing, more := explain(&process{threads: 4}, want, have, map[string]int{})
		if len(missing)+len(more) > 0 {
			t.Errorf("%q and %q: missing %v, more %v", have[0].text(), have[1].text(), missing, more)
		}
	}
}

// Where symlinks led, a bind has only the place that the program told, and a name without its directory only itself.
func TestPlacesThatAreTold(t *testing.T) {
	ret := int64(0)
	m := newMeaning()
	m.add(traced{tid: 1, name: "faccessat", args: []string{"-1", `"?process:1"`}})
	m.add(traced{tid: 1, name: "faccessat", args: []string{"-100</w>", `"?cwd"`}})
	m.add(traced{tid: 1, name: "bind", args: []string{"3", `{sa_family=0x1, sun_path="d1/s2"}`, "8"}})
	m.add(traced{tid: 1, name: "faccessat", args: []string{"4</w/e>", `"?bound:s2"`}})
	for value, want := range map[string]int{"unix:/w/e/s2": 0, "unix:/w/d1/s2": 2, "unix:d1/s2": 2, "unix:/e/s2": 2} {
		missing, more := explain(m.processes[1], m.processes[1].lines, []told{{Type: schemas.EventBind, Value: &value, Return: &ret}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("bind of %s: missing %v, more %v", value, missing, more)
		}
	}

	p := &process{root: "/r"}
	how := []string{"-1", `"/x"`, "{flags=0, mode=0, resolve=0x10}", "24"}
	lines := shapes["openat2"](newMeaning(), p, &traced{name: "openat2", args: how, ret: -int64(unix.EBADF)})
	ret = -int64(unix.EBADF)
	for i := range lines {
		lines[i].ret = ret
	}
	for value, want := range map[string]int{"x": 0, "/x": 2, "/r/x": 2} {
		missing, more := explain(p, lines, []told{{Type: schemas.EventOpenat, Value: &value, Return: &ret}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("open of %s: missing %v, more %v", value, missing, more)
		}
	}
}

//go:build linux

package main

import (
	"strings"
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
		{line("/e/x", unix.O_CREAT), line("/f/x", unix.O_EXCL)},
		{line("/f/x", unix.O_EXCL), line("/e/x", unix.O_CREAT)},
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
	m.add(traced{tid: 7, name: "faccessat", args: []string{"-1", `"?member:1"`}})
	m.add(traced{tid: 7, name: "unlink", args: []string{`"/x"`}})
	if p := m.processes[1]; p == nil || len(p.lines) != 1 || p.threads != 0 {
		t.Fatalf("a thread that is no main thread: %+v", p)
	}
	m.processes[1].lines = nil
	m.add(traced{tid: 1, name: "faccessat", args: []string{"-1", `"?process:1"`}})
	m.add(traced{tid: 1, name: "faccessat", args: []string{"-100</tmp/attacks-1/w>", `"?cwd"`}})
	m.add(traced{tid: 1, name: "bind", args: []string{"3", `{sa_family=0x1, sun_path="d1/s2"}`, "8"}})
	m.add(traced{tid: 1, name: "faccessat", args: []string{"4</tmp/attacks-1/w/e>", `"?bound:s2"`}})
	for value, want := range map[string]int{"unix:/tmp/attacks-1/w/e/s2": 0, "unix:/tmp/attacks-1/w/d1/s2": 2, "unix:d1/s2": 2, "unix:/e/s2": 2} {
		missing, more := explain(m.processes[1], m.processes[1].lines, []told{{Type: schemas.EventBind, Value: &value, Return: &ret}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("bind of %s: missing %v, more %v", value, missing, more)
		}
	}
	m.processes[1].lines = nil
	m.add(traced{tid: 1, name: "listen", args: []string{"3", "5"}})
	m.add(traced{tid: 1, name: "getsockname", args: []string{"3", `{sa_family=0x1, sun_path="d1/s2"}`, "[8]"}})
	for value, want := range map[string]int{"unix:/tmp/attacks-1/w/e/s2": 0, "unix:/tmp/attacks-1/w/f/s2": 2} {
		missing, more := explain(m.processes[1], m.processes[1].lines, []told{{Type: schemas.EventListen, Value: &value, Return: &ret}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("listen on %s: missing %v, more %v", value, missing, more)
		}
	}
	m.processes[1].threads = 2 // another one can have changed the directory that the bind started from, not the name
	for value, want := range map[string]int{"unix:/tmp/attacks-1/w/f/s2": 0, "unix:/tmp/attacks-1/w/f/s1": 2, "unix:@s2": 2} {
		missing, more := explain(m.processes[1], m.processes[1].lines, []told{{Type: schemas.EventListen, Value: &value, Return: &ret}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("listen of one of two threads on %s: missing %v, more %v", value, missing, more)
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

// One that agrees with several lines takes none from another that agrees with one of them only: a bind without a family, whose
// address the kernel chose, and one of a socket without a name.
func TestLinesForAll(t *testing.T) {
	ret := int64(0)
	line := func(value string) told { return told{Type: schemas.EventBind, Value: &value, Return: &ret} }
	want := []expected{
		{kind: schemas.EventBind, value: "null", others: []string{"0.0.0.0:9"}, address: true},
		{kind: schemas.EventBind, value: "null", others: []string{"null"}, address: true},
	}
	unnamed := line("")
	unnamed.Value = nil
	missing, more := explain(&process{threads: 4}, want, []told{unnamed, line("0.0.0.0:9")}, map[string]int{})
	if len(missing)+len(more) > 0 {
		t.Errorf("missing %v, more %v", missing, more)
	}
	if missing, _ = explain(&process{threads: 4}, want, []told{unnamed, line("0.0.0.0:8")}, map[string]int{}); len(missing) != 1 {
		t.Errorf("an address that no socket had: missing %v", missing)
	}
	name := "/w/other"
	other := []expected{{kind: schemas.EventUnlink, value: "/w/a", bare: "a"}}
	if missing, _ = explain(&process{threads: 4}, other, []told{{Type: schemas.EventUnlink, Value: &name, Return: &ret}}, map[string]int{}); len(missing) != 1 {
		t.Errorf("another name in a process of threads: missing %v", missing)
	}
	name = "/w/d/a"
	if missing, _ = explain(&process{threads: 4}, other, []told{{Type: schemas.EventUnlink, Value: &name, Return: &ret}}, map[string]int{}); len(missing) != 0 {
		t.Errorf("the name from another directory: missing %v", missing)
	}
}

// A unix socket has only the text of its address where it starts in an unmounted tree, and nowhere else.
func TestAddressInAnUnmountedTree(t *testing.T) {
	ret := -int64(unix.ECONNREFUSED)
	name := "unix:s1"
	line := told{Type: schemas.EventConnect, Value: &name, Return: &ret, Status: schemas.StatusError}
	for value, want := range map[string]int{"unix:/s1": 0, "unix:/d1/s1": 0, "unix:/tmp/attacks-1/p/1/w/s1": 1} {
		e := expected{kind: schemas.EventConnect, value: value, bare: name, address: true, ret: ret}
		if missing, _ := explain(&process{threads: 1}, []expected{e}, []told{line}, map[string]int{}); len(missing) != want {
			t.Errorf("%s: missing %v", value, missing)
		}
	}
}

// strace does not decode an IPv4 address that is cut after the address itself.
func TestShortAddress(t *testing.T) {
	for arg, want := range map[string]string{
		`{sa_family=0x2, sa_data="\x00\x09\x7f\x00\x00\x01\x00"}`: "127.0.0.1:9",
		`{sa_family=0x2, sa_data="\x00\x09\x7f\x00\x00"}`:         "",
		`{sa_family=0xa, sa_data="\x00\x09\x7f\x00\x00\x01\x00"}`: "",
	} {
		if got := strings.Join(shortened(arg), " "); got != want {
			t.Errorf("%s: %q", arg, got)
		}
	}
}

// What a filter answered has the value that strace has; of one of several threads, that name from another directory.
func TestAnsweredByAFilter(t *testing.T) {
	e := expected{kind: schemas.EventTruncate, value: "/a/l/x", bare: "x", ret: -38, unrun: true}
	for _, c := range []struct {
		value, status string
		threads, want int
	}{
		{"/a/l/x", statusUnproven, 1, 0}, {"/a/d/x", statusUnproven, 1, 2}, {"/a/d/x", statusUnproven, 2, 0},
		{"detached:/a/l/x", statusUnproven, 1, 0}, {"detached:/a/d/x", statusUnproven, 1, 2}, {"/a/d/y", statusUnproven, 2, 2}, {"/a/d/x", schemas.StatusSuccess, 2, 2},
	} {
		l := told{Type: schemas.EventTruncate, Value: &c.value, Status: c.status}
		missing, more := explain(&process{threads: c.threads}, []expected{e}, []told{l}, map[string]int{})
		if len(missing)+len(more) != c.want {
			t.Errorf("%+v: missing %v, more %v", c, missing, more)
		}
	}
	for bare, want := range map[string]int{"": 0, "x": 2} {
		e.bare = bare
		missing, more := explain(&process{threads: 1}, []expected{e}, []told{{Type: schemas.EventTruncate, Status: statusUnproven}}, map[string]int{})
		if len(missing)+len(more) != want {
			t.Errorf("no value of a call with the name %q: missing %v, more %v", bare, missing, more)
		}
	}
}

// An address without a family names no peer, also one that ends behind it.
func TestAddressWithoutAFamily(t *testing.T) {
	for arg, want := range map[string]int{`{sa_family=0}`: 0, `{sa_family=0, sa_data="\x00"}`: 0, `{sa_family=0x10}`: 1} {
		p := &process{threads: 1}
		c := traced{tid: 1, name: "sendmsg", ret: 1, args: []string{"5", "{msg_name=" + arg + ", msg_namelen=2, msg_iovlen=1}", "0x4040"}}
		lines := shapes["sendmsg"](newMeaning(), p, &c)
		for i := range lines {
			lines[i].ret = c.ret
		}
		if missing, more := explain(p, lines, nil, map[string]int{}); len(missing)+len(more) != want {
			t.Errorf("%s: missing %v, more %v", arg, missing, more)
		}
	}
}

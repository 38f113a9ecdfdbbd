package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

func TestEveryOperationIsMapped(t *testing.T) {
	for _, op := range schemas.RawOps {
		o, ok := operations[op]
		if !ok {
			t.Errorf("op %s has no row", op)
		}
		if o.first != 0 && o.first > 255 {
			t.Errorf("op %s: event id %d", op, o.first)
		}
	}
	if len(operations) != len(schemas.RawOps) {
		t.Errorf("%d rows, %d operations", len(operations), len(schemas.RawOps))
	}
}

func TestLines(t *testing.T) {
	interp := func(e *schemas.RawEvent) { e.Interp = []byte("/bin/sh") }
	inRoot := func(e *schemas.RawEvent) { e.Resolve, e.Has = schemas.ResolveInRoot, e.Has|schemas.HasResolve }
	resolve := func(e *schemas.RawEvent) { e.Resolve, e.Has = 8, e.Has|schemas.HasResolve }
	for _, c := range []struct {
		name, op string
		edits    []edit
		want     []string
	}{
		{"open", "openat", []edit{opened("/w/a")}, []string{"1 /w/a 3 success"}},
		{"failed open", "open", []edit{user("/w", "b"), flags(0), ret(-2)}, []string{"1 /w/b -2 error"}},
		{"creat", "creat", []edit{path("/w/c"), flags(577), ret(4)}, []string{"1 /w/c 4 success"}},
		{"openat2", "openat2", []edit{user("/w", "../x"), flags(0), resolve, ret(-18)}, []string{"1 /x -18 error"}},
		{"openat2 in a root", "openat2", []edit{user("/w", "/../x"), flags(0), inRoot, ret(-2)}, []string{"1 /w/x -2 error"}},
		{"openat2 in no root", "openat2", []edit{user("", "//x"), flags(0), inRoot, ret(-9)}, []string{"1 x -9 error"}},
		{"handle", "open_by_handle_at", []edit{opened("/w/h")}, []string{"1 /w/h 3 success"}},
		{"io_uring", "io_uring_openat", []edit{opened("/w/u"), marks(schemas.MarkIOUring)}, []string{"1 /w/u 3 success"}},
		{"fault", "openat", []edit{flags(0), ret(-14), marks(schemas.MarkUserFault)}, []string{"1 null -14 error"}},
		{"unknown outcome", "openat", []edit{path("/w/a"), flags(0)}, []string{"1 /w/a"}},
		{"memfd", "open", []edit{opened("memfd:/node_modules/x")}, []string{"1 memfd:/node_modules/x 3 success"}},
		{"exec", "exec", []edit{path("/usr/bin/true"), user("/", "true")}, []string{"4 /usr/bin/true"}},
		{"script", "exec", []edit{path("/usr/bin/dash"), user("/w", "./s.sh"), interp, ret(0)},
			[]string{"4 /usr/bin/dash 0 success", "200 /w/s.sh 0 success"}},
		{"script without a binary", "exec", []edit{user("/w", "s.sh"), interp}, []string{"4 /bin/sh", "200 /w/s.sh"}},
		{"failed exec", "execve", []edit{user("/w", "nope"), ret(-2)}, []string{"201 /w/nope -2 error"}},
		{"failed execveat", "execveat", []edit{ret(-14), marks(schemas.MarkUserFault)}, []string{"201 null -14 error"}},
		{"connect", "connect", []edit{addr("syscall", "127.0.0.1:80"), ret(0)}, []string{"2 127.0.0.1:80 0 success"}},
		{"pending", "connect", []edit{addr("syscall", "127.0.0.1:80"), ret(-115)}, []string{"2 127.0.0.1:80 -115"}},
		{"sendto", "sendto", []edit{addr("syscall", "unix:@x"), ret(5)}, []string{"6 unix:@x 5 success"}},
		{"sendmsg", "sendmsg", []edit{addr("syscall", "[::1]:53"), ret(-115)}, []string{"7 [::1]:53 -115 error"}},
		{"sendmmsg", "sendmmsg", []edit{addr("syscall", "1.2.3.4:5"), ret(1)}, []string{"202 1.2.3.4:5 1 success"}},
		{"bind", "bind", []edit{addr("syscall", "0.0.0.0:0"), ret(0)}, []string{"203 0.0.0.0:0 0 success"}},
		{"listen", "listen", []edit{addr("syscall", ""), ret(0)}, []string{"204 null 0 success"}},
		{"unlink", "unlink", []edit{user("/w", "a"), ret(0)}, []string{"211 /w/a 0 success"}},
		{"rmdir", "rmdir", []edit{user("/w", "a"), ret(-39)}, []string{"212 /w/a -39 error"}},
		{"rename", "rename", []edit{user("/w", "a"), user2("/v", "b"), ret(0)}, []string{"213 /w/a 0 success", "214 /v/b 0 success"}},
		{"rename with its objects", "rename", []edit{user("/w", "l/a"), path("/d/a"), user2("/w", "b"), path2("/d/b"), ret(0)}, []string{"213 /d/a 0 success", "214 /d/b 0 success"}},
		{"link with one object", "link", []edit{user("/w", "a"), path("/d/a"), user2("/w", "no/b"), ret(-2)}, []string{"215 /d/a -2 error", "216 /w/no/b -2 error"}},
		{"rename half read", "rename", []edit{user("/w", "a"), ret(-14)}, []string{"213 /w/a -14 error", "214 null -14 error"}},
		{"link", "link", []edit{user("/w", "a"), user2("/w", "b"), ret(0)}, []string{"215 /w/a 0 success", "216 /w/b 0 success"}},
		{"symlink", "symlink", []edit{user("/w", "new"), user2("", "../target"), ret(0)}, []string{"217 /w/new 0 success"}},
		{"mkdir", "mkdir", []edit{user("/w", "d/"), ret(0)}, []string{"219 /w/d 0 success"}},
		{"truncate", "truncate", []edit{user("/w", "a"), ret(0)}, []string{"220 /w/a 0 success"}},
		{"ftruncate", "ftruncate", []edit{path("/w/a"), ret(0)}, []string{"220 /w/a 0 success"}},
		{"chmod", "chmod", []edit{path("/w/a"), ret(0)}, []string{"221 /w/a 0 success"}},
		{"chown", "chown", []edit{user("/w", "a"), ret(-1)}, []string{"222 /w/a -1 error"}},
		{"mknod", "mknod", []edit{user("/w", "a"), ret(0)}, []string{"223 /w/a 0 success"}},
		{"mount", "mount", []edit{user("/", "mnt"), user2("", "tmpfs"), ret(0)}, []string{"224 /mnt 0 success", "225 tmpfs 0 success"}},
		{"mount without source", "mount", []edit{user("/", "mnt"), ret(0)}, []string{"224 /mnt 0 success", "225 null 0 success"}},
		{"umount", "umount", []edit{user("/", "mnt"), ret(0)}, []string{"226 /mnt 0 success"}},
		{"move_mount", "move_mount", []edit{user("/", "a"), user2("/", "b"), ret(0)}, []string{"227 /a 0 success", "228 /b 0 success"}},
		{"pivot_root", "pivot_root", []edit{user("/", "a"), user2("/", "b"), ret(0)}, []string{"229 /a 0 success", "230 /b 0 success"}},
		{"terminal", "tiocgptpeer", []edit{opened("/dev/pts/3"), flags(2)}, []string{"1 /dev/pts/3 3 success"}},
		{"setxattr", "setxattr", []edit{user("/w", "a"), user2("", "./user.x"), ret(0)}, []string{"231 /w/a 0 success", "232 ./user.x 0 success"}},
		{"removexattr", "removexattr", []edit{path("/w/a"), user2("", "user.x"), ret(-61)}, []string{"233 /w/a -61 error", "232 user.x -61 error"}},
		{"mount_setattr", "mount_setattr", []edit{user("/mnt", ""), ret(0)}, []string{"234 /mnt 0 success"}},
		{"open_tree", "open_tree", []edit{user("/", "mnt"), ret(5)}, []string{"235 /mnt 5 success"}},
		{"fspick", "fspick", []edit{user("/", "mnt"), ret(5)}, []string{"236 /mnt 5 success"}},
		{"fsconfig", "fsconfig", []edit{user2("", "tmpfs"), ret(0)}, []string{"237 tmpfs 0 success"}},
		{"fsmount", "fsmount", []edit{user2("", "//host/a"), ret(6)}, []string{"238 //host/a 6 success"}},
		{"mq_open", "mq_open", []edit{user2("", "q"), ret(6)}, []string{"239 q 6 success"}},
		{"mq_unlink", "mq_unlink", []edit{ret(-14), marks(schemas.MarkUserFault)}, []string{"241 null -14 error"}},
		{"bpf_obj_pin", "bpf_obj_pin", []edit{user("/sys/fs/bpf", "a"), ret(0)}, []string{"242 /sys/fs/bpf/a 0 success"}},
		{"bpf_obj_get", "bpf_obj_get", []edit{user("/sys/fs/bpf", "a"), ret(7)}, []string{"243 /sys/fs/bpf/a 7 success"}},
		{"kernel_file", "kernel_file", []edit{user("/w", "swap"), ret(-1)}, []string{"244 /w/swap -1 error"}},
		{"io_uring_other", "io_uring_other", []edit{flags(35), ret(-125)}, []string{"240 null -125 error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r raw
			r.add(10, 10, c.op, c.edits...)
			var want []string
			for _, w := range c.want {
				want = append(want, "10 "+w)
			}
			got := mustNormalize(t, r.bytes(t))
			wantLines(t, got, want...)
			if added := got.own().Counters["added"]; added != uint64(len(c.want)-1) {
				t.Errorf("added %d", added)
			}
		})
	}
}

func TestOpenFields(t *testing.T) {
	var r raw
	r.add(10, 10, "openat2", path("/w/o"), flags(577|0o600), ret(4), func(e *schemas.RawEvent) {
		e.Mode, e.Resolve, e.Has = 420, 8, e.Has|schemas.HasResolve
	})
	r.add(10, 10, "openat", path("/w/o"), flags(0), ret(4), func(e *schemas.RawEvent) { e.Has |= schemas.HasResolve })
	got := mustNormalize(t, r.bytes(t)).kernel
	want := []string{
		`{"schema":"assay.runner.kernel_event.v0","run_id":"run_t","seq":0,"pid":10,"event_type":1,"kind":"openat","value":"/w/o",` +
			`"flags":961,"mode":420,"resolve":8,"return_value":4,"access_mode":"write","operation_flags":["create","truncate","exclusive"],"status":"success"}`,
		`{"schema":"assay.runner.kernel_event.v0","run_id":"run_t","seq":1,"pid":10,"event_type":1,"kind":"openat","value":"/w/o",` +
			`"flags":0,"mode":0,"return_value":4,"access_mode":"read","status":"success"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A refusal names its rule; destination and port are those of an IP address.
func TestBlockedFields(t *testing.T) {
	rule := func(no uint32) edit {
		return func(e *schemas.RawEvent) { e.Rule, e.Has, e.CgroupID = no, e.Has|schemas.HasRule, 7 }
	}
	var r raw
	for i, a := range []string{"10.0.0.1:80", "[::ffff:10.0.0.1]:65535", "unix:@x", `unix:/a\\b`, ""} {
		r.add(10, 10, "connect_blocked", addr("cgroup", a), rule(uint32(i)))
	}
	got := mustNormalize(t, r.bytes(t))
	const start = `{"schema":"assay.runner.kernel_event.v0","run_id":"run_t","seq":`
	want := []string{
		start + `0,"pid":10,"event_type":20,"kind":"connect_blocked","value":"10.0.0.1:80","cgroup_id":7,"network_destination":"10.0.0.1","network_port":80,"rule_id":0}`,
		start + `1,"pid":10,"event_type":20,"kind":"connect_blocked","value":"[::ffff:10.0.0.1]:65535","cgroup_id":7,"network_destination":"::ffff:10.0.0.1","network_port":65535,"rule_id":1}`,
		start + `2,"pid":10,"event_type":20,"kind":"connect_blocked","value":"unix:@x","cgroup_id":7,"rule_id":2}`,
		start + `3,"pid":10,"event_type":20,"kind":"connect_blocked","value":"unix:/a\\\\b","cgroup_id":7,"rule_id":3}`,
		start + `4,"pid":10,"event_type":20,"kind":"connect_blocked","value":null,"cgroup_id":7,"rule_id":4}`,
	}
	if strings.Join(got.kernel, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got.kernel, "\n"), strings.Join(want, "\n"))
	}
	if h := got.own(); h.Counters["null_values"] != 1 {
		t.Errorf("%v", h.Counters)
	}
}

// A refused file operation has its path and its rule, is never noise, and changes nothing
// about what the address hook saw of the same call.
func TestFileBlocked(t *testing.T) {
	blocked := func(hook string, rule uint32, edits ...edit) []edit {
		return append(edits, func(e *schemas.RawEvent) {
			e.Source, e.Hook, e.Rule, e.Has, e.CgroupID = "lsm", hook, rule, e.Has|schemas.HasRule, 7
		})
	}
	var r raw
	r.add(10, 10, "file_blocked", blocked("read", 1, path("/usr/lib/x.so"))...)
	r.add(10, 10, "openat", user("/", "usr/lib/x.so"), flags(0), ret(-1))
	r.add(10, 10, "connect", addr("cgroup", "unix:/run/s"))
	r.add(10, 10, "file_blocked", blocked("write", 0, path("/run/s"))...)
	r.add(10, 10, "connect", addr("syscall", "unix:/run/s"), ret(-1))
	r.add(10, 10, "file_blocked", blocked("move", 3)...)
	got := mustNormalize(t, r.bytes(t))
	const start = `{"schema":"assay.runner.kernel_event.v0","run_id":"run_t","seq":`
	want := []string{
		start + `0,"pid":10,"event_type":10,"kind":"file_blocked","value":"/usr/lib/x.so","cgroup_id":7,"rule_id":1}`,
		start + `1,"pid":10,"event_type":1,"kind":"openat","value":"/usr/lib/x.so","flags":0,"mode":0,"return_value":-1,"access_mode":"read","status":"error"}`,
		start + `2,"pid":10,"event_type":10,"kind":"file_blocked","value":"/run/s","cgroup_id":7,"rule_id":0}`,
		start + `3,"pid":10,"event_type":2,"kind":"connect","value":"unix:/run/s","return_value":-1,"status":"error"}`,
		start + `4,"pid":10,"event_type":10,"kind":"file_blocked","value":null,"cgroup_id":7,"rule_id":3}`,
	}
	if strings.Join(got.kernel, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got.kernel, "\n"), strings.Join(want, "\n"))
	}
	if h := got.own(); h.Counters["null_values"] != 1 || h.Counters["hook_only"] != 0 || h.Filtered["twin.sock_hook"] != 1 {
		t.Errorf("%v %v", h.Counters, h.Filtered)
	}
}

func TestCounters(t *testing.T) {
	var r raw
	r.add(1, 1, "rename", user("/", "a"), user2("/", "b"), ret(0))
	r.add(1, 1, "openat", flags(0), ret(-14))
	r.add(1, 1, "openat", opened("/lib/x"))
	r.add(1, 1, "exit")
	h := mustNormalize(t, r.bytes(t)).own()
	want := map[string]uint64{"added": 1, "lexical": 2, "null_values": 1, "hook_only": 0, "orphans": 1, "processes": 1, "tasks": 1}
	for k, v := range want {
		if h.Counters[k] != v {
			t.Errorf("%s = %d, want %d", k, h.Counters[k], v)
		}
	}
	if len(h.Counters) != len(want) || h.Filtered["loader.lib"] != 1 || h.Filtered["tree.exit"] != 1 || h.Stage != "runner-normalize" {
		t.Errorf("%+v", h)
	}
}

func TestLexical(t *testing.T) {
	for _, c := range []struct {
		base, name string
		chroot     bool
		want       string
	}{
		{"/w", "a", false, "/w/a"},
		{"/w", "a//b/./c/", false, "/w/a/b/c"},
		{"/w/x", "../a", false, "/w/a"},
		{"/w", "../../../a", false, "/a"},
		{"/w", "./.././a", false, "/a"},
		{"/w", "..", false, "/"},
		{"/w", ".", false, "/w"},
		{"/w", "", false, "/w"},
		{"/", "a", false, "/a"},
		{"/", "", false, "/"},
		{"/w", "a/../b", false, "/w/a/../b"},
		{"/w", "../a/../b", false, "/a/../b"},
		{"/", "/etc//passwd", false, "/etc/passwd"},
		{"/", "/../etc", false, "/etc"},
		{"/jail", "/etc/passwd", false, "/jail/etc/passwd"},
		{"/jail", "/../etc", true, "/jail/etc"},
		{"/jail/a", "../../etc", true, "/jail/a/../../etc"},
		{"-", "/etc/./x", false, "/etc/x"},
		{"-", "a/./b", false, "a/b"},
		{"-", "../b", false, "../b"},
		{"-", ".", false, ""}, // empty, and not nil, which is unknown
		{`/w\\d`, `..\\x`, false, `/w\\d/..\\x`},
		{`/w`, `..\xff/a`, false, `/w/..\xff/a`},
		{"/w", "...", false, "/w/..."},
	} {
		base := []byte(c.base)
		if c.base == "-" {
			base = nil
		}
		if got := appendLexical(nil, base, []byte(c.name), c.chroot); string(got) != c.want || got == nil {
			t.Errorf("%q + %q (chroot %v) = %q, want %q", c.base, c.name, c.chroot, got, c.want)
		}
	}
}

func FuzzLexical(f *testing.F) {
	f.Add("/w", "../a/./../b", false)
	f.Add("", "//", true)
	f.Fuzz(func(t *testing.T, base, name string, chroot bool) {
		got := string(appendLexical(nil, []byte("/"+base), []byte(name), chroot))
		if got == "" || got[0] != '/' {
			t.Fatalf("%q is not absolute", got)
		}
		// Whatever is appended to a buffer in use must not depend on its content.
		if again := string(appendLexical([]byte("/x/y"), []byte("/"+base), []byte(name), chroot)); again != "/x/y"+got {
			t.Fatalf("%q, and after something %q", got, again)
		}
	})
}

//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// kindGroups are the groups of the workload kinds.
var kindGroups = []string{"opens", "failures", "special", "names", "long", "deep", "ring",
	"execs", "inet", "unix", "interrupts", "tree", "attrs", "attributes", "others", "mounts", "silent"}

// TestKinds makes one marked event of every kind. It expects one line for each, with the
// right value, process, return value and arguments, and no other line.
func TestKinds(t *testing.T) {
	requireBPF(t)
	for _, group := range kindGroups {
		t.Run(group, func(t *testing.T) {
			workload(t, nil, "kinds", shortDir(t), group)
		})
		t.Run(group+" with copies of the probes", func(t *testing.T) {
			workload(t, []string{"--redundant", "on"}, "kinds", shortDir(t), group)
		})
	}
}

// TestUnknownRequest: an io_uring operation that no kernel has has a line without a value. The
// kernel refused it, so that nothing is missing.
func TestUnknownRequest(t *testing.T) {
	requireBPF(t)
	a, m := record(t, nil, tool("kinds"), shortDir(t), "ring-other")
	exe := tool("kinds")
	compare(t, append(madeBy(t, m.stdout), expect.Exec(exe)), a.lines)
	if a.health.KernelLayer != "complete" {
		t.Errorf("kernel_layer=%s\n%s", a.health.KernelLayer, strings.Join(a.health.Notes, "\n"))
	}
}

// TestNamesStayApart: different names of the workload are different in the surface.
func TestNamesStayApart(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	a, m := record(t, nil, tool("kinds"), dir, "names")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for _, p := range a.set(t, "filesystem_paths") {
		if strings.HasPrefix(p, dir+"/M-name-") {
			paths++
		}
	}
	if paths != len(entries) {
		t.Errorf("%d names exist, the surface holds %d", len(entries), paths)
	}
	if len(entries) < 23 || m.code != 0 {
		t.Errorf("the workload made only %d names", len(entries))
	}
}

// TestShapes expects the same for processes that are hard to follow.
func TestShapes(t *testing.T) {
	requireBPF(t)
	for _, shape := range []string{"fork", "quick-exit", "siblings", "thread", "daemon", "vfork", "setsid",
		"child-cgroup", "chroot", "mount-namespace", "cold-page", "hammer", "exec-storm", "parallel", "thread-exec"} {
		t.Run(shape, func(t *testing.T) {
			workload(t, []string{"--grace", "5s"}, "shapes", shape, shortDir(t))
		})
	}
}

// requireCompat32 ends a test of 32-bit programs where none run: other architectures have no workload for it.
func requireCompat32(t *testing.T) {
	t.Helper()
	requireBPF(t)
	if runtime.GOARCH != "amd64" {
		testkit.Skip(t, "32-bit callers", "only amd64 has them")
	}
	if err := exec.Command(tool("compat32"), "_nop").Run(); err != nil {
		testkit.SkipNo32Bit(t, tool("compat32"), err)
		testkit.Missing(t, "32-bit callers", err)
	}
}

// TestCompat32: a call through the 32-bit entry is recorded like any other, or counted,
// and then the record does not claim to be complete.
func TestCompat32(t *testing.T) {
	requireCompat32(t)
	a, m := record(t, nil, tool("compat32"), shortDir(t))
	made := madeBy(t, m.stdout)
	if a.health.KernelLayer != "complete" {
		if notes := strings.Join(a.health.Notes, "\n"); !strings.Contains(notes, "compat_unmapped=") {
			t.Errorf("32-bit calls are not counted:\n%s", notes)
		}
		return
	}
	exe := tool("compat32")
	compare(t, append(made, expect.Exec(exe)), a.lines)
}

// TestCompat32Sends: a refused call of a 32-bit program does not get the peer of the sends before it, of which
// only the hook has a record.
func TestCompat32Sends(t *testing.T) {
	requireCompat32(t)
	a, _ := record(t, nil, tool("compat32"), "_sends")
	var got []string
	for _, l := range a.lines {
		if l.Type == schemas.EventSendto || l.Type == schemas.EventSendmsg {
			got = append(got, fmt.Sprintf("%d %s %s", l.Type, *l.Value, l.Status))
		}
	}
	want := []string{"7 127.0.0.1:9 ", "6 [::1]:0 error", "7 127.0.0.1:9 ", "6 [::1]:0 error"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProcessesAreCounted: the line for people counts processes that did nothing but begin and end, too.
func TestProcessesAreCounted(t *testing.T) {
	requireBPF(t)
	_, m := record(t, nil, "sh", "-c", "for i in 1 2 3; do (:); done; exit 0")
	if !strings.Contains(m.stderr, " 4 processes, ") {
		t.Errorf("expected 4 processes in %q", m.stderr)
	}
}

// TestEscape: if a process leaves the run's cgroup, the record claims nothing, and the last line says so, also with -q.
func TestEscape(t *testing.T) {
	requireBPF(t)
	var m *measured
	for _, flags := range [][]string{nil, {"-q"}} {
		m = measure(t, flags, tool("shapes"), "escape", shortDir(t))
		if m.code != 0 {
			t.Fatal(m.outcome)
		}
		if !strings.HasSuffix(m.stderr, ", not complete: a task left the cgroup, or may have: what it did afterwards may be missing, and runner-verify refuses this record\n") {
			t.Errorf("%q: the last line does not say that a task left: %q", flags, m.stderr)
		}
	}
	o := call(t, command(t, "runner-verify", "--require", "cgroup=clean", m.path))
	if o.code != 1 {
		t.Errorf("an escaped run must not verify as clean: %v", o)
	}
	var health string
	if _, err := eachMember(m.path, reading("observation-health.json", &health)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kernel_layer":"absent"`, `"cgroup_correlation":"failed"`} {
		if !strings.Contains(health, want) {
			t.Errorf("expected %s in %s", want, health)
		}
	}
}

// TestTenAtOnce: concurrent runs record their own events and no others.
func TestTenAtOnce(t *testing.T) {
	requireBPF(t)
	exe := tool("shapes")
	var runs [10]*measured
	var ends [10]func() outcome
	for i := range runs {
		var c *exec.Cmd
		c, runs[i] = measuring(t, nil, exe, "parallel", shortDir(t), "3", "23")
		ends[i] = start(t, c)
	}
	for i, m := range runs {
		if m.outcome = ends[i](); m.code != 0 {
			t.Fatal(m.outcome)
		}
	}
	for _, m := range runs {
		a := openArchive(t, m.path)
		a.complete(t)
		compare(t, append(madeBy(t, m.stdout), expect.Exec(exe)), a.lines)
	}
}

// TestSlowReader: no event is lost if a reader stops for a while.
func TestSlowReader(t *testing.T) {
	requireBPF(t)
	const opens = 50_000
	dir := shortDir(t)
	begin := time.Now()
	if o := call(t, command(t, "sh", "-c", fmt.Sprintf(
		`runner-exec --stream - -- shapes opens %s %d | { sleep 3; runner-normalize; } | runner-correlate | runner-pack -o %[1]s/run.tar.gz`,
		dir, opens))); o.code != 0 {
		t.Fatal(o)
	}
	if time.Since(begin) < 3*time.Second {
		t.Error("the reader was not slow: this test tests nothing")
	}
	a := openArchive(t, dir+"/run.tar.gz")
	a.complete(t)
	n := 0
	for _, l := range a.lines {
		if l.Value != nil && *l.Value == dir+"/M-opens" {
			n++
		}
	}
	if n != opens {
		t.Errorf("%d opens made, %d recorded", opens, n)
	}
}

// TestExistingCgroup: capture follows an existing cgroup until it is empty, or until a
// signal stops it.
func TestExistingCgroup(t *testing.T) {
	requireBPF(t)
	for _, how := range []string{"until empty", "until SIGTERM"} {
		t.Run(how, func(t *testing.T) {
			cg := newCgroup(t)
			dir := shortDir(t)
			raw := dir + "/raw.ndjson"
			file, err := os.Create(raw)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			inside := inCgroup(t, cg, command(t, "sh", "-c", "read x; exec shapes siblings "+dir))
			gate, err := inside.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var made strings.Builder
			inside.Stdout = &made
			if err := inside.Start(); err != nil {
				t.Fatal(err)
			}
			capture := command(t, "runner-capture", "--cgroup", cg, "--run-id", "someone_elses")
			capture.Stdout = file
			if err := capture.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the header line", func() bool { st, err := os.Stat(raw); return err == nil && st.Size() > 0 })
			open := 0
			fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", inside.Process.Pid))
			testkit.Must(t, err)
			for _, fd := range fds {
				if len(fd.Name()) > 1 || fd.Name() > "2" {
					open++
				}
			}
			fmt.Fprintln(gate, "go")
			if err := inside.Wait(); err != nil {
				t.Fatal(err)
			}
			if how == "until SIGTERM" {
				capture.Process.Signal(syscall.SIGTERM)
			}
			if err := capture.Wait(); err != nil {
				t.Fatal(err)
			}
			o := call(t, command(t, "sh", "-c", "runner-normalize "+raw+" | runner-correlate | runner-pack -o "+dir+"/run.tar.gz"))
			if o.code != 0 {
				t.Fatal(o)
			}
			if o := call(t, command(t, "runner-show", dir+"/run.tar.gz")); o.code != 0 || !strings.Contains(o.stdout, "an existing cgroup, seen until "+map[bool]string{true: "it was empty\n"}[how == "until empty"]) {
				t.Errorf("how the capture ended is not shown: %v", o) // of a cgroup that is empty anyway, either can be first
			}
			a := openArchive(t, dir+"/run.tar.gz")
			var ours []line
			for _, l := range a.lines {
				if l.Value != nil && strings.Contains(*l.Value, "/M-") {
					ours = append(ours, l)
				}
			}
			compare(t, madeBy(t, made.String()), ours)
			for _, text := range []string{schemas.BlindEarlier + " (1)", fmt.Sprintf("%s (%d)", schemas.BlindInherited, open)} {
				if !strings.Contains(strings.Join(a.health.Notes, "\n"), text) {
					t.Errorf("the record has no note %q: %q", text, a.health.Notes)
				}
			}
		})
	}
}

// TestTwoCaptures: a cgroup has one observer. The process by which a second one would try its probes is the end of the first one's wait.
func TestTwoCaptures(t *testing.T) {
	requireBPF(t)
	cg, dir := newCgroup(t), t.TempDir()
	file, err := os.Create(dir + "/raw.ndjson")
	testkit.Must(t, err)
	defer file.Close()
	first := command(t, "runner-capture", "--cgroup", cg)
	first.Stdout = file
	testkit.Must(t, first.Start())
	until(t, "the header line", func() bool { st, err := file.Stat(); return err == nil && st.Size() > 0 })
	if o := call(t, command(t, "runner-capture", "--cgroup", cg)); o.code != 4 || !strings.Contains(o.stderr, "another process observes the cgroup") || o.stdout != "" {
		t.Errorf("a second capture: %v", o)
	}
	testkit.Must(t, inCgroup(t, cg, command(t, "cat", "/etc/hostname")).Run())
	testkit.Must(t, first.Wait())
	if b := testkit.Read(t, dir+"/raw.ndjson"); !bytes.Contains(b, []byte("/etc/hostname")) || bytes.Contains(b, []byte("runner-canary")) {
		t.Errorf("the first capture has not what the command did, or something else: %s", b)
	}
}

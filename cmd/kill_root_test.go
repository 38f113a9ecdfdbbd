//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// children maps the name of each running process below root to its pid. The process that ends
// what runner-capture leaves is told by its first argument, which it has as soon as it is another program: it gives
// itself a name only later. Of a process and its child that is still to become another program, the name means the process.
func children(root int) map[string]int {
	found := map[string]int{}
	parent := map[int]int{}
	names := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		end := bytes.LastIndexByte(b, ')') // of the name
		f := strings.Fields(string(b[end+1:]))
		if end < 0 || len(f) < 2 || f[0] == "Z" {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		parent[pid], _ = strconv.Atoi(f[1])
		if exe, err := os.Readlink(filepath.Dir(p) + "/exe"); err == nil {
			names[pid] = filepath.Base(exe)
			args, _ := os.ReadFile(filepath.Dir(p) + "/cmdline")
			if first, _, _ := bytes.Cut(args, []byte{0}); string(first) == closer {
				names[pid] = closer
			}
		}
	}
	for pid, name := range names {
		for p := pid; p > 1; p = parent[p] {
			if p == root {
				if other := found[name]; other == 0 || parent[other] == pid {
					found[name] = pid
				}
				break
			}
		}
	}
	return found
}

// TestKillMatrix kills every stage with SIGKILL at several moments. There must be
// no archive, no temporary file, no cgroup and no command left, and a clear error.
func TestKillMatrix(t *testing.T) {
	requireBPF(t)
	moments := []struct {
		name  string
		shape []string // of the command
		when  func(dir string, pids map[string]int) bool
	}{
		{"at once", []string{"daemon", "DIR", "800"}, func(string, map[string]int) bool { return true }},
		{"while it works", []string{"opens", "DIR", "3000000"}, func(d string, _ map[string]int) bool { return testkit.Exists(d + "/M-opens") }},
		{"while it waits", []string{"siblings", "DIR"}, func(d string, _ map[string]int) bool { return testkit.Exists(d + "/M-sibling-b2") }},
		{"after it worked", []string{"opens", "DIR", "300000"}, func(d string, pids map[string]int) bool { return testkit.Exists(d+"/M-opens") && pids["shapes"] == 0 }},
	}
	for _, stage := range tools[:5] {
		for _, moment := range moments {
			t.Run(stage+" "+moment.name, func(t *testing.T) {
				for range 10 { // a run may end before the kill
					dir := shortDir(t)
					argv := append([]string{tool("shapes")}, moment.shape...)
					for i := range argv {
						if argv[i] == "DIR" {
							argv[i] = dir
						}
					}
					if killed(t, stage, dir, nil, argv, moment.when) {
						return
					}
				}
				t.Errorf("ten kills came too late: this test tests nothing")
			})
		}
	}
}

// killed makes a run and kills one of its stages. It returns false if the run ended
// before.
func killed(t *testing.T, stage, dir string, flags, argv []string, when func(string, map[string]int) bool) (inTime bool) {
	cg := newCgroup(t)
	c, m := measuring(t, flags, argv...)
	wait := start(t, inCgroup(t, cg, c))
	pid, late := 0, false
	for pid == 0 && !late {
		if stage == "runner-exec" {
			pid = c.Process.Pid
		} else {
			pid = children(c.Process.Pid)[stage]
		}
		late = dead(c.Process.Pid)
	}
	for !late && !when(dir, children(c.Process.Pid)) {
		late = dead(c.Process.Pid)
		time.Sleep(200 * time.Microsecond)
	}
	if !late {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	m.outcome = wait()
	inTime = !testkit.Exists(m.path) || m.code != 0 && stage != "runner-exec" // the others can have been done before
	if !inTime {
		openArchive(t, m.path)
	} else {
		if m.code == 0 {
			t.Errorf("%s was killed, yet runner-exec exits 0: %v", stage, m.outcome)
		}
		if stage != "runner-exec" && (strings.Count(m.stderr, "error:") != 1 || !strings.Contains(m.stderr, stage+" was killed by signal 9")) {
			t.Errorf("expected one error that names %s: %v", stage, m.outcome)
		}
		if testkit.Exists(m.path) {
			t.Errorf("an archive is left: %v", m.outcome)
		}
	}
	nothingLeft(t, m, cg)
	return inTime
}

// closer is the process that ends what runner-capture leaves.
const closer = "cgroup-closer"

// TestKilledTogether kills runner-exec and runner-capture at once: the command ends and its cgroup
// is removed. If the process that does this is killed too, the next run does it and says so.
func TestKilledTogether(t *testing.T) {
	requireBPF(t)
	for _, more := range [][]string{nil, {closer}} {
		cg, dir := newCgroup(t), shortDir(t)
		c, m := measuring(t, nil, "sh", "-c", `: >"$0/up"; sleep 100`, dir)
		wait := start(t, inCgroup(t, cg, c))
		for !testkit.Exists(dir + "/up") {
			time.Sleep(time.Millisecond)
		}
		pids := children(c.Process.Pid)
		if pids[closer] == 0 || pids["runner-capture"] == 0 {
			t.Fatalf("expected the capture and its closer: %v", pids)
		}
		onlyEnds(t, pids[closer])
		if more != nil { // it is quick, and would be gone
			testkit.Must(t, syscall.Kill(pids[closer], syscall.SIGSTOP))
		}
		for _, name := range append([]string{"runner-exec", "runner-capture"}, more...) {
			if err := syscall.Kill(pids[name], syscall.SIGKILL); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		m.outcome = wait()
		if more != nil {
			left := cgroupsBelow(cg)
			if len(left) == 0 || testkit.Exists(m.path) {
				t.Errorf("expected only the cgroup that nobody removes: %v", m.outcome)
			}
			next, _ := measuring(t, nil, "true")
			o := call(t, inCgroup(t, cg, next))
			if o.code != 0 || !strings.Contains(o.stderr, "was left without a record: killed ") {
				t.Errorf("expected a warning: %v", o)
			}
		}
		nothingLeft(t, m, cg)
	}
}

// onlyEnds checks that each thread of the closer may do what it has to, by CAP_DAC_OVERRIDE and CAP_KILL, and nothing more.
func onlyEnds(t *testing.T, pid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	testkit.Must(t, err)
	for _, path := range threads {
		status := string(testkit.Read(t, path))
		for _, want := range []string{"CapPrm:\t0000000000000022\n", "CapEff:\t0000000000000022\n", "CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
			if !strings.Contains(status, want) {
				t.Errorf("%s: expected %q:\n%s", path, want, status)
			}
		}
	}
	if len(threads) == 0 {
		t.Error("the closer has no threads")
	}
}

// TestReaderGone: when nobody reads the raw stream any more, there is one error, the command
// is killed, and nothing is left.
func TestReaderGone(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	c := command(t, "runner-exec", "--stream", "-", "--", tool("shapes"), "opens", dir, "300000")
	c.Stdout = w
	wait := start(t, c)
	testkit.Must(t, w.Close())
	_, err = r.Read(make([]byte, 1))
	testkit.Must(t, err)
	testkit.Must(t, r.Close())
	o := wait()
	if o.code != 125 || strings.Count(o.stderr, "error:") != 1 || !strings.Contains(o.stderr, "runner-capture was killed by signal 13 (broken pipe)") {
		t.Error(o)
	}
}

func dead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

// nothingLeft fails if processes, cgroups or files of the run are left. cg is the
// group that runner-exec itself was started in.
func nothingLeft(t *testing.T, m *measured, cg string) {
	t.Helper()
	var pids, groups, files []string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		pids, groups, files = nil, cgroupsBelow(cg), nil
		for _, g := range append(groups, cg) {
			if b, err := os.ReadFile(g + "/cgroup.procs"); err == nil {
				pids = append(pids, strings.Fields(string(b))...)
			}
		}
		for _, d := range []string{m.dir, m.tmp} {
			filepath.WalkDir(d, func(p string, d os.DirEntry, err error) error {
				if err == nil && p != m.path && !d.IsDir() {
					files = append(files, p)
				}
				return nil
			})
		}
		if len(pids)+len(groups)+len(files) == 0 {
			return
		}
	}
	t.Errorf("left: processes %q, cgroups %q, files %q", pids, groups, files)
}

// TestFullDisk: with a full disk under the archive, or under the spool, there is no
// archive and no part of one.
func TestFullDisk(t *testing.T) {
	requireBPF(t)
	for _, where := range []string{"archive", "tmp"} {
		t.Run(where, func(t *testing.T) {
			small := shortDir(t)
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "none", small).CombinedOutput(); err != nil {
				testkit.Missing(t, "a full disk", fmt.Errorf("%w: %s", err, out))
			}
			t.Cleanup(func() { syscall.Unmount(small, syscall.MNT_DETACH) })
			cg := newCgroup(t)
			dir := shortDir(t)
			c, m := measuring(t, nil, tool("shapes"), "parallel", dir, "23", "997")
			if where == "archive" {
				m.dir, m.path = small, small+"/run.tar.gz"
				c.Args[2] = m.path
				os.WriteFile(small+"/filler", make([]byte, 250<<10), 0o600) // fills the disk: a short write is expected
				defer os.Remove(small + "/filler")
			} else {
				m.tmp = small
				c.Env = append(c.Env, "TMPDIR="+small)
			}
			if m.outcome = call(t, inCgroup(t, cg, c)); m.code == 0 {
				if where == "tmp" {
					t.Logf("256 KiB under TMPDIR were enough: %v", m.outcome)
					openArchive(t, m.path)
					return
				}
				t.Errorf("the archive had no room, yet runner-exec exits 0: %v", m.outcome)
			}
			if testkit.Exists(m.path) || !strings.Contains(m.stderr, "error:") {
				t.Errorf("expected no archive and an error: %v", m.outcome)
			}
			os.Remove(small + "/filler")
			nothingLeft(t, m, cg)
		})
	}
}

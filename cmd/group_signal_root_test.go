//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestGroupSignal: timeout sends its signal to the capture and then to the capture's process group, a terminal sends
// it to the group, and people press Ctrl-C twice. The record is whole, and nothing of the canaries is in it.
func TestGroupSignal(t *testing.T) {
	requireBPF(t)
	for i := range 24 {
		cg := newCgroup(t)
		wait := start(t, inCgroup(t, cg, command(t, "sleep", "60")))
		raw := filepath.Join(t.TempDir(), "raw.ndjson")
		out, err := os.Create(raw)
		testkit.Must(t, err)
		c := command(t, "runner-capture", "--cgroup", cg)
		c.Stdout, c.Stderr = out, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		testkit.Must(t, c.Start())
		for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if st, err := out.Stat(); err == nil && st.Size() > 0 {
				break // the header: the capture runs
			}
			if time.Now().After(until) {
				t.Fatal("no header")
			}
		}
		for n := range 4 { // the first one ends the capture; one of the others meets a canary at its start
			syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
			if n == 0 {
				time.Sleep(time.Duration(i) * 200 * time.Microsecond)
			}
			time.Sleep(150 * time.Microsecond)
		}
		testkit.Must(t, c.Wait())
		out.Close()
		b := testkit.Read(t, raw)
		if !bytes.Contains(b, []byte(`"canary_after":"seen"`)) {
			t.Errorf("round %d: the second canary was not seen: %s", i, b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1:])
		}
		for _, line := range bytes.Split(b, []byte("\n")) {
			if bytes.Contains(line, []byte("runner-capture")) && bytes.Contains(line, []byte(`"op":`)) || bytes.Contains(line, []byte("cpu.max")) {
				t.Errorf("round %d: an event of a canary: %s", i, line)
			}
		}
		write(t, filepath.Join(cg, "cgroup.kill"), "1")
		wait()
	}
}

// TestJobControl: a command stops its process group, as editors do, and a shell goes on with it. runner-exec stops and goes on with
// the command: the record is whole. SIGSTOP, which no job control needs, is told.
func TestJobControl(t *testing.T) {
	requireBPF(t)
	for sig, want := range map[string]int{"TSTP": 0, "TTIN": 0, "TTOU": 0, "STOP": 1} {
		c, m := measuring(t, nil, "sh", "-c", "kill -"+sig+" 0; : >after")
		c.Dir = m.dir
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		testkit.Must(t, c.Start())
		var status unix.WaitStatus
		if _, err := unix.Wait4(c.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("%s: %v, stopped %t", sig, err, status.Stopped())
		}
		time.Sleep(50 * time.Millisecond) // until all are
		testkit.Must(t, unix.Kill(-c.Process.Pid, unix.SIGCONT))
		testkit.Must(t, c.Wait())
		if o := call(t, command(t, "runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", m.path)); o.code != want {
			t.Errorf("%s: %v", sig, o)
		}
		if !bytes.Contains(openArchive(t, m.path).members["layers/kernel.ndjson"], []byte(`"value":"`+m.dir+`/after"`)) {
			t.Errorf("%s: what came after it is not in the record", sig)
		}
	}
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// The test binary is the workload too, which runs inside the cgroup.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "--workload" {
		workload(os.Args[2], os.Args[3])
		return
	}
	testkit.Heed()
	os.Exit(m.Run())
}

const prime = 23 // events of a kind, so that a count is not right by accident

func workload(kind, arg string) {
	switch kind {
	case "opens":
		for i := range prime {
			unix.Open(fmt.Sprintf("/runner-test/%s/%d", arg, i), unix.O_RDONLY, 0)
		}
	case "hammer":
		n := 0
		fmt.Sscan(arg, &n)
		for range n {
			unix.Open("/runner-test/hammer", unix.O_RDONLY, 0)
		}
	case "leave": // out of the cgroup, then an open that is not seen
		os.WriteFile(filepath.Join(arg, "cgroup.procs"), []byte("0"), 0)
		unix.Open("/runner-test/outside", unix.O_RDONLY, 0)
	case "swap":
		swap(arg)
	case "places":
		places(arg)
	case "refused":
		refused(arg)
	case "sleep":
		time.Sleep(time.Minute)
	}
}

// needKernel skips loudly where the kernel cannot be used, and fails where it must be.
func needKernel(t *testing.T) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--probe"}); code != 0 {
		testkit.Missing(t, "kernel capture", strings.TrimSpace(errs.String()))
	}
	own, err := cgroup.Own()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(own, fmt.Sprintf("runner-test-%d-%s", os.Getpid(), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(dir); err == nil {
			cgroup.Kill(dir, 10*time.Second)
			cgroup.Remove(dir)
		}
	})
	return dir
}

func inCgroup(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd := exec.Command("/proc/self/exe", append([]string{"--workload"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	return cmd
}

// session is a capture running in this process.
type session struct {
	t      *testing.T
	out    *os.File // read end of its standard output
	errs   bytes.Buffer
	code   chan int
	cancel context.CancelFunc
	each   func(record) // if set, sees every event that result reads
}

func start(t *testing.T, in io.Reader, args ...string) *session {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{t: t, out: r, code: make(chan int, 1), cancel: cancel}
	go func() {
		code := app().Call(ctx, in, w, &s.errs, args)
		w.Close()
		s.code <- code
	}()
	return s
}

type record struct {
	Op       string   `json:"op"`
	Path     string   `json:"path"`
	UserPath string   `json:"user_path"`
	Base     string   `json:"base"`
	TID      uint32   `json:"tid"`
	CPU      uint32   `json:"cpu"`
	Marks    []string `json:"marks"`
	PID      uint32   `json:"pid"`
	Cgroup   uint64   `json:"cgroup_id"`
	Ret      *int64   `json:"ret"`
	Addr     string   `json:"addr"`
	Source   string   `json:"source"`
	Rule     *uint32  `json:"rule"`
	Hook     string   `json:"hook"`
}

// result reads the stream to its seal and counts opens below /runner-test.
func (s *session) result() (n int, h *schemas.StageHealth, status schemas.Status) {
	s.t.Helper()
	r, err := stream.NewReader(s.out, "capture", schemas.StreamRaw)
	if err != nil {
		s.t.Fatalf("%v; %s", err, s.errs.String())
	}
	raw := uint64(0)
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.t.Fatalf("%v; %s", err, s.errs.String())
		}
		switch rec.Schema {
		case schemas.SchemaRawEvent:
			raw++
			var e record
			if err := json.Unmarshal(rec.Bytes, &e); err != nil {
				s.t.Fatal(err)
			}
			if s.each != nil {
				s.each(e)
			}
			if strings.HasPrefix(e.UserPath, "/runner-test/") {
				n++
			}
			if strings.HasPrefix(e.UserPath, "/runner-canary/") {
				s.t.Errorf("the canary is in the record: %s", rec.Bytes)
			}
		case schemas.SchemaStageHealth:
			if h, err = schemas.ParseStageHealth(rec.Bytes); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if code := <-s.code; code != 0 {
		s.t.Fatalf("exit %d: %s", code, s.errs.String())
	}
	c := h.Counters
	if c["seen"] != c["emitted"]+c["dropped"] || c["read"] != c["emitted"] || c["read"] != raw+c["canary"]+c["foreign"]+c["decode_errors"] || h.Out != raw {
		s.t.Errorf("the counts do not add up: %d raw events, %v", raw, c)
	}
	return n, h, r.Trailer().Status
}

// until waits for a byte on the stream: the header says that the hooks are attached.
func (s *session) ready(f func()) {
	one := make([]byte, 1)
	if _, err := io.ReadFull(s.out, one); err != nil {
		if text := s.errs.String(); strings.Contains(text, "whose addresses this kernel does not check (Linux 6.7 does)") {
			testkit.Skip(s.t, "rules on unix sockets", text)
		}
		s.t.Fatalf("no header: %v; %s", err, s.errs.String())
	}
	f()
	r, w, _ := os.Pipe()
	old := s.out
	go func() {
		w.Write(one)
		io.Copy(w, old)
		w.Close()
	}()
	s.out = r
}

func TestExistingCgroup(t *testing.T) {
	for _, mode := range []string{"off", "on"} {
		t.Run(mode, func(t *testing.T) {
			dir := needKernel(t)
			s := start(t, strings.NewReader(""), "--cgroup", dir, "--redundant", mode)
			s.ready(func() {
				if err := inCgroup(t, dir, "opens", mode).Run(); err != nil {
					t.Fatal(err)
				}
			})
			n, h, status := s.result()
			if n != prime || status != schemas.StatusComplete {
				t.Errorf("%d of %d opens, %s, %v", n, prime, status, h.Counters)
			}
			if h.Facts["canary_before"] != "seen" || h.Facts["canary_after"] != "seen" || h.Facts["end"] != "empty" {
				t.Errorf("%v", h.Facts)
			}
		})
	}
}

// A reader that does not read costs disk, not events.
func TestStoppedReader(t *testing.T) {
	dir := needKernel(t)
	const made = 100_003
	s := start(t, strings.NewReader(""), "--cgroup", dir)
	one := make([]byte, 1)
	io.ReadFull(s.out, one)
	if err := inCgroup(t, dir, "hammer", fmt.Sprint(made)).Run(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // nothing reads
	s.out = prepend(one, s.out)
	n, h, status := s.result()
	if n != made || status != schemas.StatusComplete || h.Counters["spooled_bytes"] == 0 {
		t.Errorf("%d of %d opens, %s, %v", n, made, status, h.Counters)
	}
}

func prepend(head []byte, f *os.File) *os.File {
	r, w, _ := os.Pipe()
	go func() {
		w.Write(head)
		io.Copy(w, f)
		w.Close()
	}()
	return r
}

// A ring that is far too small loses events, and every one of them is counted.
func TestRingPressure(t *testing.T) {
	dir := needKernel(t)
	s := start(t, strings.NewReader(""), "--cgroup", dir, "--ring-size", "4K")
	s.ready(func() {
		if err := inCgroup(t, dir, "hammer", "20011").Run(); err != nil {
			t.Fatal(err)
		}
	})
	n, h, status := s.result()
	if status != schemas.StatusPartial || h.Counters["dropped"] == 0 {
		t.Errorf("%s with %d dropped", status, h.Counters["dropped"])
	}
	if got := uint64(n) + h.Counters["dropped"]; got < 20011 {
		t.Errorf("%d recorded and %d dropped of 20011", n, h.Counters["dropped"])
	}
}

func TestEscape(t *testing.T) {
	dir := needKernel(t)
	outside := dir + "-outside"
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	defer cgroup.Remove(outside)
	s := start(t, strings.NewReader(""), "--cgroup", dir)
	s.ready(func() {
		if err := inCgroup(t, dir, "leave", outside).Run(); err != nil {
			t.Fatal(err)
		}
	})
	_, h, status := s.result()
	if status != schemas.StatusPartial || h.Counters["escapes"] != 1 {
		t.Errorf("%s, escapes %d", status, h.Counters["escapes"])
	}
}

// Someone else's cgroup is left as it was when a signal ends the capture, and the
// record says what ended it.
func TestSignalEndsCapture(t *testing.T) {
	dir := needKernel(t)
	s := start(t, strings.NewReader(""), "--cgroup", dir)
	var cmd *exec.Cmd
	s.ready(func() {
		cmd = inCgroup(t, dir, "sleep", "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		unix.Kill(os.Getpid(), unix.SIGTERM)
	})
	_, h, _ := s.result()
	if h.Facts["end"] != "signal" {
		t.Errorf("end %q", h.Facts["end"])
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// When runner-exec goes away, the command does not run on unobserved: the cgroup is
// killed and removed, and nothing is sealed.
func TestSupervisorLost(t *testing.T) {
	for _, finished := range []bool{false, true} {
		t.Run(fmt.Sprint(finished), func(t *testing.T) {
			dir := needKernel(t)
			control, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			s := start(t, control, "--cgroup", dir, "--supervised", "--remove-cgroup", "--grace", "1m")
			var cmd *exec.Cmd
			s.ready(func() {
				fmt.Fprintln(w, `{"schema":"runner.control.v0","op":"started","command":["x"],"agent_shim":"none","env_keys":[],"inherited_fds":0}`)
				cmd = inCgroup(t, dir, "sleep", "")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if finished {
					fmt.Fprintln(w, `{"schema":"runner.control.v0","op":"finished","exit_code":0,"signal":null}`)
				}
				w.Close()
			})
			b, _ := io.ReadAll(s.out)
			if code := <-s.code; code != tool.ExitIO || bytes.Contains(b, []byte(schemas.SchemaTrailer)) {
				t.Errorf("exit %d, stream ends %.200q", code, b[max(0, len(b)-200):])
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the command ended by itself")
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the cgroup is still there: %v", err)
			}
		})
	}
}

// A supervised cgroup is killed when things go wrong: it must never be the
// machine's, nor the one that the capture itself runs in.
func TestSupervisedNeedsACgroupOfItsOwn(t *testing.T) {
	needKernel(t)
	own, err := cgroup.Own()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.NewReader(""), "--cgroup", own, "--supervised")
	b, _ := io.ReadAll(s.out)
	if code := <-s.code; code != tool.ExitUsage || len(b) > 0 {
		t.Errorf("exit %d, output %.100q", code, b)
	}
}

// The end of the supervisor is noticed although the ring never runs empty.
func TestSupervisorLostUnderLoad(t *testing.T) {
	dir := needKernel(t)
	control, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, control, "--cgroup", dir, "--supervised", "--remove-cgroup")
	var cmds []*exec.Cmd
	s.ready(func() {
		for range 6 {
			cmd := inCgroup(t, dir, "hammer", "1000000000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		time.Sleep(500 * time.Millisecond)
		w.Close()
	})
	go io.Copy(io.Discard, s.out)
	select {
	case code := <-s.code:
		if code != tool.ExitIO {
			t.Errorf("exit %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the supervisor's end went unnoticed")
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err == nil {
			t.Error("a hammer ended by itself")
		}
	}
}

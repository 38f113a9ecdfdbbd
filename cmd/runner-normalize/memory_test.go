//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// maxRSS is what one stage may occupy, however long its input is.
const maxRSS = 64 << 20

// TestMemory sends a long stream through the real program. RUNNER_TEST_EVENTS
// and RUNNER_TEST_PROCESSES make it longer; the limit stays.
func TestMemory(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "runner-normalize")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	events, processes := number("RUNNER_TEST_EVENTS", 600_000), number("RUNNER_TEST_PROCESSES", 60_000)
	for _, c := range []struct {
		shuffled bool
		args     []string
	}{{false, nil}, {true, nil}, {true, []string{"--windows"}}, {true, []string{"--filtered", "--windows", "--processes"}}} {
		t.Run(fmt.Sprintf("%d events, %d processes, shuffled %v %v", events, processes, c.shuffled, c.args), func(t *testing.T) {
			cmd := exec.Command(bin, c.args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				failed <- longStream(in, events, processes, c.shuffled)
				in.Close()
			}()
			lines, rss := watch(t, cmd.Process.Pid, out)
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if lines != events-processes+1 {
				t.Errorf("%d kernel lines of %d events", lines, events)
			}
			cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			t.Logf("max RSS %.1f MiB, %.0f events per CPU second", float64(rss)/(1<<20), float64(events)/cpu.Seconds())
			if rss > maxRSS {
				t.Errorf("max RSS is %d bytes, at most %d", rss, maxRSS)
			}
		})
	}
}

func number(env string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil {
		return n
	}
	return otherwise
}

// longStream forks all processes first and then lets them open files: one after
// the other, or in an order in which none is twice in a row.
func longStream(w io.Writer, events, processes int, shuffled bool) error {
	s, err := stream.NewWriter(w, stream.Header{Stream: schemas.StreamRaw, RunID: testRun, Tool: "test", Version: "x"})
	if err != nil {
		return err
	}
	if err := s.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: schemas.TypeRunStarted, AgentShim: schemas.ShimNone, Command: []string{"x"}, EnvKeys: []string{}}); err != nil {
		return err
	}
	var line []byte
	put := func(e schemas.RawEvent, seq int) {
		e.Seq, e.CPUSeq, e.KtimeNS, e.CgroupID = uint64(seq), uint64(seq), 1e15+uint64(seq), 12345
		line = e.AppendJSON(line[:0], testRun)
		s.WriteRaw(line)
	}
	for i := 1; i < processes; i++ {
		var r raw
		r.add(uint32(1+i/3), uint32(1+i/3), "fork", child(uint32(i+1), uint32(i+1)))
		put(r.events[0], i-1)
	}
	e := schemas.RawEvent{Op: "openat", Has: schemas.HasRet | schemas.HasFlags | schemas.HasMode, Ret: 3, UserPath: []byte("source_file.go"), Base: []byte("/home/user/src")}
	opens := events - processes + 1
	for i := range opens {
		p := i / (opens/processes + 1)
		if shuffled {
			p = i * 7919 % processes
		}
		e.PID, e.TID = uint32(p+1), uint32(p+1)
		e.Path = fmt.Appendf(e.Path[:0], "/home/user/src/project/internal/package_%d/long_directory_name/source_file_%d.go", i%97, i)
		put(e, processes-1+i)
	}
	zero := 0
	if err := s.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: schemas.TypeRunFinished, ExitCode: &zero, Success: true}); err != nil {
		return err
	}
	if err := s.Write(captureHealth(uint64(events))); err != nil {
		return err
	}
	return s.Seal(schemas.StatusComplete)
}

// watch counts the kernel lines and looks now and then how much memory the
// process has occupied at most. The maximum that the kernel reports at the end
// would not do: it counts the memory of the test that started the program.
func watch(t *testing.T, pid int, r io.Reader) (lines int, rss int64) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), `{"schema":"assay.runner.kernel_event.v0"`) {
			lines++
		}
		if lines%1000 == 1 {
			rss = max(rss, highWater(pid))
		}
	}
	if s.Err() != nil || rss == 0 {
		t.Error("watching the program:", s.Err(), rss)
	}
	return lines, rss
}

func highWater(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, v, _ := strings.Cut(string(b), "VmHWM:")
	v, _, _ = strings.Cut(v, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n << 10
}

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMain lets the test binary run as the tool, for tests that measure a whole
// process.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNER_TEST_AS_TOOL") == "1" {
		boundMemory()
		tool.Main(app())
	}
	os.Exit(m.Run())
}

// TestMemory joins a stream whose surface is several times larger than the set
// in memory, and checks the peak of the process's resident memory.
func TestMemory(t *testing.T) {
	const lines = 400_000
	entries := peak(t, 64<<20, nil, func(w io.Writer) { manyNames(t, w, lines) })[schemas.SchemaSurfaceEntry]
	if entries != lines {
		t.Errorf("%d surface entries, expected %d", entries, lines)
	}
}

// TestMemoryOfCalls joins many kernel lines with many calls: those of one busy
// agent, and as many as a decision log holds, and as an archive may.
func TestMemoryOfCalls(t *testing.T) {
	for _, c := range []struct {
		lines, calls int
		limit        int64
	}{{1_000_000, 1_000, 128 << 20}, {200_000, 40_000, 128 << 20}, {100_000, 45_000, 128 << 20}} {
		t.Run(fmt.Sprintf("%d lines, %d calls", c.lines, c.calls), func(t *testing.T) {
			policy, sdk := manyCalls(t, c.lines, c.calls)
			seen := peak(t, c.limit, logArgs(t, policy, sdk), func(w io.Writer) { busyAgent(t, w, c.lines) })
			if seen[schemas.SchemaKernelEvent] != c.lines || seen[schemas.SchemaBinding] != c.calls || seen[schemas.SchemaSDKEvent] != 2*c.calls+1 {
				t.Errorf("%v", seen)
			}
		})
	}
}

// peak runs the tool as a process of its own over what write writes, and returns
// how many records of each schema it wrote. The maximum that the kernel reports at the
// end does not fit: it includes the memory of the test that started the process.
func peak(t *testing.T, limit int64, args []string, write func(io.Writer)) map[string]int {
	t.Helper()
	if testing.Short() {
		testkit.Skip(t, "memory over a large stream takes seconds; run without -short")
	}
	exe, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "RUNNER_TEST_AS_TOOL=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	go func() {
		defer in.Close()
		write(in)
	}()
	r, err := stream.NewReader(out, "out", schemas.StreamJoined)
	testkit.Must(t, err)
	seen := map[string]int{}
	n, rss := 0, int64(0)
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		if n++; n%1000 == 1 || seen[rec.Schema] == 0 {
			rss = max(rss, highWater(cmd.Process.Pid))
		}
		seen[rec.Schema]++
	}
	testkit.Must(t, cmd.Wait())
	t.Logf("%d MiB resident at most, %.2f s of CPU", rss>>20, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	if rss == 0 || rss > limit {
		t.Errorf("peak of %d bytes resident, at most %d", rss, limit)
	}
	return seen
}

func highWater(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, v, _ := strings.Cut(string(b), "VmHWM:")
	v, _, _ = strings.Cut(v, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n << 10
}

// manyCalls are calls one after the other, each with 64 targets and one in ten denied,
// and an SDK that reports them all.
func manyCalls(t testing.TB, lines, calls int) (policy, sdk []byte) {
	var p, s strings.Builder
	p.WriteString("session S 20 30 25\n")
	step := max(lines/calls, 1) * 100
	targets := min(64, 64_000/calls)
	for i := range calls {
		start := 1000 + i*step
		verb, outcome := "allow", "completed "
		if i%10 == 0 {
			verb, outcome = "deny", ""
		}
		fmt.Fprintf(&p, "%s S %d tc_%06d read_file %d-%d %s", verb, i, i, start, start+step/2, outcome)
		for k := range targets {
			fmt.Fprintf(&p, " /work/%d/of/%d", (i*7+k)%1000, k)
		}
		p.WriteByte('\n')
		fmt.Fprintf(&s, "started tc_%06d read_file\ncompleted tc_%06d read_file\n", i, i)
	}
	p.WriteString("end S")
	s.WriteString("finished")
	return decisionLog(t, p.String()), sdkEvents(s.String())
}

// busyAgent writes a stream in which the tool server does nearly everything.
func busyAgent(t testing.TB, w io.Writer, n int) {
	s, err := stream.NewWriter(w, stream.Header{Stream: schemas.StreamNormalized, RunID: testRun, Tool: "runner-normalize", Version: "test"})
	if err != nil {
		t.Error(err)
		return
	}
	s.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: "run_started", AgentShim: "openai-agents", Command: []string{}, EnvKeys: []string{}})
	s.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: "run_finished"})
	for depth, pid := range []uint32{10, 20, 30} {
		s.Write(schemas.Process{Schema: schemas.SchemaProcess, RunID: testRun, PID: pid, KernelPID: pid, Depth: uint32(depth), StartNS: uint64(pid - 9)})
	}
	var line, name []byte
	for i := range n {
		name = fmt.Appendf(name[:0], "/work/%d/of/%d/src/package/file_%d.go", i%1000, i%64, i%5000)
		e := ev(schemas.EventOpenat, "")
		e.Seq, e.PID, e.Value, e.AccessMode = uint64(i), 30, name, "read"
		line = e.AppendJSON(line[:0], testRun)
		line = fmt.Appendf(line[:len(line)-1], `,"ktime_ns":%d}`, 1000+100*i)
		s.WriteRaw(line)
	}
	c, nz := healths(uint64(n), uint64(n))
	nz.Counters["process_records"] = 3
	s.Write(c)
	s.Write(nz)
	if err := s.Seal(schemas.StatusComplete); err != nil {
		t.Error(err)
	}
}

// manyNames writes a stream in which every line has another name.
func manyNames(t *testing.T, w io.Writer, n int) {
	s, err := stream.NewWriter(w, stream.Header{Stream: schemas.StreamNormalized, RunID: testRun, Tool: "runner-normalize", Version: "test"})
	if err != nil {
		t.Error(err)
		return
	}
	s.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: "run_started", AgentShim: "none", Command: []string{}, EnvKeys: []string{}})
	s.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: "run_finished"})
	var line, name []byte
	for i := range n {
		name = fmt.Appendf(name[:0], "/home/user/some/where/below/%x/file%d", uint64(i)*0x9e3779b97f4a7c15, i)
		e := ev(schemas.EventOpenat, "")
		e.Seq, e.Value = uint64(i), name
		line = e.AppendJSON(line[:0], testRun)
		s.WriteRaw(line)
	}
	c, nz := healths(uint64(n), uint64(n))
	s.Write(c)
	s.Write(nz)
	if err := s.Seal(schemas.StatusComplete); err != nil {
		t.Error(err)
	}
}

//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
)

// bench is one run of this program.
type bench struct {
	dir    string // for everything temporary
	bin    string // the tools
	self   string // this program, which is also the workloads
	cannot string // why capture is not possible here, or ""
	pairs  int
	only   []string // the sections to measure; nil is all
	short  bool
	json   bool // print the table for a machine
	lines  bool // print it for the lane of kernels, from sizes for an emulated machine
	rss    bool
	before string // other tools, which are measured too
	newest emulated.Result
	table  table
}

// sample is one run of one program, in seconds.
type sample struct {
	wall, cpu     float64 // of the process and all that it waited for
	loop, loopCPU float64 // by the workload's own clock
	after         float64 // from the end of the workload to the end of all
	ended         time.Time
	rss           int64 // bytes: the largest resident set of a tool, as far as it was looked at
	out, err      string
}

func (b *bench) find() error {
	var err error
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	if _, err := os.Stat(b.tool("runner-exec")); err != nil {
		return fmt.Errorf("the tools are not built here: %w; make build", err)
	}
	if out, err := exec.Command(b.tool("runner-capture"), "--probe").CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		b.cannot = first
		if os.Geteuid() != 0 {
			b.cannot += " (sudo make bench)"
		}
	}
	return nil
}

func (b *bench) tool(name string) string { return filepath.Join(b.bin, name) }
func (b *bench) archive() string         { return filepath.Join(b.dir, "run.tar.gz") }

// n is how many pairs to run: usual, unless the caller gave a number.
func (b *bench) n(usual, short int) int {
	switch {
	case b.pairs > 0:
		return b.pairs
	case b.short:
		return short
	}
	return usual
}

// header lists what the numbers depend on.
func (b *bench) header() string {
	var u syscall.Utsname
	syscall.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	var there []string
	for _, p := range b.peers() {
		if p.path != "" {
			there = append(there, p.name)
		}
	}
	return fmt.Sprintf("kernel %s %s, %s, %d cores, load average %s, %s, compared with %s\n"+
		"plain and measured: medians; ratio: median of the pairs' wall ratios, spread their smallest and largest;\n"+
		"cpu: the same ratio of the workload's own CPU seconds, which a busy machine disturbs less;\n%s\n",
		cstring(u.Release[:]), runtime.GOARCH, cpuModel(), runtime.NumCPU(), strings.Join(strings.Fields(string(load))[:3], " "), runtime.Version(), cmp.Or(strings.Join(there, ", "), "NOTHING: no other tool is installed"), newestLine(b.newest))
}

func cstring[T int8 | uint8](c []T) string {
	var s []byte
	for _, x := range c {
		if x == 0 {
			break
		}
		s = append(s, byte(x))
	}
	return string(s)
}

// execute runs a program to its end, which must be a success.
func (b *bench) execute(env []string, argv ...string) (sample, error) {
	return b.executeIn(context.Background(), env, argv...)
}

// executeIn does that as long as ctx lasts. Then the program is killed with what it started.
func (b *bench) executeIn(ctx context.Context, env []string, argv ...string) (sample, error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if ctx.Done() != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	}
	c.Env = append(os.Environ(), env...)
	c.Dir = b.dir
	var out, errw bytes.Buffer
	c.Stdout, c.Stderr = &out, &errw
	begin := time.Now()
	rss, err := runWatched(c, b.look())
	end := time.Now()
	wall := end.Sub(begin)
	if ctx.Err() != nil {
		return sample{}, errTooLong
	}
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, clip(errw.String()))
	}
	s := used(c.ProcessState)
	s.rss = rss
	s.wall, s.ended, s.out, s.err = wall.Seconds(), end, out.String(), errw.String()
	return s, nil
}

// look is how often the files and the memory of programs are looked at. On an emulated machine a look takes long, and the machine has one core.
func (b *bench) look() time.Duration {
	if b.lines {
		return 250 * time.Millisecond
	}
	return 5 * time.Millisecond
}

func used(p *os.ProcessState) sample {
	return sample{cpu: (p.UserTime() + p.SystemTime()).Seconds()}
}

// runWatched runs a program and looks at the memory of the tools while it runs. The largest set that wait4 reports is no less than that of the process
// that started it, here of this one.
func runWatched(c *exec.Cmd, every time.Duration) (rss int64, err error) {
	if err := c.Start(); err != nil {
		return 0, err
	}
	done, seen := make(chan bool), make(chan int64)
	go func() {
		largest := int64(0)
		for {
			select {
			case <-done:
				seen <- largest
				return
			case <-time.After(every):
				for _, pid := range append(children(c.Process.Pid), c.Process.Pid) { // a shell can be in between
					if name, n := highWater(pid); strings.HasPrefix(name, "runner-") {
						largest = max(largest, n)
					}
				}
			}
		}
	}()
	err = c.Wait()
	close(done)
	return <-seen, err
}

func clip(s string) string {
	if len(s) > 2000 {
		return s[:1000] + "\n…\n" + s[len(s)-1000:]
	}
	return s
}

// plain runs a workload unmeasured.
func (b *bench) plain(argv ...string) (sample, error) {
	return b.timed(nil, argv)
}

// measured runs a workload under runner-exec. The run id is always the same, because it
// is in every document, and the documents are compared.
func (b *bench) measured(argv ...string) (sample, error) {
	os.Remove(b.archive())
	return b.timed([]string{b.tool("runner-exec"), "-v", "--run-id", "bench", "--archive", b.archive(), "--"}, argv)
}

// measuredBefore is measured with the tools of before. Their record is not looked at.
func (b *bench) measuredBefore(argv ...string) (sample, error) {
	archive := filepath.Join(b.dir, "before.tar.gz")
	defer os.Remove(archive)
	return b.timed([]string{filepath.Join(b.before, "runner-exec"), "-v", "--run-id", "bench", "--archive", archive, "--"}, argv)
}

// timed runs this program as a workload, below the given command.
func (b *bench) timed(front, argv []string) (sample, error) {
	return b.timedIn(context.Background(), append(append(front, b.self, workloadArg), argv...))
}

// afterwards is how long the kernel gets to free what the run before had: maps, programs, a cgroup.
const afterwards = 100 * time.Millisecond

func (b *bench) timedIn(ctx context.Context, argv []string) (sample, error) {
	// No run pays for the run before, nor for the look at its record.
	runtime.GC()
	time.Sleep(afterwards)
	s, err := b.executeIn(ctx, nil, argv...)
	if err != nil {
		return s, err
	}
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	var c clocked
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &c); err != nil {
		return s, fmt.Errorf("%s: the workload printed no time: %w", argv[0], err)
	}
	s.loop, s.loopCPU = float64(c.WallNS)/1e9, float64(c.CPUNS)/1e9
	s.after = float64(s.ended.UnixNano()-c.EndNS) / 1e9
	return s, nil
}

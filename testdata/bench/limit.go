//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// versions measures how long a tool takes that has nothing to do.
func (b *bench) versions() error {
	tools, err := filepath.Glob(b.tool("runner-*"))
	if err != nil {
		return err
	}
	for _, path := range tools {
		var wall, cpu []float64
		for range b.n(15, 7) {
			s, err := b.execute(nil, path, "--version")
			if err != nil {
				return err
			}
			wall, cpu = append(wall, s.wall), append(cpu, s.cpu)
		}
		m, l := median(wall), limit{bound: 0.003, text: "<= 3ms"}
		b.table.add(row{what: filepath.Base(path) + " --version", measured: seconds(m), spread: span(milli(wall), "%.1f") + "ms",
			target: l.text, verdict: l.verdict(m, true), note: "CPU " + seconds(median(cpu))})
	}
	return nil
}

// many measures the open loop in several processes at once.
func (b *bench) many() error {
	const count = 1_000_000
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	for _, n := range []int{2, 4} {
		c, err := b.compare(b.n(5, 3), []string{"opens", file, fmt.Sprint(count), fmt.Sprint(n)}, counted(schemas.EventOpenat, file, count))
		if err != nil {
			return err
		}
		b.table.add(c.row(fmt.Sprintf("open+close, 1,000,000 times, by %d processes", n), &c.loop, atMost(1.6),
			fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own)))))
	}
	return nil
}

// afterwards measures what is left to do when the command has ended, what room it takes until then, and the memory of runner-capture.
func (b *bench) afterwards() error {
	const count = 1_000_000
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	var after, verbose []float64
	var bad error
	for range b.n(5, 3) {
		s, err := b.measured("open", file, fmt.Sprint(count))
		if err != nil {
			return err
		}
		verbose = append(verbose, s.after)
		q, err := b.timed([]string{b.tool("runner-exec"), "--run-id", "bench", "--archive", b.archive(), "--force", "--"}, []string{"open", file, fmt.Sprint(count)})
		if err != nil {
			return err
		}
		after = append(after, q.after)
		if err := counted(schemas.EventOpenat, file, count)(b.archive()); err != nil {
			bad = err
		}
	}
	m, l := median(after), limit{bound: 0.4, text: "<= 400ms"}
	note := "from the end of 1,000,000 opens, as runner-exec is called in README; all recorded, 0 dropped"
	if bad != nil {
		note = bad.Error()
	}
	b.table.add(row{what: "from the command's end to the archive", measured: seconds(m), spread: span(milli(after), "%.0f") + "ms",
		target: l.text, verdict: l.verdict(m, bad == nil), note: note})
	b.table.add(row{what: "  with -v", measured: seconds(median(verbose)), spread: span(milli(verbose), "%.0f") + "ms",
		note: "which digests everything once more, for the identity that it prints"})
	return b.room(file)
}

// room measures the temporary disk of a run of many opens.
func (b *bench) room(file string) error {
	count := 10 * million
	if b.short {
		count = million
	}
	u, err := b.watched("open", file, fmt.Sprint(count))
	if err != nil {
		return err
	}
	bad := counted(schemas.EventOpenat, file, count)(b.archive())
	note := "nameless files of all stages; all recorded, 0 dropped"
	if bad != nil {
		note = bad.Error()
	}
	most := limit{bound: 120 * float64(count), text: fmt.Sprintf("<= %d MB", 120*count/million)} // 1.2 GB for ten million
	b.table.add(row{what: "temporary disk, " + thousands(int64(count)) + " events", measured: fmt.Sprintf("%d MB", u.disk/1e6),
		target: most.text, verdict: most.verdict(float64(u.disk), bad == nil), note: note})
	rss := limit{bound: 24 << 20, text: "<= 24 MiB"}
	n := u.rss["runner-capture"]
	b.table.add(row{what: "RSS of runner-capture", measured: fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)), target: rss.text, verdict: rss.verdict(float64(n), n > 0), note: "the same run"})
	return nil
}

// running starts n measured runs that wait, and returns when all commands run. stop ends them.
func (b *bench) running(n int, flags ...string) (stop func(), err error) {
	var all []*exec.Cmd
	var ends []io.Closer
	stop = func() {
		for _, c := range ends {
			c.Close() // the end of its input ends the command
		}
		for _, c := range all {
			c.Wait()
		}
	}
	for i := range n {
		args := append([]string{"-q", "--run-id", fmt.Sprintf("bench_%d", i), "--stream", os.DevNull}, flags...)
		c := exec.Command(b.tool("runner-exec"), append(args, "--", b.self, workloadArg, "wait")...)
		c.Dir = b.dir
		in, err := c.StdinPipe()
		if err != nil {
			return stop, err
		}
		out, err := c.StdoutPipe()
		if err != nil {
			return stop, err
		}
		if err := c.Start(); err != nil {
			return stop, err
		}
		all, ends = append(all, c), append(ends, in)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "here" {
			return stop, fmt.Errorf("run %d of %d did not start: %q, %v", i+1, n, line, err)
		}
	}
	time.Sleep(afterwards)
	return stop, nil
}

// outsideCalls and outsideOpens are how often a process outside makes a call.
const outsideCalls, outsideOpens = 2_000_000, 200_000

// beside is what is measured beside runs: a call and an open of a process outside, in nanoseconds, and the start of one more run.
type beside struct{ call, open, start float64 }

// outside measures what other processes pay while runs are measured, and what a second run pays for its start: with probes of
// their own, and with shared ones.
func (b *bench) outside() error {
	unmount, err := b.bpfMount()
	if err != nil {
		return err
	}
	defer unmount()
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	none, err := b.beside(file, schemas.ProbesOwn, 0)
	if err != nil {
		return err
	}
	for _, probes := range []string{schemas.ProbesOwn, schemas.ProbesShared} {
		var one beside
		for _, n := range []int{1, 10, 30} {
			m, err := b.beside(file, probes, n)
			if err != nil {
				return err
			}
			// Constant: thirty runs cost others what one costs, and what a clock cannot tell apart.
			l := limit{}
			if n == 1 {
				one = m
			} else if probes == schemas.ProbesShared {
				l = limit{bound: 1.1, text: "<= 1.10"}
			}
			for _, k := range []struct {
				what           string
				none, one, now float64
			}{{"getppid", none.call, one.call, m.call}, {"open+close", none.open, one.open, m.open}} {
				b.table.add(row{what: fmt.Sprintf("%s of a process outside, %d runs, %s probes", k.what, n, probes), plain: fmt.Sprintf("%.0fns", k.none),
					measured: fmt.Sprintf("%.0fns", k.now), ratio: times(k.now / k.one), target: l.text, verdict: l.verdict(k.now/k.one, true),
					note: "CPU time of a call; ratio: to that with 1 run"})
			}
			if n != 10 {
				if l = (limit{}); probes == schemas.ProbesShared && n == 1 {
					l = limit{bound: 0.020, text: "<= 20ms"}
				}
				b.table.add(row{what: fmt.Sprintf("runner-exec -- true beside %d runs, %s probes", n, probes), measured: seconds(m.start), target: l.text, verdict: l.verdict(m.start, true)})
			}
		}
	}
	return nil
}

// beside measures while n runs go on.
func (b *bench) beside(file, probes string, n int) (m beside, err error) {
	stop, err := b.running(n, "--probes", probes)
	defer stop()
	if err != nil {
		return m, err
	}
	var call, open, begin []float64
	for range b.n(5, 3) {
		c, err := b.plain("getppid", fmt.Sprint(outsideCalls))
		if err != nil {
			return m, err
		}
		o, err := b.plain("open", file, fmt.Sprint(outsideOpens))
		if err != nil {
			return m, err
		}
		call, open = append(call, c.loopCPU/outsideCalls*1e9), append(open, o.loopCPU/outsideOpens*1e9)
	}
	for range b.n(11, 5) {
		s, err := b.execute(nil, b.tool("runner-exec"), "-q", "--run-id", "bench", "--probes", probes, "--archive", b.archive(), "--", "/bin/true")
		if err != nil {
			return m, err
		}
		begin = append(begin, s.wall)
	}
	return beside{median(call), median(open), median(begin)}, nil
}

// bpfMount mounts a BPF file system where there is none: shared probes are pinned there.
func (b *bench) bpfMount() (unmount func(), err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), " - bpf ") {
		return func() {}, err
	}
	dir := filepath.Join(b.dir, "bpf")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		return nil, fmt.Errorf("mounting a BPF file system: %w", err)
	}
	return func() { unix.Unmount(dir, 0) }, nil
}

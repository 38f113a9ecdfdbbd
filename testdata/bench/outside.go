//go:build linux

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// beside is what is measured beside runs: a call and an open of a process outside, in nanoseconds, and the start of one more run beside
// that of the plain program.
type beside struct {
	call, open float64
	start      series
	bad        error // what is wrong with a record of these
}

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
		for _, n := range runCounts {
			if probes == schemas.ProbesOwn && !slices.Contains(b.sizes().own, n) {
				continue
			}
			m, err := b.beside(file, probes, n)
			if err != nil {
				return err
			}
			if n == 1 {
				one = m
			}
			b.outsideRows(none, one, m, n, probes)
		}
	}
	return nil
}

// outsideRows adds the rows of n runs: none and one are what was measured beside no run and beside one.
func (b *bench) outsideRows(none, one, now beside, n int, probes string) {
	// Constant: thirty runs cost others what one costs, and what a clock cannot tell apart.
	l, than := limit{}, "with 1 run"
	if n == 1 {
		one, than = none, "without a run"
	} else if probes == schemas.ProbesShared {
		l = limit{bound: 1.1, text: "<= 1.10"}
	}
	of := "CPU time of a call; ratio: to that " + than
	for _, k := range []struct {
		what           string
		none, one, now float64
	}{{outsideCall, none.call, one.call, now.call}, {outsideOpen, none.open, one.open, now.open}} {
		r := times(k.now / k.one)
		b.table.add(row{what: rowOutside(k.what, n, probes), plain: fmt.Sprintf("%.0fns", k.none), measured: fmt.Sprintf("%.0fns", k.now), ratio: r,
			target: l.text, verdict: l.verdict(k.now/k.one, true), note: of, value: r, of: of})
	}
	if !startsBeside(n) {
		return
	}
	if l = (limit{}); probes == schemas.ProbesShared && n == 1 {
		l = limit{bound: 0.020, text: "<= 20ms"}
	}
	note := "ratio: to a plain true; 0 dropped"
	if now.bad != nil {
		note = now.bad.Error()
	}
	m, r := median(now.start.measured), fmt.Sprintf("%.0f", median(now.start.ratios()))
	b.table.add(row{what: rowBeside(n, probes), plain: seconds(median(now.start.plain)), measured: seconds(m), ratio: r, spread: span(now.start.ratios(), "%.0f"),
		target: l.text, verdict: l.verdict(m, now.bad == nil), note: note, value: r, of: ofTrue, between: span(now.start.ratios(), "%.0f")})
}

// beside measures while n runs go on.
func (b *bench) beside(file, probes string, n int) (m beside, err error) {
	stop, err := b.running(n, "--probes", probes)
	defer stop()
	if err != nil {
		return m, err
	}
	size := b.sizes()
	var call, open []float64
	for range b.n(5, 3) {
		c, err := b.plain("getppid", fmt.Sprint(size.outsideCalls))
		if err != nil {
			return m, err
		}
		o, err := b.plain("open", file, fmt.Sprint(size.outsideOpens))
		if err != nil {
			return m, err
		}
		call, open = append(call, c.loopCPU/float64(size.outsideCalls)*1e9), append(open, o.loopCPU/float64(size.outsideOpens)*1e9)
	}
	m.call, m.open = median(call), median(open)
	if !startsBeside(n) {
		return m, nil
	}
	for range b.n(11, 5) {
		p, err := b.plainTrue()
		if err != nil {
			return m, err
		}
		s, err := b.execute(nil, b.tool("runner-exec"), "-q", "--run-id", "bench", "--probes", probes, "--archive", b.archive(), "--", "/bin/true")
		if err != nil {
			return m, err
		}
		m.start.add(p.wall, s.wall)
		m.bad = cmp.Or(m.bad, whole(b.archive()))
	}
	return m, nil
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

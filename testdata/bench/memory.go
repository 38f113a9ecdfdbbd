//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

const memoryEvents, memoryLimit = 5_000_000, 64 << 20

// memory measures the largest resident set of each stage at 5 million events: in a live
// run, where it reads /proc while the stages work, and of each stage separately on a
// generated stream.
func (b *bench) memory() error {
	peak := map[string]int64{}
	note := "generated stream"
	if b.cannot == "" {
		if err := b.liveMemory(peak); err != nil {
			return err
		}
		note = "live open loop and generated stream"
	}
	raw := filepath.Join(b.dir, "raw5.ndjson")
	if err := rawStream(raw, memoryEvents); err != nil {
		return err
	}
	defer os.Remove(raw)
	joined := raw + ".joined"
	archive := raw + ".tar.gz"
	for _, step := range []struct{ name, in, out string }{
		{"runner-normalize", raw, raw + ".kernel"}, {"runner-correlate", raw + ".kernel", joined},
		{"runner-pack", joined, archive}, {"runner-verify", archive, ""},
	} {
		script := `exec "$1" "$2" >"$3"`
		if step.name == "runner-pack" {
			script = `exec "$1" -o "$3" "$2"`
		} else if step.out == "" {
			step.out = os.DevNull
		}
		s, err := b.execute(nil, "/bin/sh", "-c", script, "sh", b.tool(step.name), step.in, step.out)
		if err != nil {
			return err
		}
		peak[step.name] = max(peak[step.name], s.rss)
		os.Remove(step.in)
	}
	for _, name := range []string{"runner-exec", "runner-capture", "runner-normalize", "runner-correlate", "runner-pack", "runner-verify"} {
		if n, ok := peak[name]; ok {
			l := limit{bound: memoryLimit, text: "< 64 MiB"}
			b.table.add(row{what: "RSS of " + name, measured: fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)),
				target: l.text, verdict: l.verdict(float64(n+1), true), note: "5,000,000 events, " + note})
		}
	}
	return nil
}

// liveMemory watches the stages of a measured run of 5 million opens.
func (b *bench) liveMemory(peak map[string]int64) error {
	file := filepath.Join(b.dir, "opened5")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	c := exec.Command(b.tool("runner-exec"), "--run-id", "bench", "--archive", b.archive(), "--",
		b.self, workloadArg, "open", file, strconv.Itoa(memoryEvents))
	if err := c.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case err := <-done:
			if err == nil {
				err = counted(schemas.EventOpenat, file, memoryEvents)(b.archive())
			}
			return err
		case <-time.After(10 * time.Millisecond):
			for _, pid := range append(children(c.Process.Pid), c.Process.Pid) {
				if name, n := highWater(pid); slices.Contains([]string{"runner-exec", "runner-capture", "runner-normalize", "runner-correlate", "runner-pack"}, name) {
					peak[name] = max(peak[name], n)
				}
			}
		}
	}
}

// children are the processes that any thread of pid started and that still run.
func children(pid int) (out []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// highWater is a process's name, which the kernel cuts after 15 bytes, and its
// largest resident set in bytes.
func highWater(pid int) (name string, bytes int64) {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			bytes = kb << 10
		}
	}
	return filepath.Base(exe), bytes
}

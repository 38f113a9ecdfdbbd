//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// readers are the tools that read an archive, as they are measured.
var readers = []struct {
	name string
	args func(at func(string) string, archive string) []string // at is where an output of this name goes
}{
	{"runner-lint", func(at func(string) string, archive string) []string {
		return []string{"--fail-on", "error", "--report", at("lint.json"), archive}
	}},
	{"runner-diff", func(at func(string) string, archive string) []string {
		return []string{"--report", at("diff.json"), "--lock", lockOf(filepath.Dir(archive)), archive}
	}},
	{"runner-otel", func(at func(string) string, archive string) []string {
		return []string{"--traces", at("traces.jsonl"), "--logs", at("logs.jsonl"), "--mapping-report", at("mapping.json"), archive}
	}},
}

// lockOf is the lock file that runner-diff compares with.
func lockOf(dir string) string { return filepath.Join(dir, "capabilities.lock.json") }

// writeLock makes that lock file, from a tenth of the lines.
func (b *bench) writeLock(path []string) error {
	raw := filepath.Join(b.dir, "tenth.ndjson")
	if err := rawStream(raw, million/10); err != nil {
		return err
	}
	archive, err := b.packed(raw)
	if err == nil {
		_, err = b.execute(path, b.tool("runner-diff"), "--write-lock", lockOf(b.dir), archive)
	}
	return err
}

const readerMemory = 128 << 20

// readers compares each with runner-verify on an archive of a million kernel lines. The memory is that of
// all processes that a reader starts.
func (b *bench) readers() error {
	raw, err := b.generated()
	if err != nil {
		return err
	}
	archive, err := b.packed(raw)
	if err != nil {
		return err
	}
	path := []string{"PATH=" + b.bin + ":" + os.Getenv("PATH")}
	if err := b.writeLock(path); err != nil {
		return err
	}
	for _, r := range readers {
		var wall, cpu series
		var tool, verify sample
		var peak int64
		err := interleave(b.n(5, 3), func() (err error) {
			verify, err = b.execute(nil, b.tool("runner-verify"), archive)
			return err
		}, func() (err error) {
			out, err := os.MkdirTemp(b.dir, "outputs") // which no run has to free for the next one
			if err != nil {
				return err
			}
			defer os.RemoveAll(out)
			at := func(name string) string { return filepath.Join(out, name) }
			script := `"$@" >/dev/null; case $? in 0|1|4) ;; *) exit 1; esac` // answers; 4 of runner-diff: a million lines are more items than it keeps
			tool, err = b.execute(path, append([]string{"/bin/sh", "-c", script, "sh", b.tool(r.name)}, r.args(at, archive)...)...)
			wall.add(verify.wall, tool.wall)
			cpu.add(verify.cpu, tool.cpu)
			peak = max(peak, tool.rss)
			return err
		})
		if err != nil {
			return err
		}
		l := limit{bound: 2, text: "<= 2"}
		ratio := median(wall.ratios())
		b.table.add(row{what: r.name + ", 1,000,000 kernel lines", plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)),
			ratio: times(ratio), spread: span(wall.ratios(), "%.2f"), cpu: times(median(cpu.ratios())), target: l.text, verdict: l.verdict(ratio, true), note: "runner-verify = 1"})
		m := limit{bound: readerMemory, text: "< 128 MiB"}
		b.table.add(row{what: "RSS of " + r.name, measured: fmt.Sprintf("%.1f MiB", float64(peak)/(1<<20)), target: m.text, verdict: m.verdict(float64(peak), peak > 0), note: "the same archive"})
	}
	return nil
}

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// correlate measures the join of a million kernel lines and a thousand tool calls. It
// compares it with the minimum for such a stream: reading it to its end and checking
// its lines, its trailer and its digest.
func (b *bench) correlate() error {
	// In a real build, such as that of build.go, two of five names are new.
	if err := b.correlateOne("two of five names new", 4); err != nil {
		return err
	}
	if b.short {
		return nil
	}
	return b.correlateOne("nearly every name new", 9)
}

func (b *bench) correlateOne(what string, fresh int) error {
	c := &calls{n: 1000, each: 1000, fresh: fresh, hex: "0123456789abcdef"}
	raw, log, in := filepath.Join(b.dir, "calls.ndjson"), filepath.Join(b.dir, "policy.ndjson"), filepath.Join(b.dir, "windows.ndjson")
	if err := c.write(raw); err != nil {
		return err
	}
	if err := c.writeLog(log); err != nil {
		return err
	}
	_, err := b.execute(nil, "/bin/sh", "-c", `"$1" --windows "$2" >"$3"`, "sh", b.tool("runner-normalize"), raw, in)
	os.Remove(raw)
	if err != nil {
		return err
	}
	defer os.Remove(in)
	join := func(to string) (sample, error) {
		return b.execute(nil, "/bin/sh", "-c", `exec "$1" --policy "$2" "$3" >"$4"`, "sh", b.tool("runner-correlate"), log, in, to)
	}
	note, whole, err := b.joined(c, join)
	if err != nil {
		return err
	}
	var wall, cpu, plain series
	var read, measured sample
	var rss int64
	runs := 0
	book := func() error {
		if runs++; runs%2 == 1 {
			return nil
		}
		sum, err := b.execute(nil, "sha256sum", in)
		wall.add(read.loop, measured.wall)
		cpu.add(read.loopCPU, measured.cpu)
		plain.add(sum.wall, measured.wall)
		return err
	}
	err = interleave(b.n(7, 3), func() (err error) {
		if read, err = b.plain("read", in); err != nil {
			return err
		}
		return book()
	}, func() (err error) {
		if measured, err = join(os.DevNull); err != nil {
			return err
		}
		rss = max(rss, measured.rss)
		return book()
	})
	if err != nil {
		return err
	}
	r := median(wall.ratios())
	l := atMost(2)
	b.table.add(row{what: "runner-correlate, 1,000,000 lines, 1,000 calls", plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)),
		ratio: times(r), spread: span(wall.ratios(), "%.2f"), cpu: times(median(cpu.ratios())), target: l.text, verdict: l.verdict(r, whole),
		note: fmt.Sprintf("%s; plain: reading and checking the input; of sha256sum's %s: %s; %s", what, seconds(median(plain.plain)), times(median(plain.ratios())), note)})
	l = limit{bound: 128 << 20, text: "< 128 MiB"}
	b.table.add(row{what: "  RSS of runner-correlate", measured: fmt.Sprintf("%.1f MiB", float64(rss)/(1<<20)),
		target: l.text, verdict: l.verdict(float64(rss+1), rss > 0), note: fmt.Sprintf("the largest of %d runs", len(wall.plain))})
	return nil
}

// joined checks what the join writes: all lines, a binding for each call, and in the
// bindings exactly the lines of the calls.
func (b *bench) joined(c *calls, join func(to string) (sample, error)) (note string, whole bool, err error) {
	path := filepath.Join(b.dir, "joined.ndjson")
	defer os.Remove(path)
	if _, err := join(path); err != nil {
		return "", false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	in, err := stream.NewReader(f, path, schemas.StreamJoined)
	if err != nil {
		return "", false, err
	}
	lines, bindings, counted, entries := 0, 0, uint64(0), 0
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", false, err
		}
		switch rec.Schema {
		case schemas.SchemaKernelEvent:
			lines++
		case schemas.SchemaSurfaceEntry:
			entries++
		case schemas.SchemaBinding:
			l, err := schemas.ParseBinding(rec.Bytes)
			if err != nil {
				return "", false, err
			}
			bindings++
			counted += l.Binding.KernelEventCount
		}
	}
	want := c.events() - forksFirst
	if lines != want || bindings != c.n || counted != uint64(want) {
		return fmt.Sprintf("%d lines, %d bindings of %d lines, expected %d, %d and all", lines, bindings, counted, want, c.n), false, nil
	}
	return fmt.Sprintf("%s surface entries", thousands(int64(entries))), true, nil
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const million = 1_000_000

// generated is a raw stream of a million events, written once.
func (b *bench) generated() (string, error) {
	path := filepath.Join(b.dir, "raw.ndjson")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, rawStream(path, million)
}

// packed is the archive of a raw stream, made by the stages.
func (b *bench) packed(raw string) (string, error) {
	archive := raw + ".tar.gz"
	_, err := b.execute([]string{"PATH=" + b.bin + ":" + os.Getenv("PATH")}, "/bin/sh", "-c",
		`runner-normalize "$1" | runner-correlate | runner-pack -o "$2"`, "sh", raw, archive)
	return archive, err
}

// normalize measures events a second on one core.
func (b *bench) normalize() error {
	raw, err := b.generated()
	if err != nil {
		return err
	}
	var wall, cpu []float64
	for range b.n(5, 3) {
		s, err := b.execute([]string{"GOMAXPROCS=1"}, "/bin/sh", "-c", `exec "$1" "$2" >/dev/null`, "sh", b.tool("runner-normalize"), raw)
		if err != nil {
			return err
		}
		wall, cpu = append(wall, million/s.wall), append(cpu, million/s.cpu)
	}
	l := limit{bound: 700_000, atLeast: true, text: ">= 700,000/s"}
	r := median(cpu)
	b.table.add(row{what: "runner-normalize, 1,000,000 events", measured: thousands(int64(r)) + "/s", spread: span(kilo(cpu), "%.0f") + "k/s",
		target: l.text, verdict: l.verdict(r, true), note: fmt.Sprintf("per CPU second, GOMAXPROCS=1; per second of wall %s", thousands(int64(median(wall))))})
	return nil
}

func kilo(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x / 1e3
	}
	return out
}

// verify compares runner-verify with the minimum for reading an archive.
func (b *bench) verify() error {
	raw, err := b.generated()
	if err != nil {
		return err
	}
	archive, err := b.packed(raw)
	if err != nil {
		return err
	}
	if err := b.verifyOne("runner-verify, archive of a build", archive); err != nil {
		return err
	}
	if _, err := os.Stat(b.loopArchive()); err != nil {
		return nil // no loop was recorded
	}
	return b.verifyOne("runner-verify, archive of the open loop", b.loopArchive())
}

func (b *bench) verifyOne(what, archive string) error {
	rec, err := readRecord(archive, func(uint32, []byte) {})
	if err != nil {
		return err
	}
	var wall, cpu series
	// Speed is the inverse of time, so here the minimum is "measured".
	var tool, bare sample
	runs := 0
	book := func() {
		if runs++; runs%2 == 0 {
			wall.add(tool.wall, bare.wall)
			cpu.add(tool.cpu, bare.cpu)
		}
	}
	err = interleave(b.n(5, 3), func() (err error) {
		bare, err = b.execute(nil, "/bin/sh", "-c", `gzip -dc "$1" | sha256sum`, "sh", archive)
		book()
		return err
	}, func() (err error) {
		tool, err = b.execute(nil, b.tool("runner-verify"), archive)
		book()
		return err
	})
	if err != nil {
		return err
	}
	l := limit{bound: 0.5, atLeast: true, text: ">= 0.5"}
	r := median(wall.ratios())
	b.table.add(row{what: what, plain: seconds(median(wall.measured)), measured: seconds(median(wall.plain)),
		ratio: times(r), spread: span(wall.ratios(), "%.2f"), cpu: times(median(cpu.ratios())), target: l.text, verdict: l.verdict(r, true),
		note: fmt.Sprintf("speed of gzip -dc | sha256sum = 1; %s kernel lines", thousands(rec.lines))})
	return nil
}

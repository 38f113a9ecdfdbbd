//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
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

// stagesAlone measures events a second of each stage on one core, with the seals that runner-exec asks for: of a generated stream in
// which most names differ, and of the open loop.
func (b *bench) stagesAlone() error {
	raw := filepath.Join(b.dir, "cheap.ndjson")
	if err := rawEvents(raw, million, schemas.ChecksumCRC32C, typical); err != nil {
		return err
	}
	if err := b.stagesOf(raw, "names that differ"); err != nil || b.cannot != "" {
		return err
	}
	file, keep := filepath.Join(b.dir, "opened"), filepath.Join(b.dir, "kept")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	if _, err := b.execute(nil, b.tool("runner-exec"), "-q", "--run-id", "bench", "--keep", keep, "--archive", b.archive(), "--",
		b.self, workloadArg, "open", file, fmt.Sprint(million)); err != nil {
		return err
	}
	cheap := filepath.Join(b.dir, "loop.ndjson")
	if err := reseal(filepath.Join(keep, "1-raw.ndjson"), cheap); err != nil {
		return err
	}
	return b.stagesOf(cheap, "one name")
}

// reseal copies a kernel.raw stream to one that is sealed by CRC32C, as between the stages of a run.
func reseal(from, to string) (err error) {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := stream.NewReader(f, from, schemas.StreamRaw)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := in.Header()
	h.Checksum = schemas.ChecksumCRC32C
	w, err := stream.NewWriter(out, h)
	for err == nil {
		var rec stream.Record
		if rec, err = in.Next(); err == nil {
			err = w.WriteRaw(rec.Bytes)
		}
	}
	if err != io.EOF {
		return err
	}
	return w.Seal(in.Trailer().Status)
}

func (b *bench) stagesOf(raw, what string) error {
	kernel, joined := raw+".kernel", raw+".joined"
	for _, s := range []struct {
		tool, script string
		bound        float64
	}{
		{"runner-normalize", `exec "$1" --checksum crc32c --filtered --processes "$2" >"$3"`, 3}, {"runner-correlate", `exec "$1" --checksum crc32c "$3" >"$4"`, 4},
		{"runner-pack", `exec "$1" -q -o "$5" "$4"`, 2.5},
	} {
		var cpu, wall []float64
		run := func(kernel, joined string) (sample, error) {
			return b.execute([]string{"GOMAXPROCS=1"}, "/bin/sh", "-c", s.script, "sh", b.tool(s.tool), raw, kernel, joined, b.archive())
		}
		// What the next stage reads is made first, and not measured: to write a file takes the kernel longer than the stage.
		if _, err := run(kernel, joined); err != nil {
			return err
		}
		out := [2]string{os.DevNull, os.DevNull}
		switch s.tool {
		case "runner-correlate":
			out[0] = kernel
		case "runner-pack":
			out[1] = joined
		}
		for range b.n(5, 3) {
			r, err := run(out[0], out[1])
			if err != nil {
				return err
			}
			wall, cpu = append(wall, 1/r.wall), append(cpu, 1/r.cpu)
		}
		l := limit{bound: s.bound, atLeast: true, text: fmt.Sprintf(">= %gM/s", s.bound)}
		m := median(cpu)
		b.table.add(row{what: s.tool + " alone, 1,000,000 events, " + what, measured: fmt.Sprintf("%.2fM/s", m), spread: span(cpu, "%.2f") + "M/s",
			target: l.text, verdict: l.verdict(m, true), note: fmt.Sprintf("per CPU second, GOMAXPROCS=1, streams to /dev/null; per second of wall %.2fM", median(wall))})
	}
	return nil
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
	if err := b.verifySmall(); err != nil {
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
	t, lt := median(wall.plain), limit{}
	if archive == b.loopArchive() { // a tar of 235 MB
		lt = limit{bound: 0.25, text: "<= 250ms"}
	}
	b.table.add(row{what: what, measured: seconds(t), spread: span(milli(wall.plain), "%.0f") + "ms", target: lt.text, verdict: lt.verdict(t, true),
		note: thousands(rec.lines) + " kernel lines"})
	l := limit{bound: 0.5, atLeast: true, text: ">= 0.5"}
	r := median(wall.ratios())
	b.table.add(row{what: "  its speed", plain: seconds(median(wall.measured)), measured: seconds(median(wall.plain)),
		ratio: times(r), spread: span(wall.ratios(), "%.2f"), cpu: times(median(cpu.ratios())), target: l.text, verdict: l.verdict(r, true),
		note: fmt.Sprintf("speed of gzip -dc | sha256sum = 1; %s kernel lines", thousands(rec.lines))})
	return nil
}

// verifySmall measures the least that runner-verify takes.
func (b *bench) verifySmall() error {
	archive := filepath.Join(b.dir, "small.tar.gz")
	if _, err := b.execute(nil, b.tool("runner-exec"), "-q", "--no-kernel", "--archive", archive, "--", "/bin/true"); err != nil {
		return err
	}
	var wall, cpu []float64
	for range b.n(25, 11) {
		s, err := b.execute(nil, b.tool("runner-verify"), archive)
		if err != nil {
			return err
		}
		wall, cpu = append(wall, s.wall), append(cpu, s.cpu)
	}
	m, l := median(wall), limit{bound: 0.006, text: "<= 6ms"}
	b.table.add(row{what: "runner-verify, a small archive", measured: seconds(m), spread: span(milli(wall), "%.1f") + "ms", target: l.text, verdict: l.verdict(m, true),
		note: "CPU " + seconds(median(cpu))})
	return nil
}

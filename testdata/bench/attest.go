//go:build linux

package main

import (
	"os"
	"path/filepath"
)

// attest measures what a signature adds to runner-verify, on the archive of a recorded run: making it, which
// verifies the archive too, and checking it.
func (b *bench) attest() error {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	archive, key, signed := at("attest.tar.gz"), at("attest.pem"), at("attest.intoto.jsonl")
	joined, err := filepath.Abs("testdata/runs/processes/3-joined.ndjson")
	if err != nil {
		return err
	}
	path := []string{"PATH=" + b.bin + ":" + os.Getenv("PATH")}
	if _, err := b.execute(path, "/bin/sh", "-c", `runner-pack -o "$1" "$3" && { test -f "$2" || runner-attest --generate-key "$2" 2>/dev/null; }`, "sh", archive, key, joined); err != nil {
		return err
	}
	var wall, cpu series
	for range b.n(20, 10) {
		plain, err := b.execute(nil, b.tool("runner-verify"), archive)
		if err != nil {
			return err
		}
		both, err := b.execute(path, "/bin/sh", "-c", `runner-attest --force --key "$1" -o "$2" "$3" && runner-verify --attestation "$2" --public-key "$1.pub" "$3"`, "sh", key, signed, archive)
		if err != nil {
			return err
		}
		wall.add(plain.wall, both.wall)
		cpu.add(plain.cpu, both.cpu)
	}
	d, l := median(wall.differences()), limit{bound: 0.050, text: "<= 50ms"}
	b.table.add(row{what: "attest + verify, added", plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)), ratio: "+" + seconds(d),
		spread: span(milli(wall.differences()), "%.0f") + "ms", target: l.text, verdict: l.verdict(d, true), note: "runner-verify of a recorded run; " + seconds(median(cpu.differences())) + " CPU"})
	return nil
}

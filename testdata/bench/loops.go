//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/schemas"
)

// open measures a loop that opens and closes one file.
func (b *bench) open() error {
	const stracedCount = 100_000
	count := b.sizes().opens
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		return err
	}
	c, err := b.compare(b.n(5, 3), []string{"open", file, fmt.Sprint(count)}, counted(schemas.EventOpenat, file, count))
	if err != nil {
		return err
	}
	r := c.row(rowOpens, &c.loop, atMost(1.45), fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own))))
	b.table.add(r.ofCPU("%s opens", count))
	// verify uses this archive too: it compresses best.
	if err := os.Rename(b.archive(), b.loopArchive()); err != nil {
		return err
	}
	return b.withPeers("100,000 times", b.n(3, 1), "openat", "open", file, fmt.Sprint(stracedCount))
}

func (b *bench) loopArchive() string { return filepath.Join(b.dir, "loop.tar.gz") }

// spawn measures a loop that starts a program and waits for it.
func (b *bench) spawn() error {
	count := b.sizes().spawns
	// A line has the resolved path, and on many systems /bin is a link.
	program, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		return err
	}
	c, err := b.compare(b.n(5, 3), []string{"spawn", "/bin/true", fmt.Sprint(count)}, counted(schemas.EventExec, program, count))
	if err != nil {
		return err
	}
	r := c.row(rowSpawn, &c.loop, atMost(1.1), fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own))))
	b.table.add(r.ofCPU("%s programs", count))
	return b.withPeers("2,000 times", b.n(3, 1), "openat,execve", "spawn", "/bin/true", fmt.Sprint(count))
}

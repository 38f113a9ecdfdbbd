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
	const count, stracedCount = 1_000_000, 100_000
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		return err
	}
	c, err := b.compare(b.n(5, 3), []string{"open", file, fmt.Sprint(count)}, counted(schemas.EventOpenat, file, count))
	if err != nil {
		return err
	}
	b.table.add(c.row("open+close, 1,000,000 times", &c.loop, atMost(1.45),
		fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own)))))
	// verify uses this archive too: it compresses best.
	if err := os.Rename(b.archive(), b.loopArchive()); err != nil {
		return err
	}
	return b.withPeers("100,000 times", b.n(3, 1), "openat", "open", file, fmt.Sprint(stracedCount))
}

func (b *bench) loopArchive() string { return filepath.Join(b.dir, "loop.tar.gz") }

// spawn measures a loop that starts a program and waits for it.
func (b *bench) spawn() error {
	const count = 2000
	// A line has the resolved path, and on many systems /bin is a link.
	program, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		return err
	}
	c, err := b.compare(b.n(5, 3), []string{"spawn", "/bin/true", fmt.Sprint(count)}, counted(schemas.EventExec, program, count))
	if err != nil {
		return err
	}
	b.table.add(c.row("fork+exec /bin/true, 2,000 times", &c.loop, atMost(1.1),
		fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own)))))
	return b.withPeers("2,000 times", b.n(3, 1), "openat,execve", "spawn", "/bin/true", fmt.Sprint(count))
}

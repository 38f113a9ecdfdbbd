//go:build linux

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	swaps = 100000
	slot  = 200 // a descriptor that the Go runtime does not use
)

// swap opens dir/hidden again and again on one descriptor while another thread puts
// dir/decoy over it as fast as it can.
func swap(dir string) {
	time.Sleep(time.Nanosecond) // the runtime makes its poller with its first timer, which must not be on the slot
	decoy, err := unix.Open(filepath.Join(dir, "decoy"), unix.O_RDONLY, 0)
	if err != nil {
		os.Exit(1)
	}
	for {
		fd, err := unix.Open("/", unix.O_PATH, 0) // fill the table up to the slot
		if err != nil || fd >= slot {
			break
		}
	}
	pin := func(cpu int) {
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(cpu)
		unix.SchedSetaffinity(0, &set)
	}
	go func() {
		pin(1)
		for {
			unix.Dup3(decoy, slot, 0)
		}
	}()
	pin(0)
	for range swaps {
		unix.Close(slot)
		fd, err := unix.Open(filepath.Join(dir, "hidden"), unix.O_RDONLY, 0)
		if err != nil {
			os.Exit(1)
		}
		if fd != slot {
			unix.Close(fd)
		}
	}
}

// A thread that swaps descriptors must not be able to give an open another name.
func TestSwappedDescriptor(t *testing.T) {
	cgroup, dir := needKernel(t), t.TempDir()
	for _, name := range []string{"hidden", "decoy"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hidden, decoy, raced := 0, 0, 0
	s := start(t, strings.NewReader(""), "--cgroup", cgroup)
	s.each = func(e record) {
		switch {
		case slices.Contains(e.Marks, "fd_race") && e.Path == "" && strings.HasSuffix(e.UserPath, "/hidden"):
			raced++
		case strings.HasSuffix(e.Path, "/hidden"):
			hidden++
		case strings.HasSuffix(e.Path, "/decoy"):
			decoy++
		}
	}
	s.ready(func() {
		if out, err := inCgroup(t, cgroup, "swap", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	_, h, _ := s.result()
	if dropped := h.Counters["dropped"]; dropped == 0 && hidden+raced != swaps || hidden+raced > swaps || decoy != 1 {
		t.Errorf("of %d opens of one file %d read as that file and %d as raced; %d read as the decoy, which was opened once (%d dropped)",
			swaps, hidden, raced, decoy, dropped)
	}
	if h.Counters["lexical"] < uint64(raced) {
		t.Errorf("%d raced opens, but lexical is %d", raced, h.Counters["lexical"])
	}
	t.Logf("%d of %d opens lost their descriptor before the probe looked", raced, swaps)
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// places opens files from where their names are not what they seem: a clone of a
// directory that is mounted nowhere, and a chroot that stops a "..".
func places(dir string) {
	runtime.LockOSThread()
	tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Join(dir, "outer"), unix.OPEN_TREE_CLONE)
	if err == nil {
		unix.Openat(tree, "file", unix.O_RDONLY, 0)
		unix.Openat(tree, "no-file", unix.O_RDONLY, 0)
	}
	if unix.Chroot(filepath.Join(dir, "outer")) != nil || unix.Chdir("/") != nil {
		os.Exit(1)
	}
	unix.Open("../../no-file", unix.O_RDONLY, 0)
	if err != nil { // no open_tree before Linux 5.2
		os.Exit(2)
	}
}

func TestPlaces(t *testing.T) {
	cgroup, dir := needKernel(t), t.TempDir()
	outer := filepath.Join(dir, "outer")
	if err := os.Mkdir(outer, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outer, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	s := start(t, strings.NewReader(""), "--cgroup", cgroup)
	s.each = func(e record) {
		detached, chroot := slices.Contains(e.Marks, "detached"), slices.Contains(e.Marks, "chroot")
		switch {
		case strings.HasPrefix(e.Path, "detached:/") && strings.HasSuffix(e.Path, "/outer/file") && detached:
			got["opened in the clone"]++
		case e.UserPath == "no-file" && strings.HasPrefix(e.Base, "detached:/") && strings.HasSuffix(e.Base, "/outer") && detached:
			got["failed in the clone"]++
		case e.UserPath == "../../no-file" && e.Base == outer && chroot:
			got["dotdot"]++
		case strings.HasSuffix(e.Path+e.UserPath, "file"):
			t.Errorf("recorded %+v", e)
		}
	}
	s.ready(func() {
		if err := inCgroup(t, cgroup, "places", dir).Run(); err != nil {
			t.Fatal(err)
		}
	})
	s.result()
	for _, what := range []string{"opened in the clone", "failed in the clone", "dotdot"} {
		if got[what] != 1 {
			t.Errorf("%s: %d records, want 1", what, got[what])
		}
	}
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

var placeChecks = []check{
	{"paths", true, paths},
	{"paths-overlay", false, overlayPaths},
	{"processes", false, processes},
}

// shapesOf measures some shapes of the workload of that name in one run.
func shapesOf(m *machine, names ...string) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	r, skips, err := m.workload([]string{"--grace", "5s"}, "shapes", strings.Join(names, ","), m.dir())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d lines of %s, each exactly as made%s", len(r.lines), strings.Join(names, ", "), skipped(skips)), nil
}

// paths: other roots, private mounts, renamed and deleted ancestors, mounts that are
// mounted nowhere. The kinds have memfd, long, deleted and bound paths.
func paths(m *machine) (string, error) {
	return shapesOf(m, "chroot", "mount-namespace", "ancestors", "detached")
}

func overlayPaths(m *machine) (string, error) {
	if err := needFilesystem("overlay"); err != nil {
		return "", err
	}
	return shapesOf(m, "overlay")
}

// processes: those that are hard to follow. The last one executes another program.
func processes(m *machine) (string, error) {
	return shapesOf(m, "fork", "quick-exit", "siblings", "thread", "daemon", "vfork", "child-cgroup", "cold-page", "thread-exec")
}

// moduleDirs are where a guest has modules of its kernel, if it has any.
var moduleDirs = []string{"/mod", "/lib/modules"}

// needFilesystem loads the module of a file system, or says that there is none.
func needFilesystem(name string) error {
	has := func() bool {
		b, _ := os.ReadFile("/proc/filesystems")
		return strings.Contains(string(b), "\t"+name+"\n")
	}
	if has() {
		return nil
	}
	why := "no module of that name"
	for _, dir := range moduleDirs {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || filepath.Base(p) != name+".ko" {
				return nil
			}
			f, err := os.Open(p)
			if err != nil {
				return nil
			}
			defer f.Close()
			if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
				why = p + ": " + err.Error()
			}
			return filepath.SkipAll
		})
	}
	if has() {
		return nil
	}
	return absent("the file system " + name + ": " + why)
}

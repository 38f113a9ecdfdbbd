//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

var placeChecks = []check{{"paths", true, paths}}

// places are shapes that open files from processes that are hard to follow and under names
// that are not what they seem: other roots, private and detached mounts, renamed and deleted
// ancestors. The kinds have memfd, long, deleted and bound paths. The last shape executes
// another program.
var places = []string{"chroot", "mount-namespace", "ancestors", "detached", "fork", "quick-exit", "siblings", "thread",
	"daemon", "vfork", "child-cgroup", "cold-page", "thread-exec"}

func paths(m *machine) (string, error) {
	r, err := m.ordinary()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, in the run of kinds, each exactly as made", strings.Join(r.places, ", ")) + r.without, nil
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

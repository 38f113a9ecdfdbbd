//go:build amd64 || arm64

package bpf

import (
	"errors"
	"os"
	"path/filepath"
)

// keptName is the directory in a set that says that it stays when no run uses it.
const keptName = "kept"

func isKept(path string) bool {
	_, err := os.Lstat(filepath.Join(path, keptName))
	return err == nil
}

func keepSet(path string) error {
	if err := os.Mkdir(filepath.Join(path, keptName), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// Load attaches the shared probes of this build, where they are not attached yet, and keeps them until Unload: no run has to load
// them then, and every process of the machine pays for them also while there is none. It reports whether they were attached
// before. Sets of other builds are kept no longer: who loads after an update means this one.
func Load() (before bool, err error) {
	sh, err := lockShare(sharePatience)
	if err != nil {
		return false, err
	}
	defer sh.unlock()
	sh.sweep()
	path := filepath.Join(sh.path, ObjectsDigest())
	was, e := os.Lstat(path)
	set, err := sh.openOrMake(path)
	if err != nil {
		return false, err
	}
	before = e == nil && os.SameFile(was, set.at) // else it was damaged, and is another one now
	set.close()
	if err := keepSet(path); err != nil {
		sh.tidy(path)
		return false, err
	}
	entries, err := os.ReadDir(sh.path)
	if err != nil {
		return before, err
	}
	for _, e := range entries {
		if other := filepath.Join(sh.path, e.Name()); other != path && isKept(other) {
			err = errors.Join(err, os.Remove(filepath.Join(other, keptName)))
			sh.tidy(other)
		}
	}
	return before, err
}

// openOrMake opens the set, and makes it if there is none. One that is not as it was made is made anew: runs that use it hold what
// they need. If it was kept, so is the new one.
func (sh *share) openOrMake(path string) (*probeSet, error) {
	set, err := openSet(path)
	kept := false
	if errors.As(err, new(*damagedError)) {
		kept = isKept(path)
		if err = removeSet(path); err == nil {
			err = os.ErrNotExist
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		return set, err
	}
	if err := makeSet(path); err != nil {
		return nil, err
	}
	if kept {
		if err := keepSet(path); err != nil {
			return nil, errors.Join(err, removeSet(path))
		}
	}
	return openSet(path)
}

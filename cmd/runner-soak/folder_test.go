package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func folderOptions(dir string, iterations int, command string) *Options {
	return &Options{Dir: dir, Command: []string{command}, Faults: []Fault{{Name: noFault, Wrapper: []string{}}, {Name: "slow", Wrapper: []string{}}}, Plan: Plan{Iterations: iterations}}
}

// TestUndo: nothing stays of a folder in which no run was made, and its lock goes after all that it protects.
func TestUndo(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	f, err := openFolder(folderOptions(dir, 2, "true"))
	testkit.Must(t, err)
	lock := slices.Index(f.paths, filepath.Join(dir, lockFile))
	for _, name := range []string{planFile, noFault, "slow"} {
		if at := slices.Index(f.paths, filepath.Join(dir, name)); lock < 0 || at < lock {
			t.Errorf("%s is %d of what was made, its lock %d", name, at, lock)
		}
	}
	if f.undo(); testkit.Exists(filepath.Join(top, "a")) {
		t.Error("something stays")
	}
}

// TestStartable: a command that is not there is refused only if there is a run to make.
func TestStartable(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no-such-command")
	for _, made := range []int{0, 1, 2} {
		opt := folderOptions(filepath.Join(dir, "soak"), 2, missing)
		f, err := openFolder(opt)
		testkit.Must(t, err)
		for _, fault := range opt.Faults {
			for i := range made {
				testkit.Must(t, f.keep(fault.Name, &record{Version: recordVersion, Index: i + 1}))
			}
		}
		s := &session{opt: opt, folder: f}
		s.plan()
		if err := s.startable(); (err == nil) != (made == 2) {
			t.Errorf("%d of 2 runs are there: %v", made, err)
		}
		f.close(true)
	}
}

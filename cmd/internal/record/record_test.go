package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// write makes a record with a stream and a blob at a place.
func write(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(d.temp, "box.ndjson"), []byte("x\n"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(d.temp, BlobDir, "00"), nil, 0o600))
	return d
}

// whole reports whether nothing but the record is there.
func whole(t *testing.T, path string) bool {
	t.Helper()
	list, err := os.ReadDir(path)
	testkit.Must(t, err)
	return len(list) == 2 && testkit.Exists(filepath.Join(path, "box.ndjson")) && testkit.Exists(filepath.Join(path, BlobDir, "00"))
}

// TestNewDirectory: a directory that is not there is the record, once it is whole.
func TestNewDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	write(t, path).Discard()
	if testkit.Exists(path) {
		t.Error("a discarded record is there")
	}
	testkit.Must(t, write(t, path).Commit())
	if !whole(t, path) {
		t.Error("the record is not whole")
	}
	var coded *tool.Error
	if _, err := New(path); !errors.As(err, &coded) || coded.Code != tool.ExitUsage || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
}

// TestGivenDirectory: a directory that the user made stays the same one, with its mode, also through a symlink and after a failure.
func TestGivenDirectory(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	testkit.Must(t, os.Mkdir(path, 0o700))
	testkit.Must(t, os.Symlink("out", link))
	before, err := os.Stat(path)
	testkit.Must(t, err)
	write(t, link).Discard()
	testkit.Must(t, os.Mkdir(filepath.Join(path, tempName+"-killed"), 0o700)) // what a killed run left does not block the next one
	d := write(t, link)
	testkit.Must(t, os.WriteFile(filepath.Join(path, "box.ndjson"), []byte("mine"), 0o600)) // made meanwhile
	if err := d.Commit(); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	d.Discard()
	if b, err := os.ReadFile(filepath.Join(path, "box.ndjson")); err != nil || string(b) != "mine" || testkit.Exists(filepath.Join(path, "blobs")) {
		t.Errorf("%q, %v", b, err)
	}
	testkit.Must(t, os.Remove(filepath.Join(path, "box.ndjson")))
	testkit.Must(t, write(t, link).Commit())
	testkit.Must(t, os.Remove(filepath.Join(path, tempName+"-killed")))
	after, err := os.Lstat(path)
	testkit.Must(t, err)
	if !whole(t, path) || !os.SameFile(before, after) || after.Mode() != before.Mode() {
		t.Errorf("%v, before %v", after.Mode(), before.Mode())
	}
}

// TestMadeInBetween: what somebody else makes at the place of a record, just before it gets its name, stays as it is.
func TestMadeInBetween(t *testing.T) {
	defer func() { beforeName = func(string) {} }()
	for name, x := range map[string]struct {
		make func(path string) // called with each name that is about to be given
		ok   bool
	}{
		"an empty directory": {func(path string) { os.Mkdir(path, 0o700) }, true},
		"a file":             {func(path string) { os.WriteFile(path, []byte("mine"), 0o600) }, false},
		"a symlink":          {func(path string) { os.Symlink("/nowhere", path) }, false},
		"a directory with a stream": {func(path string) {
			os.Mkdir(path, 0o700)
			os.WriteFile(filepath.Join(path, "box.ndjson"), []byte("mine"), 0o600)
		}, false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		d := write(t, path)
		done := false
		beforeName = func(at string) {
			if !done {
				done = true
				x.make(at)
			}
		}
		err := d.Commit()
		d.Discard()
		info, gone := os.Lstat(path)
		testkit.Must(t, gone)
		switch {
		case x.ok && (err != nil || !whole(t, path) || info.Mode().Perm() != 0o700):
			t.Errorf("%s: %v, %v", name, err, info.Mode())
		case !x.ok && err == nil:
			t.Errorf("%s was replaced", name)
		}
		if b, err := os.ReadFile(filepath.Join(path, "box.ndjson")); info.IsDir() && !x.ok && (err != nil || string(b) != "mine") {
			t.Errorf("%s: %q %v", name, b, err)
		}
		if names := testkit.Names(t, dir); len(names) != 1 {
			t.Errorf("%s: there are %q", name, names)
		}
	}
}

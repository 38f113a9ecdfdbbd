// Package record is the directory that a wrapper leaves: a sealed stream, and blobs by their digests. It gets its name when
// it is whole.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// BlobDir is where the blobs are in a record, each under the 64 hexadecimal digits of its SHA-256.
const BlobDir = "blobs/sha256"

// Files of the directory of a measured run, beside the directories of wrappers.
const (
	EnvFile    = "env.json"
	StdoutFile = "stdout"
	StderrFile = "stderr"
)

// Dir is the directory while it is written. A nil Dir is no record.
type Dir struct {
	path, temp string
	given      bool // the directory was there before: what is written comes into it, and it stays the user's
	own        *scratch.Dir
	fd         *os.File // its own, where there are no locks
}

const tempName = ".runner-record"

// beforeName is called before something gets its name, for tests.
var beforeName = func(string) {}

// New makes the directory next to the place where it comes, or in it if that is there already. It must be empty then, but for
// what a killed run left. An empty path is no record.
func New(path string) (*Dir, error) {
	if path == "" {
		return nil, nil
	}
	list, err := os.ReadDir(path)
	given, near := err == nil, filepath.Dir(filepath.Clean(path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, tool.CannotWrite(path, err)
	}
	if slices.ContainsFunc(list, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), tempName) }) {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("the directory %s is not empty", schemas.Text(path)), "name a new one, or remove what is in it")
	}
	if given {
		near = path
	}
	own, err := scratch.In(near, tempName)
	if err != nil {
		return nil, tool.CannotWrite(path, err)
	}
	temp := own.Path
	d := &Dir{path: path, temp: temp, given: given, own: own}
	err = os.MkdirAll(filepath.Join(temp, BlobDir), 0o755)
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if d.fd = own.File(); err == nil && d.fd == nil {
		d.fd, err = os.Open(temp)
	}
	if err != nil {
		d.Discard()
		return nil, tool.CannotWrite(path, err)
	}
	return d, nil
}

// File is the open directory, nil for none.
func (d *Dir) File() *os.File {
	if d == nil {
		return nil
	}
	return d.fd
}

// Commit gives the record its name. A directory that was there before gets its parts, the streams last: without them it is no record.
func (d *Dir) Commit() error {
	if d == nil {
		return nil
	}
	err := giveAll(d.temp)
	switch {
	case err != nil:
	case d.given:
		err = d.fill()
	default:
		beforeName(d.path)
		if err = tool.RenameNew(d.temp, d.path); errors.Is(err, os.ErrExist) {
			err = d.fill() // somebody made it meanwhile: it stays theirs, as one that was there before
		}
	}
	if err != nil {
		return tool.CannotWrite(d.path, err)
	}
	d.temp = ""
	return d.fd.Close()
}

// fill moves what is written to the directory that was there before, all or nothing.
func (d *Dir) fill() error {
	list, err := os.ReadDir(d.temp)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b os.DirEntry) int { // directories before files
		switch {
		case a.IsDir() == b.IsDir():
			return 0
		case a.IsDir():
			return -1
		}
		return 1
	})
	for i, e := range list {
		to := filepath.Join(d.path, e.Name())
		beforeName(to)
		if err = tool.RenameNew(filepath.Join(d.temp, e.Name()), to); err != nil {
			for _, moved := range list[:i] {
				tool.RenameNew(filepath.Join(d.path, moved.Name()), filepath.Join(d.temp, moved.Name()))
			}
			return err
		}
	}
	return os.Remove(d.temp)
}

// giveAll gives the record to the user who called sudo.
func giveAll(dir string) error {
	if _, _, ok := tool.Invoker(); !ok {
		return nil
	}
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	slices.Reverse(all) // what is in a directory before it
	for _, path := range all {
		if err == nil {
			var f *os.File
			if f, err = os.Open(path); err == nil {
				err = errors.Join(tool.GiveToInvoker(f), f.Close())
			}
		}
	}
	return err
}

// Discard removes a record that was not committed.
func (d *Dir) Discard() {
	if d == nil || d.temp == "" {
		return
	}
	if d.own.Remove(); d.fd != nil {
		d.fd.Close()
	}
}

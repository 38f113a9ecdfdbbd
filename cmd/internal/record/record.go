// Package record is the directory that a wrapper leaves: a sealed stream, and blobs by their digests. It gets its name when
// it is whole.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	fd         *os.File
}

// New makes the directory next to the place where it comes, which must be empty or not there. An empty path is no record.
func New(path string) (*Dir, error) {
	if path == "" {
		return nil, nil
	}
	if list, err := os.ReadDir(path); err == nil && len(list) > 0 {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("the directory %s is not empty", schemas.Text(path)), "name a new one, or remove what is in it")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, tool.CannotWrite(path, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(path)), ".runner-record-")
	if err != nil {
		return nil, tool.CannotWrite(path, err)
	}
	d := &Dir{path: path, temp: temp}
	err = os.MkdirAll(filepath.Join(temp, BlobDir), 0o755)
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if err == nil {
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

// Commit gives the record its name. An empty directory of that name is replaced.
func (d *Dir) Commit() error {
	if d == nil {
		return nil
	}
	err := giveAll(d.temp)
	if err == nil {
		err = os.Rename(d.temp, d.path)
	}
	if err != nil {
		return tool.CannotWrite(d.path, err)
	}
	d.temp = ""
	return d.fd.Close()
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
	if d.fd != nil {
		d.fd.Close()
	}
	os.RemoveAll(d.temp)
}

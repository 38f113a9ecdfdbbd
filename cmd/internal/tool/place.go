package tool

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// EnvArchiveDir names the directory of archives that were given no name.
const EnvArchiveDir = "RUNNER_ARCHIVE_DIR"

// DefaultArchive is the name of the archive of a run that was given none. It makes the directory.
func DefaultArchive(runID string) (string, error) {
	name := "assay-runner-spike-" + runID + ".tar.gz"
	dir := os.Getenv(EnvArchiveDir)
	if dir == "" {
		return name, nil
	}
	if err := MakeDirs(dir); err != nil {
		return "", Fail(ExitIO, fmt.Errorf("making the directory of $%s, %s: %w", EnvArchiveDir, dir, cause(err)))
	}
	return filepath.Join(dir, name), nil
}

// MakeDirs makes a directory and those above it. What it makes belongs to the user who called
// sudo, so that this user can write there later.
func MakeDirs(path string) error {
	_, err := NewDirs(path)
	return err
}

// Made are directories that a tool made itself, each before those in it.
type Made []string

// NewDirs is MakeDirs for what may be removed again: it says which directories were not there before.
func NewDirs(path string) (made Made, err error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, nil
	}
	if above := filepath.Dir(path); above != path {
		if made, err = NewDirs(above); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		if st, statErr := os.Stat(path); statErr == nil && st.IsDir() {
			return made, nil // somebody else made it meanwhile
		}
		made.Remove()
		return nil, err
	}
	made = append(made, path)
	return made, GiveDirToInvoker(path)
}

// Remove removes those that are empty.
func (m Made) Remove() {
	for _, dir := range slices.Backward(m) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// Replaceable refuses to replace a file that is not what the tool writes: it is most likely a mistyped
// name. An empty file can be replaced. Commit looks again.
func Replaceable(force bool, path, what string, ours func(io.Reader) bool) error {
	if force {
		kept.Delete(filepath.Clean(path))
		return nil
	}
	kept.Store(filepath.Clean(path), keeper{what, ours})
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		if ours(f) {
			return nil
		}
	}
	return Fail(ExitUsage, fmt.Errorf("%s exists and is not %s: it is kept", shown(path), what), "give another name, or --force to replace it")
}

// IsArchive reports whether something begins as the archive of a run.
func IsArchive(r io.Reader) bool {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return false
		}
		b = bufio.NewReader(z)
	}
	name := append([]byte(bundle.ManifestName), 0)
	head, _ := b.Peek(len(name))
	return bytes.Equal(head, name)
}

// IsStream reports whether something begins as a stream of a stage.
func IsStream(r io.Reader) bool { return Begins(`{"schema":"` + schemas.SchemaHeader + `"`)(r) }

// Bounds of free space, in bytes: below the first nothing is begun, below the second there is a warning.
const (
	leastSpace = 4 << 20
	fewSpace   = 64 << 20
)

// Room looks at the free space of a directory where a run is about to write. by is what chooses
// another place.
func (e *Env) Room(dir, what, by string) error {
	free, err := freeSpace(dir)
	switch {
	case err != nil:
		return nil // what cannot be told does not stop a run
	case free < leastSpace:
		return Fail(ExitOwn, fmt.Errorf("%s is full: %s is free, expected at least %s for %s", dir, sizeRound(free), sizeText(leastSpace), what),
			"free some space, or choose another place with "+by)
	case free < fewSpace:
		e.Warnf("%s has only %s of free space for %s", dir, sizeRound(free), what)
	}
	return nil
}

func sizeRound(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// ErrTerminal is about an archive or a stream that would go to a terminal.
var ErrTerminal = errors.New("standard output is a terminal, an archive does not belong there")

//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
)

// removerName is the name under which runner-exec starts a copy of itself that removes the directory of the records when runner-exec has
// ended, even if it was killed.
const removerName = "runner-exec-records"

// makeAt makes the directory at a place where it is kept until the archive is there.
func (r *records) makeAt(path string) error {
	r.dir = path
	return os.Mkdir(path, 0o700)
}

// makeTemp makes one that goes with this process. If the remover is killed too, the next runner-exec that makes one removes it.
func (r *records) makeTemp() (err error) {
	if r.own, err = scratch.New("runner-exec-record"); err != nil {
		return err
	}
	r.dir = r.own.Path
	if err = r.startRemover(); err != nil {
		r.own.Remove()
	}
	return err
}

// startRemover starts the copy. Its input ends when this process does.
func (r *records) startRemover() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	c := exec.Command(self)
	c.Args, c.Stdin, c.Dir = []string{removerName}, in, "/"
	child.OwnGroup(c)
	if err := c.Start(); err != nil {
		hold.Close()
		return err
	}
	if _, err := io.WriteString(hold, r.dir); err != nil {
		return errors.Join(err, hold.Close(), c.Wait())
	}
	r.keeper, r.hold = c, hold
	return nil
}

// remove removes the directory, unless a recording on disk needs it.
func (r *records) remove() {
	if r == nil {
		return
	}
	if r.beside != "" {
		if _, err := os.Stat(r.beside); err == nil {
			return
		}
	}
	if r.own != nil {
		r.own.Remove()
	} else {
		os.RemoveAll(r.dir)
	}
	if r.keeper != nil {
		r.hold.Close()
		r.keeper.Wait()
		r.keeper = nil
	}
}

// remover removes the directory that its input names, at the end of the input. What still writes there, such as a wrapper that ends now,
// can be a little late.
func remover() error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)
	dir, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	if err != nil || !filepath.IsAbs(string(dir)) {
		return fmt.Errorf("no directory to remove: %q: %w", dir, errors.Join(err, os.ErrInvalid))
	}
	for end := time.Now().Add(patientRemoval); ; time.Sleep(50 * time.Millisecond) {
		if err = os.RemoveAll(string(dir)); err == nil || time.Now().After(end) {
			return err
		}
	}
}

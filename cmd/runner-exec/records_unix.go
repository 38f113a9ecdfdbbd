//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
)

// records is the directory that takes the records of wrappers and, with --replayable, what else a replay needs. runner-correlate and
// runner-pack read it when the run has ended. The document about the environment is a FIFO: runner-correlate waits there for the end of
// standard output and error.
type records struct {
	dir  string
	own  *scratch.Dir // it, nil with --spool-dir
	keep bool         // --replayable

	beside string    // with --spool-dir the raw stream, next to which the directory is, else ""
	keeper *exec.Cmd // removes it if this process is killed
	hold   *os.File  // its input

	in     *os.File // what the command reads
	size   uint64
	sum    string
	policy *schemas.RunBytes // nil without a policy file
	taps   []*tap
}

// newRecords makes the directory, nil if the run needs none.
func newRecords(o Options, wrapped bool, env *tool.Env) (r *records, err error) {
	spooled := o.spooled != nil // the other stages come later, and read files
	if o.Replayable && o.Stream != "" && !spooled {
		return nil, tool.Usagef("--replayable is about the archive, and --stream makes none: leave one out")
	}
	if !wrapped && !o.Replayable || o.Stream != "" && !spooled {
		return nil, nil
	}
	r = &records{keep: o.Replayable}
	if spooled {
		r.beside = o.Stream
		err = r.makeAt(recordsOf(filepath.Dir(o.Stream)))
	} else {
		err = r.makeTemp()
	}
	if err != nil {
		return nil, tool.CannotWrite("the records of the run", err)
	}
	if err = os.MkdirAll(filepath.Join(r.dir, record.OwnDir, record.BlobDir), 0o700); err == nil && r.keep {
		err = errors.Join(r.input(env), r.keepPolicy(o))
		if !spooled {
			err = errors.Join(err, syscall.Mkfifo(filepath.Join(r.dir, record.EnvFile), 0o600))
		}
	}
	if err != nil {
		r.remove()
		return nil, tool.CannotWrite("the records of the run", err)
	}
	return r, nil
}

// input reads all of standard input. A terminal is empty.
func (r *records) input(env *tool.Env) (err error) {
	from := env.Files()[0]
	at := filepath.Join(r.dir, record.OwnDir, "stdin")
	to, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.in = to
	h, n := sha256.New(), int64(0)
	if !tool.IsTerminal(from) {
		waits := time.AfterFunc(2*time.Second, func() {
			env.Sayf("--replayable reads standard input to its end before the command starts: end it, or give </dev/null")
		})
		defer waits.Stop()
		if n, err = io.Copy(io.MultiWriter(to, h), from); err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
	}
	r.size, r.sum = uint64(n), schemas.DigestFrom(h)
	if _, err = to.Seek(0, io.SeekStart); err == nil && n > 0 {
		err = os.Link(at, r.blob(r.sum))
	}
	return err
}

// keepPolicy keeps the policy file as it was read before the run.
func (r *records) keepPolicy(o Options) error {
	if o.Policy == "" {
		return nil
	}
	r.policy = &schemas.RunBytes{Bytes: uint64(len(o.PolicySource)), SHA256: o.PolicyDigest}
	if r.policy.SHA256 == r.sum && r.size > 0 { // standard input was the same
		return nil
	}
	return os.WriteFile(r.blob(o.PolicyDigest), o.PolicySource, 0o600)
}

// blob is where the bytes with a digest are kept.
func (r *records) blob(digest string) string {
	return filepath.Join(r.dir, record.OwnDir, record.BlobDir, strings.TrimPrefix(digest, "sha256:"))
}

// tap passes on what the command writes, and keeps it.
type tap struct {
	w    *os.File // the command's
	done chan error
	h    hash.Hash
	n    uint64
}

func (r *records) tap(to *os.File, name string) (*tap, error) {
	kept, err := os.OpenFile(filepath.Join(r.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	from, w, err := os.Pipe()
	if err != nil {
		kept.Close()
		return nil, err
	}
	t := &tap{w: w, done: make(chan error, 1), h: sha256.New()}
	r.taps = append(r.taps, t)
	go func() {
		defer from.Close()
		gone := &tool.Willing{W: to}
		n, err := io.Copy(io.MultiWriter(kept, t.h, gone), from)
		t.n = uint64(n)
		t.done <- errors.Join(err, kept.Close())
	}()
	return t, nil
}

// files are the command's standard streams.
func (r *records) files(given []*os.File) ([]*os.File, error) {
	if r == nil || !r.keep {
		return given, nil
	}
	files := []*os.File{r.in}
	for i, name := range []string{record.StdoutFile, record.StderrFile} {
		t, err := r.tap(given[i+1], name)
		if err != nil {
			return nil, err
		}
		files = append(files, t.w)
	}
	return files, nil
}

// started closes what only the command may have open.
func (r *records) started() {
	if r == nil {
		return
	}
	r.in.Close()
	for _, t := range r.taps {
		t.w.Close()
	}
}

// check looks for the record of each wrapper.
func (r *records) check(chain []string) error {
	if r == nil {
		return nil
	}
	for _, w := range chain {
		if _, err := os.Stat(filepath.Join(r.dir, w)); err != nil {
			return tool.Failf(tool.ExitOwn, "%s left no record: %w", w, err)
		}
	}
	return nil
}

// finish writes the document about the environment when the command's output has ended, and returns then.
func (r *records) finish(s *supervisor) error {
	if r == nil || !r.keep {
		return nil
	}
	for _, t := range r.taps {
		select {
		case err := <-t.done:
			if err != nil {
				return tool.Failf(tool.ExitIO, "keeping the command's output: %w", err)
			}
		case <-time.After(s.opt.Grace + patience):
			return tool.Failf(tool.ExitOwn, "a process that outlived the command still has its standard output open")
		}
	}
	x := schemas.RunEnv{Schema: schemas.SchemaRunEnv, RunID: s.opt.RunID, Wrappers: append([]string{}, s.chain...), Env: []schemas.EnvVar{},
		Stdin: schemas.RunBytes{Bytes: r.size, SHA256: r.sum}, Stdout: r.taps[0].bytes(), Stderr: r.taps[1].bytes(), Policy: r.policy}
	// What is behind the wrappers is the end of the whole, which they pass on as it is. Secrets are taken out of both alike.
	x.Command = s.opt.commandText()
	if n := len(s.behind); len(s.chain) > 0 && n > 0 && n <= len(x.Command) {
		x.Command = x.Command[len(x.Command)-n:]
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	x.Cwd = schemas.Text(cwd)
	x.UID, x.GID = uint32(os.Geteuid()), uint32(os.Getegid())
	if u := s.opt.User.Credential(); u != nil {
		x.UID, x.GID = u.UID, u.GID
	}
	_, environ, err := wrap.Take(child.Environ())
	if err != nil {
		return err
	}
	for _, e := range s.opt.User.Environment(environ) {
		name, _, ok := strings.Cut(e, "=")
		if text := arguments.Redact([][]byte{[]byte(e)}, nil)[0]; ok && name != "" {
			x.Env = append(x.Env, schemas.EnvVar{Name: schemas.Text(name), Value: strings.TrimPrefix(text, schemas.Text(name)+"=")})
		}
	}
	slices.SortStableFunc(x.Env, func(a, b schemas.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	line, err := schemas.Marshal(x)
	if err != nil {
		return err
	}
	if at := filepath.Join(r.dir, record.EnvFile); r.beside != "" {
		return os.WriteFile(at, line, 0o600)
	} else {
		return s.tell(at, line)
	}
}

func (t *tap) bytes() schemas.RunBytes {
	return schemas.RunBytes{Bytes: t.n, SHA256: schemas.DigestFrom(t.h)}
}

// tell writes to a FIFO that a stage opens, or that none opens because it has failed.
func (s *supervisor) tell(fifo string, text []byte) error {
	for end := time.Now().Add(patience * 6); ; time.Sleep(5 * time.Millisecond) {
		f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_, err = f.Write(text)
			return errors.Join(err, f.Close())
		}
		if !errors.Is(err, syscall.ENXIO) {
			return tool.CannotWrite("the document about the environment", err)
		}
		if time.Now().After(end) {
			return tool.Failf(tool.ExitOwn, "%s did not ask for the document about the environment", schemas.StageCorrelate)
		}
		select {
		case st := <-s.pipe.ended:
			s.pipe.note(st)
			if st.end.Status() != 0 {
				return errStage
			}
		default:
		}
	}
}

// args are the flags of runner-correlate and runner-pack.
func (r *records) args() []string {
	if r == nil {
		return nil
	}
	return []string{"--record=" + r.dir}
}

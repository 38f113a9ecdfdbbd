// Package evidence opens the archive of a run for tools that read one. An archive that
// runner-verify refuses is refused here, with the same findings: runner-verify itself
// judges it, in a process of its own. No tool has rules of its own.
//
// The archive is read from its place once, into a nameless file, and that file is what
// runner-verify judges and what Read visits. Of what does not begin as an archive only the beginning is kept. So nothing that changes the archive
// afterwards reaches the tool.
//
//	e, err := evidence.Open(ctx, env)
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	err = e.Read(ctx, archive.Visitor{…}) // as often as needed
//
// A tool for which the time matters calls BeginFile instead and reads while runner-verify still judges. It must
// let nothing out before Read or Judged has returned without an error.
package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Evidence is an archive that runner-verify calls valid.
type Evidence struct {
	Name   string          // as the user named it
	Report *verdict.Report // of runner-verify, with the explanation of the tool calls
	Digest string          // of the archive's bytes, "sha256:" and 64 hexadecimal digits
	file   *os.File        // the copy, nil if the beginning was enough
	data   io.ReaderAt     // the copy, or the beginning
	size   int64
	began  error        // why the beginning is not that of an archive, or nil
	judged func() error // waits for the verdict and takes it in
	cancel context.CancelFunc
}

// Open copies and checks the archive that the operand names, or standard input. Its error is
// ready to be returned by the tool: an archive that does not verify is tool.ExitInput, and
// its findings were printed.
func Open(ctx context.Context, env *tool.Env) (*Evidence, error) {
	e, err := begin(ctx, env)
	if err != nil {
		return nil, err
	}
	if err := e.Judged(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// OpenFile is Open for one of several archives that the command line names.
func OpenFile(ctx context.Context, env *tool.Env, name string) (*Evidence, error) {
	return Open(ctx, only(env, name))
}

// BeginFile is OpenFile that does not wait for the verdict: the archive has no Report before Read or Judged returns.
func BeginFile(ctx context.Context, env *tool.Env, name string) (*Evidence, error) {
	return begin(ctx, only(env, name))
}

// only is an environment with one operand.
func only(env *tool.Env, name string) *tool.Env {
	one := *env
	one.Args = []string{name}
	return &one
}

// begin copies the archive and lets runner-verify begin.
func begin(ctx context.Context, env *tool.Env) (*Evidence, error) {
	in, name, err := tool.OpenInput(env)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	e := &Evidence{Name: name, cancel: func() {}}
	judged, err := e.keep(ctx, in)
	if err != nil {
		e.Close()
		return nil, err
	}
	ctx, e.cancel = context.WithCancel(ctx)
	type verdictOf struct {
		report *verdict.Report
		err    error
	}
	done := make(chan verdictOf, 1)
	go func() {
		report, err := judge(ctx, judged)
		done <- verdictOf{report, err}
	}()
	e.judged = sync.OnceValue(func() error {
		v := <-done
		return e.take(env, v.report, v.err)
	})
	return e, nil
}

// Judged waits for the verdict. Its error is that of Open.
func (e *Evidence) Judged() error { return e.judged() }

// Close gives the copy up. It ends a runner-verify that still runs.
func (e *Evidence) Close() {
	e.cancel()
	if e.file != nil {
		e.file.Close()
	}
}

// take takes the verdict in.
func (e *Evidence) take(env *tool.Env, report *verdict.Report, err error) error {
	if err != nil {
		return tool.Failf(tool.ExitIO, "%s: runner-verify did not judge it: %w", e.Name, err)
	}
	report.Archive = schemas.Text(e.Name)
	e.Report = report
	switch {
	case report.Valid && e.began != nil:
		return tool.Failf(tool.ExitIO, "%s: runner-verify calls it valid, and its beginning is not: %w", e.Name, e.began)
	case report.Valid:
		return nil
	}
	if err := verdict.WriteFindings(env.Stderr, env.Name, report); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return tool.Said(tool.ExitInput)
}

// keep takes the input, and returns what runner-verify is to judge. An input that does not begin as an archive is not copied:
// runner-verify says the same of its beginning, and it can be without an end.
func (e *Evidence) keep(ctx context.Context, in io.Reader) (io.Reader, error) {
	// What is larger than any archive is cut after the limit, and runner-verify then says so.
	in = io.LimitReader(in, maxInput)
	var head bytes.Buffer
	if e.began = begins(io.TeeReader(in, &head)); errors.Is(e.began, bundle.ErrRead) {
		return nil, tool.CannotRead(e.Name, e.began)
	}
	if e.began != nil {
		e.data, e.size = bytes.NewReader(head.Bytes()), int64(head.Len())
		return &head, nil
	}
	if err := e.copy(ctx, io.MultiReader(&head, in)); err != nil {
		return nil, err
	}
	_, err := e.file.Seek(0, io.SeekStart)
	return e.file, err
}

// begins returns what ends the reading of an archive before it has a member. It reads little more than the first one's header.
func begins(in io.Reader) error {
	a, err := bundle.Open(in, bundle.DefaultLimits)
	if err != nil {
		return err
	}
	defer a.Close()
	if _, _, err = a.Next(); err == io.EOF {
		return nil
	}
	return err
}

// copy copies the whole input.
func (e *Evidence) copy(ctx context.Context, in io.Reader) (err error) {
	if e.file, err = tool.Spool(); err != nil {
		return err
	}
	sum := sha256.New()
	w := &scratch{ctx: ctx, file: e.file}
	n, err := io.Copy(w, io.TeeReader(in, sum))
	if e.data, e.size = e.file, n; err != nil {
		if w.err != nil {
			return tool.ScratchError(w.err)
		}
		return tool.CannotRead(e.Name, err)
	}
	e.Digest = schemas.DigestFrom(sum)
	return nil
}

// scratch keeps the errors of writing apart from those of reading.
type scratch struct {
	ctx  context.Context
	file *os.File
	err  error
}

func (s *scratch) Write(p []byte) (n int, err error) {
	if s.err = s.ctx.Err(); s.err == nil {
		n, s.err = s.file.Write(p)
	}
	return n, s.err
}

// Read visits the archive. After Open a tool may act on what it sees at once: all of it was judged. After
// BeginFile it may not; the verdict is there when Read returns.
func (e *Evidence) Read(ctx context.Context, v archive.Visitor) error {
	v.Judged = true
	sum, err := archive.Read(ctx, io.NewSectionReader(e.data, 0, e.size), v)
	if judged := e.Judged(); judged != nil {
		return judged // why it cannot be read, if it cannot
	}
	if err != nil {
		return err
	}
	if err := sum.Err(); err != nil {
		return tool.Failf(tool.ExitInput, "%s: %w", e.Name, err)
	}
	if sum.Identity != e.Report.Identity {
		return tool.Fail(tool.ExitIO, fmt.Errorf("%s: its copy is %s, runner-verify judged %s", e.Name, sum.Identity, e.Report.Identity))
	}
	return nil
}

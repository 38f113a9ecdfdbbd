// Package evidence opens the archive of a run for tools that read one. An archive that
// runner-verify refuses is refused here, with the same findings: runner-verify itself
// judges it, in a process of its own. No tool has rules of its own.
//
// The archive is read from its place once, into a nameless file, and that file is what
// runner-verify judges and what Read visits. So nothing that changes the archive
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
	"bufio"
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
	file   *os.File
	size   int64
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
	file, err := tool.Spool()
	if err != nil {
		return nil, err
	}
	e := &Evidence{Name: name, file: file, cancel: func() {}}
	if err := e.copy(ctx, in); err != nil {
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
		report, err := judge(ctx, file)
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
	e.file.Close()
}

// take takes the verdict in.
func (e *Evidence) take(env *tool.Env, report *verdict.Report, err error) error {
	if err != nil {
		return tool.Failf(tool.ExitIO, "%s: runner-verify did not judge it: %w", e.Name, err)
	}
	report.Archive = schemas.Text(e.Name)
	e.Report = report
	if report.Valid {
		return nil
	}
	if err := verdict.WriteFindings(env.Stderr, env.Name, report); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return tool.Said(tool.ExitInput)
}

// copy takes the whole input. What is larger than any archive is cut after the limit, and
// runner-verify then says so.
func (e *Evidence) copy(ctx context.Context, in io.Reader) error {
	begins := bufio.NewReaderSize(in, firstLook)
	if b, err := begins.Peek(firstLook); err == nil && isForeign(b) { // runner-verify says the same of the beginning as of all of it
		in = bytes.NewReader(b)
	} else {
		in = begins
	}
	sum := sha256.New()
	w := &scratch{ctx: ctx, file: e.file}
	n, err := io.Copy(w, io.TeeReader(io.LimitReader(in, maxInput), sum))
	if e.size = n; err != nil {
		if w.err != nil {
			return tool.ScratchError(w.err)
		}
		return tool.CannotRead(e.Name, err)
	}
	e.Digest = schemas.DigestFrom(sum)
	return nil
}

// firstLook is how many bytes are looked at before the rest is copied.
const firstLook = 64 << 10

// isForeign reports whether what begins so is refused before its first member, whatever follows: an endless input, or a large one that
// was named by mistake, is then not copied to the disk.
func isForeign(b []byte) bool {
	r, err := bundle.Open(bytes.NewReader(b), bundle.DefaultLimits)
	if err == nil {
		defer r.Close()
		_, _, err = r.Next()
	}
	return err != nil && err != io.EOF && !errors.Is(err, bundle.ErrTruncated)
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
	read := sha256.New()
	sum, err := archive.Read(ctx, io.TeeReader(io.NewSectionReader(e.file, 0, e.size), read), v)
	if judged := e.Judged(); judged != nil {
		return judged // why it cannot be read, if it cannot
	}
	if err != nil {
		return err
	}
	if err := sum.Err(); err != nil {
		return tool.Failf(tool.ExitInput, "%s: %w", e.Name, err)
	}
	if got := schemas.DigestFrom(read); got != e.Digest || got != e.Report.ArchiveDigest {
		return tool.Fail(tool.ExitIO, fmt.Errorf("%s: its bytes are %s, their copy %s, and those that runner-verify judged %s", e.Name, e.Digest, got, e.Report.ArchiveDigest))
	}
	return nil
}

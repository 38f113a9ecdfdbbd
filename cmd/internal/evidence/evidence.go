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
package evidence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Evidence is an archive that runner-verify calls valid.
type Evidence struct {
	Name   string          // as the user named it
	Report *verdict.Report // of runner-verify, with the explanation of the tool calls
	Digest string          // of the archive's bytes, "sha256:" and 64 hexadecimal digits
	file   *os.File
}

// Open copies and checks the archive that the operand names, or standard input. Its error is
// ready to be returned by the tool: an archive that does not verify is tool.ExitInput, and
// its findings were printed.
func Open(ctx context.Context, env *tool.Env) (*Evidence, error) {
	in, name, err := tool.OpenInput(env)
	if err != nil {
		return nil, err
	}
	return openInput(ctx, env, in, name)
}

// OpenFile is Open for one of several archives that the command line names.
func OpenFile(ctx context.Context, env *tool.Env, name string) (*Evidence, error) {
	one := *env
	one.Args = []string{name}
	return Open(ctx, &one)
}

func openInput(ctx context.Context, env *tool.Env, in io.ReadCloser, name string) (*Evidence, error) {
	defer in.Close()
	file, err := tool.Spool()
	if err != nil {
		return nil, tool.CannotWrite("a scratch file", err)
	}
	e := &Evidence{Name: name, file: file}
	if err := e.fill(ctx, env, in); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Close gives the copy up.
func (e *Evidence) Close() { e.file.Close() }

func (e *Evidence) fill(ctx context.Context, env *tool.Env, in io.Reader) error {
	if err := e.copy(ctx, in); err != nil {
		return err
	}
	report, err := judge(ctx, e.file)
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
	return tool.Status(tool.ExitInput)
}

// copy takes the whole input. What is larger than any archive is cut after the limit, and
// runner-verify then says so.
func (e *Evidence) copy(ctx context.Context, in io.Reader) error {
	sum := sha256.New()
	w := &scratch{ctx: ctx, file: e.file}
	if _, err := io.Copy(w, io.TeeReader(io.LimitReader(in, maxInput), sum)); err != nil {
		if w.err != nil {
			return tool.CannotWrite("a scratch file", w.err)
		}
		return tool.CannotRead(e.Name, err)
	}
	e.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
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

// Read visits the archive. A tool may act on what it sees at once: all of it was judged.
func (e *Evidence) Read(ctx context.Context, v archive.Visitor) error {
	size, err := e.file.Seek(0, io.SeekEnd)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	sum, err := archive.Read(ctx, io.NewSectionReader(e.file, 0, size), v)
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

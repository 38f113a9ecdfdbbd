package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// recorded is what the archive of a run says of its effects. Its blobs are files of a directory that close removes.
type recorded struct {
	dir      *scratch.Dir
	files    evidence.Files
	runID    string
	identity string
	record   *verdict.Record
	calls    []verdict.Call
	doubts   []string // ambiguity codes of the report
	box      *schemas.Box
	net      *schemas.Net
	changes  []*schemas.FileChange
	intents  []*schemas.Intent
	requests []*schemas.NetExchange
	base     map[string]*schemas.FileState // of the paths that wanted names, once readBase was called
}

// open reads an archive that runner-verify calls valid.
func open(ctx context.Context, env *tool.Env, name string) (*recorded, error) {
	e, err := evidence.OpenFile(ctx, env, name)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	dir, err := scratch.New("runner-gate")
	if err != nil {
		return nil, err
	}
	r := &recorded{dir: dir, files: evidence.Files{Dir: dir.Path, Want: func(member string) bool {
		return len(member) > len(schemas.BlobMembers) && member[:len(schemas.BlobMembers)] == schemas.BlobMembers
	}},
		runID: e.Report.RunID, identity: e.Report.Identity, record: e.Report.Record, calls: e.Report.Explanation.Calls}
	err = e.Read(ctx, archive.Visitor{Bytes: r.files.Bytes, Document: r.document, Line: r.line})
	if failed := r.files.Done(); err == nil && failed != nil {
		err = tool.ScratchError(failed)
	}
	if err == nil {
		err = r.bounded()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *recorded) close() { r.dir.Remove() }

func (r *recorded) document(d archive.Document) error {
	switch v := d.Value.(type) {
	case *schemas.Box:
		r.box = v
	case *schemas.Net:
		r.net = v
	case *schemas.Report:
		for _, a := range v.Ambiguities {
			if !schemas.IsNote(a) {
				r.doubts = append(r.doubts, a)
			}
		}
	}
	return nil
}

func (r *recorded) line(l *archive.Line) error {
	switch v := l.Event.(type) {
	case *schemas.FileChange:
		r.changes = append(r.changes, v)
	case *schemas.Intent:
		r.intents = append(r.intents, v)
	case *schemas.NetExchange:
		r.requests = append(r.requests, v)
	}
	return nil
}

// bounded refuses what would make a plan that nobody could read.
func (r *recorded) bounded() error {
	for what, n := range map[string]int{"changes of files": len(r.changes), "intents": len(r.intents), "requests": len(r.requests), "tool calls": len(r.calls)} {
		if n > maxItems {
			return tool.Failf(tool.ExitInput, "the archive has %d %s, a plan at most %d", n, what, maxItems)
		}
	}
	return nil
}

// blob is the file of a blob.
func (r *recorded) blob(digest string) string {
	return filepath.Join(r.files.Dir, filepath.FromSlash(schemas.BlobMember(digest)))
}

// has reports whether the archive has a blob.
func (r *recorded) has(digest string) bool {
	_, err := os.Stat(r.blob(digest))
	return digest != "" && err == nil
}

// readBase keeps what the workspace had at these paths when the run began. False: the archive does not say.
func (r *recorded) readBase(wanted map[string]bool) (known bool, err error) {
	r.base = map[string]*schemas.FileState{}
	switch {
	case r.box == nil:
		return false, nil
	case r.box.Base == nil: // it was empty
		return true, nil
	case !r.has(r.box.Base.List):
		return false, nil
	}
	f, err := os.Open(r.blob(r.box.Base.List))
	if err != nil {
		return false, tool.ScratchError(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		e, err := schemas.ParseBaseEntry(in.Bytes())
		if err != nil {
			return false, tool.Fail(tool.ExitInput, fmt.Errorf("the list of the base: %w", err))
		}
		if wanted[e.Path] {
			state := e.FileState
			r.base[e.Path] = &state
		}
	}
	if err := in.Err(); err != nil {
		return false, tool.CannotRead("the list of the base", err)
	}
	return true, nil
}

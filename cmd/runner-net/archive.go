package main

import (
	"context"
	"errors"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// recording reads a record: a directory that runner-net wrote, or the archive of a measured run. done takes away what was unpacked.
func recording(ctx context.Context, env *tool.Env, path string) (r *exchange.Recording, done func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, tool.CannotRead(path, err)
	}
	if info.IsDir() {
		r, err = exchange.Read(path)
		if err == nil {
			err = r.Check()
		}
		return r, func() {}, err
	}
	dir, err := scratch.New("runner-net")
	if err != nil {
		return nil, nil, err
	}
	done = func() { dir.Remove() }
	if r, err = unpack(ctx, env, path, dir.Path); err != nil {
		done()
		return nil, nil, err
	}
	return r, done, nil
}

// unpack reads an archive, and writes its blobs to a directory. It was judged before: what is missing was found.
func unpack(ctx context.Context, env *tool.Env, path, dir string) (*exchange.Recording, error) {
	e, err := evidence.OpenFile(ctx, env, path)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := exchange.In(dir)
	r.RunID = e.Report.RunID
	files := evidence.Files{Dir: dir, Want: func(member string) bool { _, blob := schemas.BlobDigest(member); return blob }}
	err = e.Read(ctx, archive.Visitor{
		Bytes: files.Bytes,
		Document: func(d archive.Document) error {
			if n, ok := d.Value.(*schemas.Net); ok {
				r.Net = n
			}
			return nil
		},
		Line: func(l *archive.Line) error {
			switch v := l.Event.(type) {
			case *schemas.NetExchange:
				r.Exchanges = append(r.Exchanges, v)
			case *schemas.NetName:
				r.Names = append(r.Names, v)
			}
			return nil
		},
	})
	failed := files.Done()
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, tool.CannotWrite("a scratch directory", failed)
	case r.Net == nil:
		return nil, tool.Fail(tool.ExitInput, errors.New(schemas.Text(path)+" is the archive of a run without runner-net: it has no exchanges"), "runner-exec -- runner-net record --allow FILE -- COMMAND")
	}
	return r, nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrapped"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// records are what wrappers recorded, in the directory of --record. Its streams are read when the run has ended, twice: to look at
// them, and to write their lines.
type records struct {
	dir       string
	begun     bool // the layers before the layer filtered are written
	exchanged bool // the layer network is written
	there     []record.Place
	counts    map[string]uint64 // lines of each layer
	documents []document        // in the order of the joined stream
	status    schemas.Status
	connects  wrapped.Set
	net       *schemas.Net
}

// document is a document about the run.
type document struct {
	line  []byte
	value any
}

// readRecords reads the directory, after the kernel stream.
func (j *joiner) readRecords() error {
	r := &j.records
	if r.dir == "" {
		return nil
	}
	r.counts, r.status = map[string]uint64{}, schemas.StatusComplete
	found := map[string]document{}
	for _, p := range r.there {
		if err := j.readRecord(p, func(l *schemas.Layer, e schemas.LayerLine, _ []byte) error {
			if x, ok := e.Value.(*schemas.NetExchange); ok {
				r.connects.Recorded(x)
			}
			r.counts[l.Name]++
			return nil
		}, found); err != nil {
			return err
		}
	}
	if err := r.environment(found, j.in.Header().RunID); err != nil {
		return err
	}
	for i := range schemas.RunDocuments {
		d, there := found[schemas.RunDocuments[i].Schema]
		if !there {
			continue
		}
		r.documents = append(r.documents, d)
		if n, ok := d.value.(*schemas.Net); ok {
			r.net = n
		}
	}
	return nil
}

// environment reads the document about the environment, where the run has one. It waits for it.
func (r *records) environment(found map[string]document, runID string) error {
	path := filepath.Join(r.dir, record.EnvFile)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return tool.CannotRead(path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, schemas.MaxRunDocument+1))
	if err != nil {
		return tool.CannotRead(path, err)
	}
	if len(b) > schemas.MaxRunDocument {
		return tool.Failf(tool.ExitInput, "%s has more than %d bytes", path, schemas.MaxRunDocument)
	}
	e, err := schemas.ParseRunEnv(b)
	if err == nil && e.RunID != runID {
		err = fmt.Errorf("it is of run %q, expected %q", e.RunID, runID)
	}
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("%s: %w", path, err))
	}
	found[schemas.SchemaRunEnv] = document{b, e}
	return nil
}

// readRecord reads the stream of a wrapper. each gets the lines of its layers.
func (j *joiner) readRecord(p record.Place, each func(*schemas.Layer, schemas.LayerLine, []byte) error, found map[string]document) error {
	path := filepath.Join(j.records.dir, p.File)
	f, err := os.Open(path)
	if err != nil {
		return tool.CannotRead(path, err)
	}
	defer f.Close()
	in, err := stream.NewReader(f, path, p.Stream)
	if err != nil {
		return tool.StreamError(err)
	}
	if id := in.Header().RunID; id != j.in.Header().RunID {
		return tool.StreamError(in.Errorf("this is a record of run %q, expected %q", id, j.in.Header().RunID))
	}
	next := map[string]uint64{}
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		if err := j.recorded(rec, p, next, each, found); err != nil {
			return tool.StreamError(in.Errorf("%v", err))
		}
	}
	j.records.status = schemas.Worst(j.records.status, in.Trailer().Status)
	return nil
}

// recorded takes in one record of a wrapper.
func (j *joiner) recorded(rec stream.Record, p record.Place, next map[string]uint64, each func(*schemas.Layer, schemas.LayerLine, []byte) error, found map[string]document) error {
	for i := range schemas.Layers {
		l := &schemas.Layers[i]
		if l.Wrapper != p.Stream || l.Schema != rec.Schema {
			continue
		}
		e, err := l.Parse(rec.Bytes)
		if err != nil {
			return err
		}
		if e.Seq != next[l.Name] {
			return fmt.Errorf("seq is %d, expected %d", e.Seq, next[l.Name])
		}
		next[l.Name]++
		return each(l, e, rec.Bytes)
	}
	for i := range schemas.RunDocuments {
		d := &schemas.RunDocuments[i]
		if d.Schema != rec.Schema || found == nil {
			continue
		}
		if _, twice := found[d.Schema]; twice {
			return fmt.Errorf("a second record of schema %s", d.Schema)
		}
		v, id, err := d.Parse(rec.Bytes)
		if err == nil && id != j.in.Header().RunID {
			err = fmt.Errorf("%s is of run %q, expected %q", d.Schema, id, j.in.Header().RunID)
		}
		if err != nil {
			return err
		}
		found[d.Schema] = document{append([]byte{}, rec.Bytes...), v}
		return nil
	}
	if rec.Schema == schemas.SchemaStageHealth || found == nil {
		return nil
	}
	return fmt.Errorf("a record of schema %.100q is not expected here", rec.Schema)
}

// writeEarly looks which records there are, and writes the layers that come before the layer filtered. The command has ended by then,
// and its wrappers too.
func (j *joiner) writeEarly() error {
	r := &j.records
	r.begun = true
	if r.dir == "" {
		return nil
	}
	if err := record.Check(r.dir); err != nil {
		return err
	}
	for _, p := range record.Places {
		if _, err := os.Lstat(filepath.Join(r.dir, p.Dir)); err == nil {
			r.there = append(r.there, p)
		} else if !errors.Is(err, os.ErrNotExist) {
			return tool.CannotRead(p.Dir, err)
		}
	}
	for _, name := range []string{schemas.LayerClock, schemas.LayerNames, schemas.LayerChanges} {
		if err := j.writeWrapped(name); err != nil {
			return err
		}
	}
	return nil
}

// writeWrapped writes the lines of the layer of a wrapper.
func (j *joiner) writeWrapped(name string) error {
	layer, _ := schemas.LayerOf(name)
	for _, p := range j.records.there {
		if layer.Wrapper != p.Stream {
			continue
		}
		if err := j.readRecord(p, func(l *schemas.Layer, _ schemas.LayerLine, line []byte) error {
			if l.Name != name {
				return nil
			}
			if err := j.out.WriteRaw(line); err != nil {
				return failWrite(err)
			}
			return nil
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeDocuments writes the documents about the run.
func (j *joiner) writeDocuments() error {
	for _, d := range j.records.documents {
		if err := j.out.WriteRaw(d.line); err != nil {
			return err
		}
	}
	return nil
}

// notes are those of the health.
func (r *records) notes() (list []string) {
	for _, d := range r.documents {
		if c, ok := d.value.(*schemas.Clock); ok {
			list = append(list, wrapped.ClockNote(c, r.counts[schemas.LayerClock]))
		}
		list = append(list, wrapped.Notes(d.value)...)
	}
	return list
}

// codes are those of the report. whole: the kernel lines are all there are.
func (r *records) codes(c codes, whole bool) {
	var all []any
	for _, d := range r.documents {
		all = append(all, d.value)
	}
	for _, code := range wrapped.Partial(all) {
		c.add(code)
	}
	if r.net == nil {
		return
	}
	for _, code := range r.connects.Codes(r.net, whole) {
		c.add(code)
	}
}

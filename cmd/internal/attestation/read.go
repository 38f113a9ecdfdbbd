package attestation

import (
	"github.com/runner-evidence/runner/cmd/internal/closure"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Reader keeps what statements say of an archive while that is read: who makes a statement and who
// compares one read the same. Its methods Document, SurfaceValue, Line and End are those of a visitor.
type Reader struct {
	run    Run
	record *closure.Record
}

// NewReader returns a reader. Only a statement with the predicate RuntimeTrace needs the surface.
func NewReader(surface bool) *Reader {
	r := &Reader{record: closure.New()}
	if surface {
		r.run.Surface = map[string][]string{}
	}
	return r
}

// Document takes in a document.
func (r *Reader) Document(d archive.Document) error {
	switch value := d.Value.(type) {
	case *schemas.Manifest:
		r.run.Files, r.run.Manifest, r.run.Packs = value.Files, schemas.DigestOf(d.Bytes), value.Packs
	case *schemas.Health:
		r.run.Health = value
	}
	return r.record.Document(d)
}

// SurfaceValue takes in a value of a set of the surface.
func (r *Reader) SurfaceValue(set int, value []byte) error {
	if r.run.Surface != nil {
		name := schemas.SurfaceSets[set]
		r.run.Surface[name] = append(r.run.Surface[name], string(value))
	}
	return nil
}

// Line takes in a line.
func (r *Reader) Line(l *archive.Line) error { return r.record.Line(l) }

// End takes in that a member was read to its end.
func (r *Reader) End(m archive.Member) error { return r.record.End(m) }

// Run is what was read of a valid archive, with what only runner-verify says of it. Sum is the digest of
// the archive's bytes.
func (r *Reader) Run(name, sum string, report *verdict.Report) *Run {
	run := r.run
	run.Name, run.Bytes, run.Identity, run.RunID, run.Record = name, sum, report.Identity, report.RunID, report.Record
	run.Signals = r.record.Signals()
	run.Closure = r.record.Score(run.Signals)
	return &run
}

// Package archive opens the archive of a run. It is the one way in which tools
// read an archive.
//
// Read takes a .tar.gz, a .tar or any stream of either. It checks what every
// archive must satisfy whoever wrote it: the container's form, the limits, the
// member set, the manifest's digests, the form and schema of documents and lines,
// run_id and seq. While it does so it hands documents, lines and surface values
// to a Visitor, one at a time, in archive order and in bounded memory.
//
// What is wrong with the archive is a Finding: a stable rule id, a place and a
// message. An error is about reading, the machine, or what a visitor's function
// returned. A visitor sees members before the end of the archive was checked, so
// it must not act on what it saw until Read has returned a Summary whose Err is
// nil.
//
//	sum, err := archive.Read(ctx, f, archive.Visitor{
//		Line: func(l *archive.Line) error {
//			if e, ok := l.Event.(*schemas.KernelEvent); ok {
//				fmt.Printf("%s:%d %s\n", l.Member, l.Number, e.Value)
//			}
//			return nil
//		},
//	})
//	if err == nil {
//		err = sum.Err()
//	}
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Visitor is what a caller wants to see. A function that is nil is not called. An
// error that one of them returns ends the reading, and Read returns it as it is.
type Visitor struct {
	// Finding takes what is wrong with the archive. Reading goes on where that
	// makes sense.
	Finding func(Finding)

	// Document takes a document that was parsed: its form may still be a finding.
	Document func(Document) error

	// SurfaceValue takes one value of the capability surface: the index of its set
	// in schemas.SurfaceSets, and its bytes, valid during the call. Values come
	// sorted and distinct, after Document was called for a surface of up to
	// MaxWholeSurface bytes.
	SurfaceValue func(set int, value []byte) error

	// Line takes a line that was parsed. It is valid during the call.
	Line func(*Line) error

	// End is called for every member of the contract whose content was read to its
	// end, after its documents and lines.
	End func(Member) error

	// Bytes returns a writer that takes a member's bytes as they are, or nil. They
	// are written before the End of the member.
	Bytes func(member string) io.Writer

	// Judged says that these bytes were read and found valid before, and that the caller compares them with those that
	// were read then, by their digest. The Identity and the digests of members are not made again: Summary and Member have none.
	// Surface values that nobody visits are not looked at again.
	Judged bool

	// Layer says, of what was Judged, whether the lines of a layer are looked at; nil is all of them.
	Layer func(member string) bool

	// Schema checks a document of up to MaxSchemaChecked bytes against its JSON
	// Schema, for callers that link a validator. What it returns are findings, and
	// a document with such findings is not parsed.
	Schema func(form schemas.Form, document []byte) []string
}

// Document is one of the archive's documents.
type Document struct {
	Member string
	Bytes  []byte // the caller may keep them; nil for a report above MaxSchemaChecked
	// Value is a *schemas.Manifest, *schemas.Report or *schemas.Health. It is nil
	// for the surface, whose values come one by one.
	Value any
}

// Line is one line of events.ndjson or of a layer.
type Line struct {
	Member string
	Number int    // from 1
	Bytes  []byte // without its LF, valid during the call
	RunID  string // of the archive
	// Event is a *schemas.RunStarted or *schemas.RunFinished, a *schemas.KernelEvent,
	// which is valid during the call, or what the parser of another layer gives.
	Event any
	// Canonical: it is known that the kernel line is in canonical form. Without it, it may be.
	Canonical bool
}

// Member is what was measured of a member.
type Member struct {
	Name   string
	Size   int64  // bytes
	SHA256 string // in the manifest's form
	Lines  uint64 // lines that are neither blank nor too long, whether they parse or not
	// Whole says that no fault ended the visit of its content: the document was
	// parsed, all values of the surface were visited. Faults of single lines do not.
	Whole bool
}

// Summary is what is known after reading.
type Summary struct {
	Container string // gzip, tar, or "" when it is neither
	RunID     string // of the first document that has one, normally the manifest
	Identity  string // "sha256:" and the digest of the tar stream; "" unless it was read to its end, or where it was Judged
	// Complete says that the container was good to its end, so that every member was
	// visited. NotArchive says that the input is not a whole archive: it ended early,
	// is damaged, or is something else.
	Complete, NotArchive bool
	Findings             int // number of findings

	first Finding
}

// Err returns nil when nothing was found, and else an error that says the first
// finding and how many there are.
func (s *Summary) Err() error {
	switch s.Findings {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("not a valid archive: %s", s.first)
	}
	return fmt.Errorf("not a valid archive: %s, and %d more findings", s.first, s.Findings-1)
}

// Read reads one archive. Its error is about reading or the machine, never about
// the archive.
func Read(ctx context.Context, r io.Reader, v Visitor) (Summary, error) {
	return ReadWithin(ctx, r, bundle.DefaultLimits, v)
}

// ReadWithin is Read with other limits of the container.
func ReadWithin(ctx context.Context, r io.Reader, lim bundle.Limits, v Visitor) (Summary, error) {
	s := newReader(v)
	defer s.close()
	open := bundle.Open
	if v.Judged {
		open = bundle.OpenAgain
	}
	a, err := open(r, lim)
	if err == nil {
		defer a.Close()
		err = s.members(ctx, container{a, &s.sum})
	}
	if err != nil {
		return s.sum, s.containerError(err)
	}
	if !v.Judged {
		s.sum.Identity = "sha256:" + a.Identity()
	}
	s.memberSet()
	s.sum.Complete = true
	return s.sum, nil
}

// Members yields members in archive order and io.EOF after the last.
type Members interface {
	Next() (bundle.Member, io.Reader, error)
}

// ReadMembers visits members that the caller took out of their container, such as
// the files of an unpacked archive. Identity and Container are not known then.
func ReadMembers(ctx context.Context, members Members, v Visitor) (Summary, error) {
	s := newReader(v)
	defer s.close()
	if err := s.members(ctx, members); err != nil {
		return s.sum, s.containerError(err)
	}
	s.memberSet()
	s.sum.Complete = true
	return s.sum, nil
}

// container notes the kind of a container once it has a member.
type container struct {
	*bundle.Reader
	sum *Summary
}

// Next returns the next member.
func (c container) Next() (bundle.Member, io.Reader, error) {
	m, r, err := c.Reader.Next()
	if err == nil {
		c.sum.Container = "tar"
		if c.Gzip() {
			c.sum.Container = "gzip"
		}
	}
	return m, r, err
}

// ErrTooMany ends the reading of an archive of which enough is wrong. A visitor's function may
// return it, too.
var ErrTooMany = fmt.Errorf("%w: more than %d findings, the rest was not read", bundle.ErrLimit, MaxFindings)

// visitorError keeps the visitor's own errors apart from those of the container.
type visitorError struct{ err error }

func (e *visitorError) Error() string { return e.err.Error() }
func (e *visitorError) Unwrap() error { return e.err }

func visited(err error) error {
	if err != nil {
		return &visitorError{err}
	}
	return nil
}

// containerError makes a finding of what is wrong with the container, and returns
// err when the fault is not the archive's.
func (s *reader) containerError(err error) error {
	var own *visitorError
	if errors.As(err, &own) && own.err != ErrTooMany {
		return own.err
	}
	for _, c := range []struct {
		class error
		rule  string
	}{
		{bundle.ErrNotArchive, RuleContainer}, {bundle.ErrTruncated, RuleContainer}, {bundle.ErrCorrupt, RuleContainer},
		{bundle.ErrHostile, RuleMemberForm}, {bundle.ErrOrder, RuleOrder}, {bundle.ErrLimit, RuleLimit}, {bundle.ErrTrailing, RuleTrailing},
	} {
		if errors.Is(err, c.class) && !errors.Is(err, bundle.ErrRead) {
			s.sum.NotArchive = c.rule == RuleContainer
			s.find(c.rule, "", 0, "%v", err)
			return nil
		}
	}
	return err
}

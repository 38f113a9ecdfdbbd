package archive

import (
	"bufio"
	"context"
	"io"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// reader is one reading of an archive.
type reader struct {
	visit    Visitor
	sum      Summary
	manifest *schemas.Manifest
	seen     map[string]Member
	tooLarge map[string]bool // members over their limit, which are not looked at
	buf      *bufio.Reader   // for lines, made when first needed

	exact bool // the line just parsed is a kernel line in canonical form
}

func newReader(v Visitor) *reader {
	return &reader{visit: v, seen: map[string]Member{}, tooLarge: map[string]bool{}}
}

func (s *reader) members(ctx context.Context, members Members) error {
	for {
		m, r, err := members.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visited(ctx.Err())
		}
		if s.sum.Findings >= MaxFindings && err == nil {
			err = ErrTooMany
		}
		if err != nil {
			return err
		}
		if err := s.member(m, r); err != nil {
			return err
		}
	}
}

// measured passes a member on and digests it.
type measured struct {
	r   io.Reader
	sum *beside // or nil
	n   int64
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.sum != nil {
		m.sum.write(p[:n])
	}
	m.n += int64(n)
	return n, err
}

// copied passes a member on and writes it to what the visitor gave. An error there is
// the visitor's.
type copied struct {
	r io.Reader
	w io.Writer
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if _, werr := c.w.Write(p[:n]); werr != nil {
		return n, visited(werr)
	}
	return n, err
}

func (s *reader) member(m bundle.Member, r io.Reader) error {
	form, known := schemas.MemberOf(m.Name)
	if !known {
		s.find(RuleUnknown, m.Name, 0, "not a member of an archive of a run")
		return nil
	}
	if form.MaxBytes > 0 && m.Size > form.MaxBytes {
		s.find(RuleLimit, m.Name, 0, "%d bytes, at most %d", m.Size, form.MaxBytes)
		s.tooLarge[m.Name] = true
		return nil
	}
	if s.visit.Bytes != nil {
		if w := s.visit.Bytes(m.Name); w != nil {
			r = &copied{r, w}
		}
	}
	d := &measured{r: r}
	if !s.visit.Judged {
		d.sum = newBeside()
		defer d.sum.close()
	}
	got := Member{Name: m.Name}
	if err := s.content(form, d, &got); err != nil {
		return err
	}
	// A parser may stop early; the digest is over everything.
	if _, err := io.Copy(io.Discard, d); err != nil {
		return err
	}
	if got.Size = d.n; d.sum != nil {
		got.SHA256 = schemas.DigestFrom(d.sum.sum())
	}
	s.seen[m.Name] = got
	if s.visit.End != nil {
		return visited(s.visit.End(got))
	}
	return nil
}

// content visits what a member holds.
func (s *reader) content(form schemas.Form, r io.Reader, got *Member) (err error) {
	switch {
	case s.passes(form):
		got.Whole = true // it was judged, and is read to its end
	case form.Raw:
		got.Whole = true // whatever it is: its digest is made as it is read to its end
	case form.Lines:
		got.Lines, err = s.lines(form, r)
		got.Whole = true
	case form.Member == schemas.MemberSurface:
		got.Whole, err = s.surface(form, r)
	default:
		got.Whole, err = s.document(form, r)
	}
	return err
}

// passes reports whether nobody looks at the lines of a layer.
func (s *reader) passes(form schemas.Form) bool {
	return s.visit.Judged && s.visit.Layer != nil && form.Lines && form.Member != schemas.MemberEvents && !s.visit.Layer(form.Member)
}

// memberSet compares the members that were there with the contract and with the
// manifest.
func (s *reader) memberSet() {
	for _, form := range schemas.Members() {
		got, there := s.seen[form.Member]
		switch {
		case s.tooLarge[form.Member]:
		case there && form.Member != schemas.MemberManifest && s.manifest != nil:
			s.compare(got)
		case !there && (!form.Optional || s.listed(form.Member)):
			s.find(RuleMissing, form.Member, 0, "the member is missing, %s", missing(form))
		}
	}
	if e, there := s.seen[schemas.MemberEvents]; there && e.Lines < 2 {
		s.find(RuleEventsPair, e.Name, 0, "%d events, expected run_started and run_finished", e.Lines)
	}
	if s.manifest == nil {
		return
	}
	s.raw()
	for _, name := range slices.Sorted(maps.Keys(s.manifest.Files)) {
		if _, known := schemas.MemberOf(name); !known || name == schemas.MemberManifest {
			s.find(RuleManifestFiles, schemas.MemberManifest, 0, "%q is listed, but it is not a member other than the manifest", name)
		}
	}
}

// raw compares the members of any bytes that were there with the manifest, and blobs with their names.
func (s *reader) raw() {
	for _, name := range slices.Sorted(maps.Keys(s.seen)) {
		if form, _ := schemas.MemberOf(name); !form.Raw {
			continue
		}
		s.compare(s.seen[name])
		digest, blob := schemas.BlobDigest(name)
		if got := s.seen[name].SHA256; blob && got != digest && !s.visit.Judged {
			s.find(RuleDigest, name, 0, "%s, its name says %s", got, digest)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.manifest.Files)) {
		if form, _ := schemas.MemberOf(name); !form.Raw {
			continue
		}
		if _, there := s.seen[name]; !there {
			s.find(RuleMissing, name, 0, "the member is missing, but the manifest lists it")
		}
	}
}

func missing(form schemas.Form) string {
	if form.Optional {
		return "but the manifest lists it"
	}
	return "even an empty layer must be there"
}

func (s *reader) listed(member string) bool {
	if s.manifest == nil {
		return false
	}
	_, listed := s.manifest.Files[member]
	return listed
}

// compare compares a member with the manifest.
func (s *reader) compare(got Member) {
	want, listed := s.manifest.Files[got.Name]
	switch {
	case !listed:
		s.find(RuleManifestFiles, schemas.MemberManifest, 0, "%s is not listed", got.Name)
	case want.Bytes != got.Size:
		s.find(RuleSize, got.Name, 0, "%d bytes, the manifest says %d", got.Size, want.Bytes)
	case want.SHA256 != got.SHA256 && !s.visit.Judged:
		s.find(RuleDigest, got.Name, 0, "%s, the manifest says %s", got.SHA256, want.SHA256)
	}
}

// sameRun checks a run_id against the archive's, which is that of the first
// document that has one: the manifest's, normally.
func (s *reader) sameRun(member string, line int, id string) {
	if s.sum.RunID == "" {
		s.sum.RunID = id
	}
	if id != s.sum.RunID {
		s.find(RuleRunID, member, line, "run_id is %q, the archive's is %q", id, s.sum.RunID)
	}
}

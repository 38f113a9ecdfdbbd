package archive

import (
	"bytes"
	"errors"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// document checks manifest, report or health: form, schema, run_id. It reports
// whether the document could be parsed.
func (s *reader) document(form schemas.Form, r io.Reader) (parsed bool, err error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxSchemaChecked+1))
	if err != nil {
		return false, err
	}
	if len(b) > MaxSchemaChecked && form.Member == schemas.MemberReport {
		return s.longReport(io.MultiReader(bytes.NewReader(b), r))
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return false, err
	}
	b, ok := s.documentForm(form.Member, append(b, rest...))
	if !ok || !s.documentSchema(form, b) {
		return false, nil
	}
	value, id, err := parseDocument(form.Member, b)
	if err != nil {
		s.find(RuleDocumentSchema, form.Member, 0, "%v", err)
		return false, nil
	}
	if m, ok := value.(*schemas.Manifest); ok {
		s.manifest = m
		if m.Packs != nil {
			if err := m.Packs.Agree(); err != nil {
				s.find(RuleManifestPacks, form.Member, 0, "x-assay: %v", err)
			}
		}
	}
	s.sameRun(form.Member, 0, id)
	s.canonical(form.Member, b, value)
	if s.visit.Document != nil {
		err = s.visit.Document(Document{form.Member, b, value})
	}
	return true, visited(err)
}

// longReport reads a report that is not held as a whole.
func (s *reader) longReport(r io.Reader) (parsed bool, err error) {
	report, fault, err := schemas.ReadReport(r)
	switch {
	case err != nil:
		return false, err
	case errors.Is(fault, schemas.ErrLimit):
		s.find(RuleLimit, schemas.MemberReport, 0, "%v", fault)
	case fault != nil:
		s.find(RuleDocumentSchema, schemas.MemberReport, 0, "%v", fault)
	default:
		s.sameRun(schemas.MemberReport, 0, report.RunID)
		if s.visit.Document != nil {
			err = s.visit.Document(Document{Member: schemas.MemberReport, Value: report})
		}
		return true, visited(err)
	}
	return false, nil
}

func parseDocument(member string, b []byte) (value any, runID string, err error) {
	switch member {
	case schemas.MemberManifest:
		m, err := schemas.ParseManifest(b)
		if err != nil {
			return nil, "", err
		}
		return m, m.RunID, nil
	case schemas.MemberReport:
		r, err := schemas.ParseReport(b)
		if err != nil {
			return nil, "", err
		}
		return r, r.RunID, nil
	}
	for i := range schemas.RunDocuments {
		if d := &schemas.RunDocuments[i]; d.Member == member {
			return d.Parse(b)
		}
	}
	h, err := schemas.ParseHealth(b)
	if err != nil {
		return nil, "", err
	}
	return h, h.RunID, nil
}

// canonical checks that b is the one way to write value.
func (s *reader) canonical(member string, b []byte, value any) {
	// A redaction block holds numbers of its own kinds, whose order of keys the
	// contract does not fix.
	if h, ok := value.(*schemas.Health); ok && h.Redaction != nil {
		return
	}
	if again, err := schemas.Marshal(value); err != nil || !bytes.Equal(again, b) {
		s.find(RuleDocumentForm, member, 0, "not in canonical form from byte %d on: order of keys, escapes or numbers differ", FirstDifference(again, b))
	}
}

// documentForm checks that b is one JSON object without blanks. It returns the
// object without a stray end, so that one fault does not hide the others.
func (s *reader) documentForm(name string, b []byte) ([]byte, bool) {
	if len(b) == 0 {
		s.find(RuleDocumentForm, name, 0, "the document is empty")
		return nil, false
	}
	if trimmed := bytes.TrimRight(b, " \t\r\n"); len(trimmed) != len(b) {
		what := "blanks follow the document"
		if len(b)-len(trimmed) == 1 && b[len(b)-1] == '\n' {
			what = "a final newline follows the document"
		}
		s.find(RuleDocumentForm, name, 0, "%s, expected its closing brace to be the last byte", what)
		b = trimmed
	}
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		s.find(RuleDocumentForm, name, 0, "not a JSON object")
		return nil, false
	}
	if at := blank(b); at >= 0 {
		s.find(RuleDocumentForm, name, 0, "a blank between tokens at byte %d, expected compact JSON", at)
	}
	return b, s.shallow(name, 0, b)
}

// documentSchema lets the visitor's validator check a document, if it has one.
func (s *reader) documentSchema(form schemas.Form, b []byte) bool {
	if s.visit.Schema == nil || len(b) > MaxSchemaChecked {
		return true
	}
	problems := s.visit.Schema(form, b)
	for _, p := range problems {
		s.find(RuleDocumentSchema, form.Member, 0, "%s", p)
	}
	return len(problems) == 0
}

// blank returns where the first blank outside of a string is, -1 without one.
func blank(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case ' ', '\t', '\r', '\n':
			return i
		}
	}
	return -1
}

// FirstDifference is the number of bytes with which a and b begin alike.
func FirstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

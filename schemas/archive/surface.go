package archive

import (
	"bytes"
	"errors"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// surface visits the capability surface and reports whether it was walked to its
// end. A small one is checked as a whole as well, and handed out as a document; a
// large one is only streamed.
func (s *reader) surface(form schemas.Form, r io.Reader) (whole bool, err error) {
	head, err := io.ReadAll(io.LimitReader(r, MaxWholeSurface))
	if err != nil {
		return false, err
	}
	sound := true // as far as the schema goes
	if len(head) < MaxWholeSurface {
		var ok bool
		if head, ok = s.documentForm(form.Member, head); !ok {
			return false, nil
		}
		if sound = s.documentSchema(form, head); sound && s.visit.Document != nil {
			if err := s.visit.Document(Document{Member: form.Member, Bytes: head}); err != nil {
				return false, visited(err)
			}
		}
	}
	if s.visit.Judged && s.visit.SurfaceValue == nil {
		return true, nil // nobody wants the values
	}
	err = s.surfaceValues(form.Member, io.MultiReader(bytes.NewReader(head), r))
	var fault *FormError
	if !errors.As(err, &fault) {
		return err == nil, err
	}
	// What breaks the form and the schema is one fault.
	if sound || fault.Rule != RuleDocumentForm {
		s.find(fault.Rule, form.Member, 0, "%s", fault.Message)
	}
	return false, nil
}

func (s *reader) surfaceValues(member string, r io.Reader) error {
	doc, err := NewSurfaceReader(r)
	if err == nil {
		s.sameRun(member, 0, doc.RunID())
	}
	for err == nil {
		var set int
		var value []byte
		if set, value, err = doc.Next(); err == nil && s.visit.SurfaceValue != nil {
			err = visited(s.visit.SurfaceValue(set, value))
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

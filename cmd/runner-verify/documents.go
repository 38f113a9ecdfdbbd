package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// document checks manifest, report or health: form, schema, run_id.
func (v *verifier) document(spec schemas.Form, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	b, ok := v.documentForm(spec.Member, b)
	if !ok || !v.documentSchema(spec, b) {
		return nil
	}
	var again any
	var id string
	switch spec.Member {
	case bundle.ManifestName:
		if v.manifest, err = schemas.ParseManifest(b); err == nil {
			again, id = v.manifest, v.manifest.RunID
		}
	case bundle.ReportName:
		if v.report, err = schemas.ParseReport(b); err == nil {
			again, id = v.report, v.report.RunID
		}
	case bundle.HealthName:
		if v.health, err = schemas.ParseHealth(b); err == nil {
			again, id = v.health, v.health.RunID
		}
	}
	if err != nil {
		v.add(ruleDocumentSchema, spec.Member, 0, "%v", err)
		return nil
	}
	v.sameRun(spec.Member, 0, id)
	v.whole[spec.Member] = b
	// A redaction block holds numbers of its own kinds, whose order of keys the
	// contract does not fix.
	if spec.Member == bundle.HealthName && v.health.Redaction != nil {
		return nil
	}
	if canonical, err := schemas.Marshal(again); err != nil || !bytes.Equal(canonical, b) {
		v.add(ruleDocumentForm, spec.Member, 0, "not in canonical form from byte %d on: order of keys, escapes or numbers differ", firstDifference(canonical, b))
	}
	return nil
}

// documentForm checks that b is one JSON object without blanks. It returns the
// object without a stray end, so that one fault does not hide the others.
func (v *verifier) documentForm(name string, b []byte) ([]byte, bool) {
	if len(b) == 0 {
		v.add(ruleDocumentForm, name, 0, "the document is empty")
		return nil, false
	}
	if trimmed := bytes.TrimRight(b, " \t\r\n"); len(trimmed) != len(b) {
		what := "blanks follow the document"
		if len(b)-len(trimmed) == 1 && b[len(b)-1] == '\n' {
			what = "a final newline follows the document"
		}
		v.add(ruleDocumentForm, name, 0, "%s, expected its closing brace to be the last byte", what)
		b = trimmed
	}
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		v.add(ruleDocumentForm, name, 0, "not a JSON object")
		return nil, false
	}
	if at := blank(b); at >= 0 {
		v.add(ruleDocumentForm, name, 0, "a blank between tokens at byte %d, expected compact JSON", at)
	}
	return b, v.shallow(name, 0, b)
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

func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// compiled are the JSON Schemas of the documents, by schema string.
var compiled = sync.OnceValue(func() map[string]*jsonschema.Schema {
	c := jsonschema.NewCompiler()
	out := map[string]*jsonschema.Schema{}
	for _, form := range schemas.Members() {
		if form.Lines {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(form.JSONSchema()))
		if err == nil {
			err = c.AddResource(form.File, doc)
		}
		if err == nil {
			out[form.Schema], err = c.Compile(form.File)
		}
		if err != nil {
			panic(fmt.Sprintf("embedded schema %s: %v", form.File, err))
		}
	}
	return out
})

func (v *verifier) documentSchema(spec schemas.Form, b []byte) bool {
	if len(b) > maxSchemaChecked {
		return true
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		v.add(ruleDocumentSchema, spec.Member, 0, "not valid JSON: %v", err)
		return false
	}
	err = compiled()[spec.Schema].Validate(tree)
	if err == nil {
		return true
	}
	if verr, ok := err.(*jsonschema.ValidationError); ok {
		for _, u := range verr.BasicOutput().Errors {
			if u.Error != nil {
				v.add(ruleDocumentSchema, spec.Member, 0, "at %q: %s", u.InstanceLocation, u.Error)
			}
		}
		return false
	}
	v.add(ruleDocumentSchema, spec.Member, 0, "%v", err)
	return false
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// compiled are the JSON Schemas of the documents, by their members. The tool compiles none: its parsers are as strict.
// Whatever a test of this package finds valid, and each mutant that is accepted, is looked at with them as well.
var compiled = sync.OnceValue(func() map[string]*jsonschema.Schema {
	c, out := jsonschema.NewCompiler(), map[string]*jsonschema.Schema{}
	for _, form := range schemas.Members() {
		if form.Lines || form.Schema == "" {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(form.JSONSchema()))
		if err == nil {
			err = c.AddResource(form.File, doc)
		}
		if err == nil {
			out[form.Member], err = c.Compile(form.File)
		}
		if err != nil {
			panic(fmt.Sprintf("embedded schema %s: %v", form.File, err))
		}
	}
	return out
})

// schemaFault says what in a member breaks its JSON Schema. Large documents are not looked at.
func schemaFault(member string, text []byte) error {
	s := compiled()[member]
	if s == nil || len(text) > archive.MaxSchemaChecked {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(doc)
	}
	return err
}

// fitsSchemas looks at the documents of an archive that was found valid.
func fitsSchemas(t testing.TB, in []byte) {
	t.Helper()
	a, err := bundle.Open(bytes.NewReader(in), bundle.DefaultLimits)
	if err != nil {
		t.Errorf("a valid archive cannot be opened: %v", err)
		return
	}
	defer a.Close()
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Errorf("a valid archive cannot be read: %v", err)
			return
		}
		text, err := io.ReadAll(io.LimitReader(r, archive.MaxSchemaChecked+1))
		if err == nil {
			err = schemaFault(m.Name, text)
		}
		if err != nil {
			t.Errorf("a valid archive with a document that is not: %s: %v", m.Name, err)
		}
	}
}

// TestSchemaFault: the tests look with schemas that refuse something.
func TestSchemaFault(t *testing.T) {
	for member, text := range sample().digest(t) {
		if compiled()[member] == nil {
			continue
		}
		if err := schemaFault(member, []byte(text)); err != nil {
			t.Errorf("%s: %v", member, err)
		}
		if err := schemaFault(member, []byte(strings.Replace(text, `"schema"`, `"colour"`, 1))); err == nil {
			t.Errorf("%s without a schema fits its schema", member)
		}
	}
}

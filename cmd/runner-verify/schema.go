package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
)

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

// schemaProblems says what in a document breaks its JSON Schema.
func schemaProblems(form schemas.Form, document []byte) []string {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return []string{fmt.Sprintf("not valid JSON: %v", err)}
	}
	err = compiled()[form.Schema].Validate(tree)
	if err == nil {
		return nil
	}
	verr, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return []string{err.Error()}
	}
	var problems []string
	for _, u := range verr.BasicOutput().Errors {
		if u.Error != nil {
			problems = append(problems, fmt.Sprintf("at %q: %s", u.InstanceLocation, u.Error))
		}
	}
	if problems == nil {
		problems = []string{err.Error()}
	}
	slices.Sort(problems) // the validator walks maps
	return problems
}

package main

import "github.com/runner-evidence/runner/schemas"

// schemaProblems says what in a document breaks its JSON Schema. The parsers of documents take the same as the schemas,
// which tests of package schemas compare, and a reader parses each document anyway; only a surface is read
// value by value. So no program has to compile schemas when it starts.
func schemaProblems(form schemas.Form, document []byte) []string {
	if form.Schema != schemas.SchemaSurface {
		return nil
	}
	if err := schemas.CheckSurface(document); err != nil {
		return []string{err.Error()}
	}
	return nil
}

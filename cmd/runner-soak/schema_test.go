package main

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func compiled(t *testing.T, version string) *jsonschema.Schema {
	t.Helper()
	for _, f := range schemas.Reports {
		if f.Schema != version {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.JSONSchema()))
		testkit.Must(t, err)
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		testkit.Must(t, c.AddResource(f.File, doc))
		return c.MustCompile(f.File)
	}
	t.Fatal("no schema for ", version)
	return nil
}

// TestReportsAreValid: whatever happens in runs, the report and the surface are of their schemas.
func TestReportsAreValid(t *testing.T) {
	report, surface := compiled(t, schemas.VersionSoakReport), compiled(t, schemas.VersionSoakSurface)
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 30 {
		one, parts := invented(r, 1+r.IntN(12), 1, Policy{FailOn: "warning", MaxFailures: i % 3})
		for _, w := range append(parts, one) {
			for s, b := range map[*jsonschema.Schema][]byte{report: reportOf(t, w), surface: surfaceOf(t, w)} {
				v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
				testkit.Must(t, err)
				if err := s.Validate(v); err != nil {
					t.Fatalf("%v\n%s", err, b)
				}
			}
		}
	}
}

// TestExamplesAreRead: the examples of the schemas are what this tool would write of their runs.
func TestExamplesAreRead(t *testing.T) {
	for _, f := range schemas.Reports {
		if f.Schema != schemas.VersionSoakReport && f.Schema != schemas.VersionSoakSurface {
			continue
		}
		var doc struct {
			Examples []any `json:"examples"`
		}
		testkit.Must(t, schemas.UnmarshalOpen(f.JSONSchema(), &doc))
		for _, ex := range doc.Examples {
			b, err := schemas.Marshal(ex)
			testkit.Must(t, err)
			if _, err := parseWhole(b); err != nil {
				t.Errorf("%s: %v", f.File, err)
			}
		}
	}
}

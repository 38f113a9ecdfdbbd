package schemas

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Each report's schema has its own id, compiles with its formats asserted, and accepts its examples,
// which name the version.
func TestReports(t *testing.T) {
	for _, f := range Reports {
		var doc struct {
			ID       string            `json:"$id"`
			Examples []json.RawMessage `json:"examples"`
		}
		testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
		if doc.ID != "urn:runner:schema:"+f.Schema || f.File != f.Schema+".schema.json" || len(doc.Examples) == 0 {
			t.Errorf("%s: $id %s, %d examples", f.File, doc.ID, len(doc.Examples))
		}
		s := compileFile(t, f)
		for _, ex := range doc.Examples {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(ex))
			testkit.Must(t, err)
			if err := s.Validate(v); err != nil || v.(map[string]any)["schema_version"] != f.Schema {
				t.Errorf("%s: its example does not validate: %v", f.File, err)
			}
		}
	}
}

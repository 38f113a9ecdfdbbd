package main

import (
	"sync"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// maxSchemas is of how many tools the input schemas are kept.
const maxSchemas = 4096

// inputSchemas are what the server's answers to tools/list said about arguments.
type inputSchemas struct {
	mu   sync.Mutex
	list map[string]*policy.InputSchema
}

// learn reads the schema in one element of a list of tools.
func (t *inputSchemas) learn(tool string, raw []byte) {
	var e struct {
		InputSchema jsontext.Value `json:"inputSchema"`
	}
	if schemas.UnmarshalOpen(raw, &e) != nil {
		e.InputSchema = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[string]*policy.InputSchema{}
	}
	if _, known := t.list[tool]; known || len(t.list) < maxSchemas {
		t.list[tool] = policy.ParseInputSchema(e.InputSchema)
	}
}

// of is the schema of a tool, or nil.
func (t *inputSchemas) of(tool string) *policy.InputSchema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[tool]
}

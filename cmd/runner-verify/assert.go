package main

import (
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// parseAssertions compiles the programs of every --assert.
func parseAssertions(texts []string) ([]*assertion.Assertion, error) {
	var out []*assertion.Assertion
	for _, text := range texts {
		a, err := assertion.Parse(text)
		if unknown := new(jq.UnknownKeyError); errors.As(err, &unknown) {
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--assert %q: %w", text, err), unknownHint(unknown.Key))
		}
		if err != nil {
			return nil, tool.Usagef("--assert %q: %v", text, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// unknownHint is what to type for a key that there is not.
func unknownHint(key string) string {
	if key == "events" {
		return "the events of the kernel are .kernel, and the start and end of the command are in .run: --assert 'all(.kernel[]; .value | tostring | contains(\".ssh\") | not)'"
	}
	return "runner-verify --help lists what each key holds"
}

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
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--assert %q: %w", text, err), unknownHint(unknown)...)
		}
		if err != nil {
			return nil, tool.Usagef("--assert %q: %v", text, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// unknownHint is what to type for a key that there is not.
func unknownHint(e *jq.UnknownKeyError) []string {
	switch {
	case e.Place != "": // the message has the keys
		return nil
	case e.Key == "events":
		return []string{"the events of the kernel are .kernel, and the start and end of the command are in .run: --assert 'all(.kernel[]; .value | tostring | contains(\".ssh\") | not)'"}
	}
	return []string{"runner-verify --help lists what each key holds"}
}

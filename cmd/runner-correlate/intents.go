package main

import (
	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/schemas"
)

// intentChecks judges the intents of one run, one after the other: no two have one idempotency key, and none has a
// secret in a place where a rule for arguments finds it. Contents of files and bodies are recorded as they are.
func intentChecks() func(value any) (why string) {
	keys := schemas.IntentKeys{}
	return func(value any) string {
		i, ok := value.(*schemas.Intent)
		if !ok {
			return schemas.WhyField
		}
		if r, err := i.HTTPRequest(); err == nil && hasSecret(r) {
			return schemas.WhySecret
		}
		if !keys.Add(i) {
			return schemas.WhyConflict
		}
		return ""
	}
}

// hasSecret reports whether a rule for arguments takes something out of the URL or of a header's value.
func hasSecret(r *schemas.IntentRequest) bool {
	texts := []string{r.URL}
	for _, h := range r.Headers {
		texts = append(texts, h.Value)
	}
	for _, t := range texts { // each alone: a value is not that of an option before it
		if arguments.Redact([][]byte{[]byte(t)}, nil)[0] != schemas.Text(t) {
			return true
		}
	}
	return false
}

package main

import (
	"crypto/sha256"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/schemas"
)

// intentChecks judges the intents of one run, one after the other: no two have one idempotency key, and none has a
// secret in a place where a rule for arguments finds it. Contents of files and bodies are recorded as they are.
func intentChecks() func(value any) (why string) {
	seen := map[[sha256.Size]byte]struct{}{} // digests: keys may be long
	return func(value any) string {
		i, ok := value.(*schemas.Intent)
		if !ok {
			return schemas.WhyField
		}
		if r, err := i.HTTPRequest(); err == nil && hasSecret(r) {
			return schemas.WhySecret
		}
		if i.IdempotencyKey == "" {
			return ""
		}
		key := sha256.Sum256([]byte(i.IdempotencyKey))
		if _, twice := seen[key]; twice {
			return schemas.WhyConflict
		}
		seen[key] = struct{}{}
		return ""
	}
}

// hasSecret reports whether a rule for arguments takes something out of the URL or of a header's value.
func hasSecret(r *schemas.IntentRequest) bool {
	texts := [][]byte{[]byte(r.URL)}
	for _, h := range r.Headers {
		texts = append(texts, []byte(h.Value))
	}
	for _, t := range texts { // each alone: a value is no option of the one before it
		if arguments.Redact([][]byte{t}, nil)[0] != schemas.Text(string(t)) {
			return true
		}
	}
	return false
}

package main

import (
	"bytes"
	"encoding/json"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// commitments are what the log has of values that the policy redacts: their places and, with a key, digests by
// which who has the key and a value knows that it was this one.
func commitments(list []policy.Redacted, key arguments.Key) (out []schemas.RedactedArgument) {
	for _, x := range list {
		r := schemas.RedactedArgument{At: schemas.Text(x.At)}
		if text, ok := canonical(x.Value); key != nil && ok {
			r.Commitment = schemas.CommitmentPrefix + key.Digest(text)
		}
		out = append(out, r)
	}
	return out
}

// canonical is a value in the form of RFC 8785; false if it has none.
func canonical(value any) ([]byte, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // of the package that policy.Decode's numbers are from
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return nil, false
	}
	v := jsontext.Value(bytes.TrimSpace(b.Bytes()))
	return v, v.Canonicalize() == nil
}

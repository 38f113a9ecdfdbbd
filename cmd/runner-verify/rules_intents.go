package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// intentLine checks an intent against those before it. What it says on its own, the parser has checked.
func (v *verifier) intentLine(l *archive.Line, i *schemas.Intent) {
	if !v.intents.Add(i) {
		v.add(ruleIntentsKeys, l.Member, l.Number, "idempotency_key %.100q is that of an intent before it", i.IdempotencyKey)
	}
}

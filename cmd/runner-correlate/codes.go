package main

import (
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// codes are the ambiguities found so far. schemas.Ambiguities is the table of them.
type codes map[string]struct{}

// say adds a code without an argument.
func (c codes) say(code string) { c[code] = struct{}{} }

// of adds a code with what it is about: an id, a name or a path.
func (c codes) of(code, what string) { c[code+":"+what] = struct{}{} }

func (c codes) sorted() []string { return slices.Sorted(maps.Keys(c)) }

// logCodes are the codes of one log.
type logCodes struct {
	empty, flooded, invalid, replaced, truncated, open, after string
}

var policyCodes = logCodes{
	schemas.AmbiguityPolicyEmpty, schemas.AmbiguityPolicyFlooded, schemas.AmbiguityPolicyInvalid, schemas.AmbiguityPolicyReplaced,
	schemas.AmbiguityPolicyTruncated, schemas.AmbiguityPolicyWriterOpen, schemas.AmbiguityPolicyWrittenAfter,
}

var sdkCodes = logCodes{
	schemas.AmbiguitySDKEmpty, schemas.AmbiguitySDKFlooded, schemas.AmbiguitySDKInvalid, schemas.AmbiguitySDKReplaced,
	schemas.AmbiguitySDKTruncated, schemas.AmbiguitySDKWriterOpen, schemas.AmbiguitySDKWrittenAfter,
}

// ofLog adds what is wrong with a log as a whole.
func (c codes) ofLog(k logCodes, f logFacts, p problem, empty bool) {
	if p.line > 0 {
		c[schemas.LineCode(k.invalid, p.line, p.why)] = struct{}{}
	}
	for _, is := range []struct {
		so   bool
		code string
	}{
		{empty, k.empty}, {f.stopped, k.flooded}, {f.replaced, k.replaced}, {f.unterminated, k.truncated},
		{f.writerOpen, k.open}, {f.writtenAfter, k.after},
	} {
		if is.so {
			c.say(is.code)
		}
	}
}

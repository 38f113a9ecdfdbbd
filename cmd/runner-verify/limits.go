package main

import "github.com/runner-evidence/runner/schemas/stream"

// Fixed limits, on top of those of the archive reader. No flag raises them.
const (
	maxLine  = stream.MaxLine // bytes of a line, its LF included
	maxDepth = 16             // nesting of JSON; the contract's own is 4

	// A document up to this size is checked by its JSON Schema as well. The strict
	// parsers, which take the same, need a fraction of its memory.
	maxSchemaChecked = 1 << 20

	// A surface up to this size is kept in memory and shown to assertions; a larger
	// one goes to a scratch file.
	maxWholeSurface = 4 << 20

	// A report up to this size is shown to assertions.
	maxAssertReport = 4 << 20

	// Distinct tool-call ids in a layer, kept in memory for the correlation.
	maxToolCalls = 1 << 18
)

// nested returns the deepest nesting of arrays and objects in a JSON text, which
// need not be valid.
func nested(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

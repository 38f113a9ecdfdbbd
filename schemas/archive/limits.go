package archive

import "github.com/runner-evidence/runner/schemas/stream"

// Fixed limits, on top of those of the container and of the members' forms. No flag
// raises them.
const (
	MaxLine  = stream.MaxLine // bytes of a line, its LF included
	MaxDepth = 16             // nesting of JSON; the contract's own is 4

	// MaxSchemaChecked is the size in bytes up to which a document is offered to
	// Visitor.Schema. The strict parsers, which take the same documents, need a
	// fraction of a validator's memory. A larger report is read element by element.
	MaxSchemaChecked = 16 << 10

	// MaxWholeSurface is the size in bytes below which a visitor gets the surface as
	// a Document as well. A larger one is only streamed.
	MaxWholeSurface = 4 << 20

	// MaxFindings is how many findings there are before reading ends.
	MaxFindings = 10_000
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

// shallow refuses what nests too deep for a parser that recurses.
func (s *reader) shallow(member string, line int, b []byte) bool {
	if d := nested(b); d > MaxDepth {
		s.find(RuleLimit, member, line, "JSON nests %d deep, at most %d", d, MaxDepth)
		return false
	}
	return true
}

// Package jsonrpc reads lines of JSON-RPC 2.0 as MCP uses it, strictly: what it takes,
// no two readers can take for different messages.
//
// A Scanner checks one line against RFC 8259 and UTF-8, in one pass and in chunks of any
// size, and notes what a proxy needs of it: where the values of the protocol's own fields
// are, and the text of short ones. It allocates nothing in proportion to the line. It
// refuses a key that comes twice, or that differs from one of the protocol's only in case,
// because readers differ about those; the reasons are those of the decision log
// (schemas/POLICY.md, "Reason codes").
//
//	s := jsonrpc.NewClient()
//	if reason := s.Line(line); reason != "" { … }
//	m, reason := s.Message(line)
//
// A line that does not fit into memory is given to Feed part by part, between Begin and
// Finish.
package jsonrpc

import "github.com/runner-evidence/runner/schemas"

// maxDepth is how deep a message may be nested.
const maxDepth = 512

// Value is what a Scanner noted of a field. The offsets count from the line's first byte.
type Value struct {
	Kind       byte   // { [ " 0 t f n, or 0: the field is absent
	Start, End int    // End is 0 until the value is complete
	Text       []byte // of a string, without quotes and escapes, or of a number
	Cut        bool   // the text is longer than what is kept
}

// ToolEntry is one element of result.tools.
type ToolEntry struct {
	Start, End int
	Name       string
	OK         bool // it has one name, a string
}

// Scanner reads lines, one after the other.
type Scanner struct {
	allKeys   bool // repeated keys at any depth are refused (the line is bounded)
	surrogate bool // unpaired surrogate escapes pass in strings that are not noted
	listTools bool // note the elements of result.tools
	slow      bool // take no short way: for tests and benchmarks

	state    state
	depth    int
	base     int    // offset of the chunk
	broken   string // why the line is refused; the rest was not scanned
	doubtful string // why the line is refused, though the rest was scanned
	idBad    bool   // the id is ambiguous
	closed   int    // offset of the brace that ends the message, or -1

	key      Field // of the key read last
	field    Field // of the value that is read
	child    role
	isKey    bool // the string is a key
	note     bool // keep the text of the scalar
	limit    int
	cut      bool
	text     []byte
	start    int // of the scalar
	literal  string
	hex      rune
	hexLeft  int
	high     rune
	part     [4]byte // of a character
	partLen  int
	keys     []span
	keyBytes []byte
	stack    [maxDepth]frame
	vals     [fieldCount]Value
	tools    []ToolEntry
}

type span struct{ start, end int }

// NewClient is a Scanner for lines of a client: repeated keys are refused in every object,
// and so are escapes of half a surrogate pair.
func NewClient() *Scanner { return &Scanner{allKeys: true} }

// NewServer is a Scanner for lines of a server, which may be long: repeated keys are
// refused in the protocol's own objects, and texts may hold half a surrogate pair.
func NewServer() *Scanner { return &Scanner{surrogate: true} }

// ListTools says whether the elements of result.tools are noted, from the next line on.
func (s *Scanner) ListTools(on bool) { s.listTools = on }

// Line scans a whole line without its LF and returns the reason why it is refused, or "".
func (s *Scanner) Line(b []byte) (reason string) {
	s.Begin()
	s.Feed(b)
	return s.Finish()
}

// Begin makes the Scanner ready for the next line.
func (s *Scanner) Begin() {
	s.state, s.depth, s.base, s.broken, s.doubtful, s.idBad, s.closed = stBegin, 0, 0, "", "", false, -1
	s.key, s.high, s.partLen, s.note, s.isKey, s.cut = 0, 0, 0, false, false, false
	s.keys, s.keyBytes, s.tools = s.keys[:0], s.keyBytes[:0], s.tools[:0]
	for i := range s.vals {
		v := &s.vals[i]
		*v = Value{Text: v.Text[:0]}
	}
	if cap(s.text) > 1<<16 {
		s.text = nil
	}
}

// Finish ends the line and returns the reason why it is refused, or "".
func (s *Scanner) Finish() (reason string) {
	if s.broken == "" && s.state != stEnd && s.state != stReturn {
		s.fail(schemas.ReasonBadJSON)
	}
	if s.broken != "" {
		return s.broken
	}
	return s.doubtful
}

// Broken is the reason why Feed refused the line, or "".
func (s *Scanner) Broken() string { return s.broken }

// Offset is how many bytes of the line were fed.
func (s *Scanner) Offset() int { return s.base }

// Closed is the offset of the brace that ends the message, or -1 before it was fed.
func (s *Scanner) Closed() int { return s.closed }

// Value is what was noted of a field. It is valid until the next line.
func (s *Scanner) Value(f Field) *Value { return &s.vals[f] }

// Has reports whether a field is there.
func (s *Scanner) Has(f Field) bool { return s.vals[f].Kind != 0 }

// Tools are the elements of result.tools, if ListTools was on.
func (s *Scanner) Tools() []ToolEntry { return s.tools }

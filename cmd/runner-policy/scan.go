package main

import "unicode/utf8"

// maxDepth is how deep a message may be nested.
const maxDepth = 512

// state is what the scanner expects next.
type state uint8

const (
	stBegin      state = iota // the message
	stKeyOrEnd                // behind {
	stKey                     // behind , in an object
	stColon                   // behind a key
	stValue                   // behind : or , in an array
	stValueOrEnd              // behind [
	stAfter                   // behind a value
	stString                  // inside a string
	stEscape                  // behind a backslash
	stHex                     // in the digits of \u
	stLow                     // behind a high surrogate: a backslash
	stLowU                    // and then a u
	stRune                    // inside a character that was cut by the end of a chunk
	stMinus                   // numbers, by what was read last
	stZero
	stInt
	stPoint
	stFrac
	stExp
	stExpSign
	stExpInt
	stLiteral // inside true, false, null
	stEnd     // behind the message
	stReturn  // behind a carriage return that ends the message
)

// frame is one open object or array.
type frame struct {
	object bool
	role   role
	field  field  // which value this is
	seen   uint32 // fields that were there, by bit
	keys   int    // first of its keys in scanner.keys
	start  int
	many   map[string]struct{} // its keys, when there are many
}

// value is what the scanner noted of a field. The offsets count from the line's
// first byte.
type value struct {
	kind       byte // { [ " 0 t f n, or 0: not there
	start, end int  // end is 0 until the value is complete
	text       []byte
	cut        bool // the text is longer than the limit
}

// tool is one element of result.tools.
type toolRange struct {
	start, end int
	name       string
	ok         bool // has one name, a string
}

// scanner checks one line against RFC 8259 and UTF-8, in one pass and in chunks of
// any size, and notes what the proxy needs of it. It decides before anything else
// reads a line, so no two readers of a line that it took can differ about the keys
// of the protocol's own objects.
type scanner struct {
	allKeys   bool // repeated keys at any depth are refused (the line is bounded)
	surrogate bool // unpaired surrogate escapes pass in strings that are not noted
	listTools bool // note the elements of result.tools

	state  state
	depth  int
	base   int    // offset of the chunk
	code   string // why the line is refused, for good
	soft   string // the same, but the rest was scanned too
	idBad  bool   // the id is ambiguous
	closed int    // offset of the brace that ends the message, or -1

	key      field // of the key read last
	field    field // of the value that is read
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
	vals     [fieldCount]value
	tools    []toolRange
}

type span struct{ start, end int }

// reset makes the scanner ready for the next line.
func (s *scanner) reset() {
	s.state, s.depth, s.base, s.code, s.soft, s.idBad, s.closed = stBegin, 0, 0, "", "", false, -1
	s.key, s.high, s.partLen, s.note, s.isKey, s.cut = 0, 0, 0, false, false, false
	s.keys, s.keyBytes, s.tools = s.keys[:0], s.keyBytes[:0], s.tools[:0]
	for i := range s.vals {
		v := &s.vals[i]
		*v = value{text: v.text[:0]}
	}
	if cap(s.text) > 1<<16 {
		s.text = nil
	}
}

// line scans a whole line without its LF and returns why it is refused, or "".
func (s *scanner) line(b []byte) string {
	s.reset()
	if s.feed(b) {
		s.finish()
	}
	if s.code == "" {
		return s.soft
	}
	return s.code
}

// finish says that the line is over.
func (s *scanner) finish() bool {
	if s.code == "" && s.state != stEnd && s.state != stReturn {
		s.fail(badJSON)
	}
	return s.code == ""
}

func (s *scanner) fail(code string) { s.code = code }

// doubt refuses the line, but goes on: its id may still be needed.
func (s *scanner) doubt(code string) {
	if s.soft == "" {
		s.soft = code
	}
}

// feed scans the next chunk; false means that the line is bad.
func (s *scanner) feed(b []byte) bool {
	for i := 0; i < len(b) && s.code == ""; {
		if s.state <= stAfter && s.state != stBegin && !s.allKeys && s.stack[s.depth-1].role == roleOther {
			if i = s.bulk(b, i); i == len(b) {
				break
			}
		}
		switch c := b[i]; s.state {
		case stString:
			i = s.str(b, i)
		case stAfter:
			i++
			switch c {
			case ',':
				if s.stack[s.depth-1].object {
					s.state = stKey
				} else {
					s.state = stValue
				}
			case '}', ']':
				s.pop(c, s.base+i)
			case ' ', '\t':
			default:
				s.fail(badJSON)
			}
		case stKey, stKeyOrEnd:
			i++
			switch {
			case c == '"':
				s.beginKey()
			case c == '}' && s.state == stKeyOrEnd:
				s.pop(c, s.base+i)
			case c == ' ' || c == '\t':
			default:
				s.fail(badJSON)
			}
		case stColon:
			i++
			switch c {
			case ':':
				s.state = stValue
			case ' ', '\t':
			default:
				s.fail(badJSON)
			}
		case stValue, stValueOrEnd:
			i++
			switch {
			case c == ' ' || c == '\t':
			case c == ']' && s.state == stValueOrEnd:
				s.pop(c, s.base+i)
			default:
				s.value(c, s.base+i-1)
			}
		case stBegin, stEnd, stReturn:
			i++
			s.outside(c, s.base+i-1)
		case stLiteral:
			if c != s.literal[0] {
				s.fail(badJSON)
				break
			}
			i++
			if s.literal = s.literal[1:]; s.literal == "" {
				s.endScalar(s.base + i)
			}
		case stEscape, stHex, stLow, stLowU, stRune:
			if s.inString(c) {
				i++
			}
		default:
			i = s.number(b, i)
		}
	}
	s.base += len(b)
	return s.code == ""
}

// outside is a byte before or behind the message.
func (s *scanner) outside(c byte, at int) {
	switch {
	case s.state == stReturn:
		s.fail(badJSON)
	case c == ' ' || c == '\t':
	case s.state == stEnd && c == '\r':
		// Some readers take a carriage return for the end of a line, so it is taken
		// in that place alone: inside, it could make two messages of one.
		s.state = stReturn
	case s.state == stEnd:
		s.fail(badJSON)
	case c == '{':
		s.field, s.child = 0, roleMessage
		s.push(true, at)
	case c == '[':
		s.fail(batch)
	case c == '"' || c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		s.fail(notJSONRPC)
	default:
		s.fail(badJSON)
	}
}

// value begins a value of an object or array.
func (s *scanner) value(c byte, at int) {
	f := &s.stack[s.depth-1]
	s.field, s.child = 0, roleOther
	if f.object {
		s.field = s.key
		s.child = inside[s.key]
	} else if f.role == roleTools {
		s.child = roleTool
	}
	if s.listTools && f.role == roleTools {
		s.tools = append(s.tools, toolRange{start: at})
	}
	s.start = at
	switch {
	case c == '"':
		s.state, s.isKey = stString, false
		s.beginNote('"')
	case c == '{' || c == '[':
		if (c == '[') != (s.child == roleTools) {
			s.child = roleOther
		}
		s.push(c == '{', at)
	case c == '-' || c >= '0' && c <= '9':
		s.beginNote('0')
		s.take1(c)
		switch c {
		case '-':
			s.state = stMinus
		case '0':
			s.state = stZero
		default:
			s.state = stInt
		}
	case c == 't':
		s.beginLiteral(c, "rue")
	case c == 'f':
		s.beginLiteral(c, "alse")
	case c == 'n':
		s.beginLiteral(c, "ull")
	default:
		s.fail(badJSON)
	}
}

func (s *scanner) beginLiteral(c byte, rest string) {
	s.beginNote(c)
	s.literal, s.state = rest, stLiteral
}

// push opens an object or array.
func (s *scanner) push(object bool, at int) {
	if s.depth == maxDepth {
		s.fail(tooDeep)
		return
	}
	if s.field != 0 {
		s.vals[s.field].kind, s.vals[s.field].start = map[bool]byte{true: '{', false: '['}[object], at
	}
	s.stack[s.depth] = frame{object: object, role: s.child, field: s.field, keys: len(s.keys), start: at}
	s.depth++
	if object {
		s.state = stKeyOrEnd
	} else {
		s.state = stValueOrEnd
	}
}

// pop closes what c says; end is the offset behind it.
func (s *scanner) pop(c byte, end int) {
	f := &s.stack[s.depth-1]
	if f.object != (c == '}') {
		s.fail(badJSON)
		return
	}
	if f.field != 0 {
		s.vals[f.field].end = end
	}
	if s.allKeys && f.keys < len(s.keys) {
		s.keyBytes, s.keys = s.keyBytes[:s.keys[f.keys].start], s.keys[:f.keys]
	}
	f.many = nil
	s.depth--
	s.state = stAfter
	if s.depth == 0 {
		s.state, s.closed = stEnd, end-1
		return
	}
	s.done(end)
}

// done notes the end of an element of result.tools.
func (s *scanner) done(end int) {
	if s.listTools && s.stack[s.depth-1].role == roleTools {
		s.tools[len(s.tools)-1].end = end
	}
}

// beginNote begins a scalar; the text of some is kept.
func (s *scanner) beginNote(kind byte) {
	s.note = false
	if s.field == 0 {
		return
	}
	v := &s.vals[s.field]
	v.kind, v.start = kind, s.start
	if s.limit = limits[s.field]; s.limit > 0 {
		s.note, s.cut, s.text = true, false, s.text[:0]
	}
}

// endScalar ends a string that is no key, a number or a literal.
func (s *scanner) endScalar(end int) {
	s.state = stAfter
	s.done(end)
	if s.field == 0 {
		return
	}
	v := &s.vals[s.field]
	v.end = end
	if s.note {
		v.text, v.cut, s.note = append(v.text[:0], s.text...), s.cut, false
		if s.field == fToolName && s.listTools {
			t := &s.tools[len(s.tools)-1]
			t.name, t.ok = string(v.text), v.kind == '"' && !v.cut
		}
	}
}

// take keeps text of a key or scalar.
func (s *scanner) take(b []byte) {
	if !s.note {
		return
	}
	if n := s.limit - len(s.text); len(b) > n {
		b, s.cut = b[:n], true
	}
	s.text = append(s.text, b...)
}

func (s *scanner) take1(c byte) {
	if s.note {
		s.take([]byte{c})
	}
}

func (s *scanner) takeRune(r rune) {
	if s.note {
		s.take(utf8.AppendRune(nil, r))
	}
}

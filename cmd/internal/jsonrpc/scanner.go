package jsonrpc

import (
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// state is what the scanner expects next.
type state uint8

const (
	stBegin      state = iota // the message
	stKeyOrEnd                // after {
	stKey                     // after , in an object
	stColon                   // after a key
	stValue                   // after : or , in an array
	stValueOrEnd              // after [
	stAfter                   // after a value
	stString                  // inside a string
	stEscape                  // after a backslash
	stHex                     // in the digits of \u
	stLow                     // after a high surrogate: a backslash
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
	stEnd     // after the message
	stReturn  // after a carriage return that ends the message
)

// frame is one open object or array.
type frame struct {
	object bool
	role   role
	field  Field  // which value this is
	seen   uint32 // fields that were there, by bit
	keys   int    // first of its keys in Scanner.keys
	start  int
	many   map[string]struct{} // its keys, when there are many
}

// fail refuses the line: the rest is not scanned.
func (s *Scanner) fail(reason string) { s.broken = reason }

// doubt refuses the line, but goes on: its id may still be needed.
func (s *Scanner) doubt(reason string) {
	if s.doubtful == "" {
		s.doubtful = reason
	}
}

// Feed scans the next part of a line; false means that the line is refused.
func (s *Scanner) Feed(b []byte) bool {
	for i := 0; i < len(b) && s.broken == ""; {
		if s.state <= stAfter && s.state != stBegin && !s.allKeys && s.stack[s.depth-1].role == roleOther && !s.slow {
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
				s.fail(schemas.ReasonBadJSON)
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
				s.fail(schemas.ReasonBadJSON)
			}
		case stColon:
			i++
			switch c {
			case ':':
				s.state = stValue
			case ' ', '\t':
			default:
				s.fail(schemas.ReasonBadJSON)
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
				s.fail(schemas.ReasonBadJSON)
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
	return s.broken == ""
}

// outside is a byte before or after the message.
func (s *Scanner) outside(c byte, at int) {
	switch {
	case s.state == stReturn:
		s.fail(schemas.ReasonBadJSON)
	case c == ' ' || c == '\t':
	case s.state == stEnd && c == '\r':
		// Some readers end a line at a carriage return, so it is accepted only there: inside,
		// it could make two messages of one.
		s.state = stReturn
	case s.state == stEnd:
		s.fail(schemas.ReasonBadJSON)
	case c == '{':
		s.field, s.child = 0, roleMessage
		s.push(true, at)
	case c == '[':
		s.fail(schemas.ReasonBatch)
	case c == '"' || c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		s.fail(schemas.ReasonNotJSONRPC)
	default:
		s.fail(schemas.ReasonBadJSON)
	}
}

// value begins a value of an object or array.
func (s *Scanner) value(c byte, at int) {
	f := &s.stack[s.depth-1]
	s.field, s.child = 0, roleOther
	if f.object {
		s.field = s.key
		s.child = inside[s.key]
	} else if f.role == roleTools {
		s.child = roleTool
	}
	if s.listTools && f.role == roleTools {
		s.tools = append(s.tools, ToolEntry{Start: at})
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
		s.fail(schemas.ReasonBadJSON)
	}
}

func (s *Scanner) beginLiteral(c byte, rest string) {
	s.beginNote(c)
	s.literal, s.state = rest, stLiteral
}

// push opens an object or array.
func (s *Scanner) push(object bool, at int) {
	if s.depth == maxDepth {
		s.fail(schemas.ReasonTooDeep)
		return
	}
	if s.field != 0 {
		s.vals[s.field].Kind, s.vals[s.field].Start = map[bool]byte{true: '{', false: '['}[object], at
	}
	s.stack[s.depth] = frame{object: object, role: s.child, field: s.field, keys: len(s.keys), start: at}
	s.depth++
	if object {
		s.state = stKeyOrEnd
	} else {
		s.state = stValueOrEnd
	}
}

// pop closes what c says; end is the offset after it.
func (s *Scanner) pop(c byte, end int) {
	f := &s.stack[s.depth-1]
	if f.object != (c == '}') {
		s.fail(schemas.ReasonBadJSON)
		return
	}
	if f.field != 0 {
		s.vals[f.field].End = end
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
func (s *Scanner) done(end int) {
	if s.listTools && s.stack[s.depth-1].role == roleTools {
		s.tools[len(s.tools)-1].End = end
	}
}

// beginNote begins a scalar; the text of some is kept.
func (s *Scanner) beginNote(kind byte) {
	s.note = false
	if s.field == 0 {
		return
	}
	v := &s.vals[s.field]
	v.Kind, v.Start = kind, s.start
	if s.limit = limits[s.field]; s.limit > 0 {
		s.note, s.cut, s.text = true, false, s.text[:0]
	}
}

// endScalar ends a string that is not a key, a number or a literal.
func (s *Scanner) endScalar(end int) {
	s.state = stAfter
	s.done(end)
	if s.field == 0 {
		return
	}
	v := &s.vals[s.field]
	v.End = end
	if s.note {
		v.Text, v.Cut, s.note = append(v.Text[:0], s.text...), s.cut, false
		if s.field == FieldToolName && s.listTools {
			t := &s.tools[len(s.tools)-1]
			t.Name, t.OK = string(v.Text), v.Kind == '"' && !v.Cut
		}
	}
}

// take keeps text of a key or scalar.
func (s *Scanner) take(b []byte) {
	if !s.note {
		return
	}
	if n := s.limit - len(s.text); len(b) > n {
		b, s.cut = b[:n], true
	}
	s.text = append(s.text, b...)
}

func (s *Scanner) take1(c byte) {
	if s.note {
		s.take([]byte{c})
	}
}

func (s *Scanner) takeRune(r rune) {
	if s.note {
		s.take(utf8.AppendRune(nil, r))
	}
}

package jsonrpc

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The methods of MCP that a proxy acts on.
const (
	MethodCall      = "tools/call"
	MethodList      = "tools/list"
	MethodCancelled = "notifications/cancelled"
)

// maxID is the length of an id, in bytes of its text.
const maxID = 256

// maxSafe is the largest whole number that floating point tells from the next.
const maxSafe = 1<<53 - 1

// Kind is what a JSON-RPC message is.
type Kind uint8

// Kinds of messages.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// ID is a JSON-RPC id. Its key tells numbers and strings apart; the empty one is null.
type ID struct {
	Key string // "n" or "s" and the text
	Raw string // as it was written; null when there is none
}

// NullID is the id of a message that has none.
var NullID = ID{Raw: "null"}

// Text is the id without quotes, and its type.
func (i ID) Text() (text, kind string) {
	if i.Key == "" {
		return "", "null"
	}
	return i.Key[1:], map[byte]string{'n': "number", 's': "string"}[i.Key[0]]
}

// Message is what a line is.
type Message struct {
	Kind   Kind
	ID     ID
	Method string
}

// Identify reads the id at a field; reason says why it is not one. Numbers with a
// fraction or an exponent are equal to others that are written differently, and minus
// zero is equal to zero: what the answer would say is not known. line is nil for one
// that was fed in parts.
func (s *Scanner) Identify(f Field, line []byte) (id ID, reason string) {
	v := &s.vals[f]
	if v.End == 0 || v.Cut || len(v.Text) > maxID {
		return NullID, schemas.ReasonBadID
	}
	id = ID{Raw: string(v.Text)}
	switch v.Kind {
	case '0':
		if bytes.ContainsAny(v.Text, ".eE") || string(v.Text) == "-0" {
			return NullID, schemas.ReasonBadID
		}
		if n, err := strconv.ParseInt(id.Raw, 10, 64); err != nil || n > maxSafe || n < -maxSafe {
			return NullID, schemas.ReasonBadID // JavaScript takes it for another number
		}
		id.Key = "n" + id.Raw
	case '"':
		if hasControl(v.Text) {
			return NullID, schemas.ReasonBadID
		}
		id.Key, id.Raw = "s"+id.Raw, "" // how it was written is known only with the line
		if line != nil {
			id.Raw = string(line[v.Start:v.End])
		}
	default:
		return NullID, schemas.ReasonBadID
	}
	return id, ""
}

// hasControl reports whether text holds characters that some reader may end it at
// or leave out.
func hasControl(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			return true
		}
	}
	return false
}

// isASCII reports whether text has only characters that no reader trims or folds in its
// own way, as U+FEFF.
func isASCII(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) < 0
}

// Message is what the line is that was scanned to its end, or the reason why it is
// refused. line is nil for one that was fed in parts.
func (s *Scanner) Message(line []byte) (m Message, reason string) {
	m = Message{ID: NullID}
	v := &s.vals
	if v[FieldJSONRPC].Kind != '"' || string(v[FieldJSONRPC].Text) != "2.0" {
		return m, schemas.ReasonNotJSONRPC
	}
	if p := v[FieldParams].Kind; p != 0 && p != '{' && p != 'n' { // null counts as absent
		return m, schemas.ReasonNotJSONRPC
	}
	failed := s.Failed()
	answers := v[FieldResult].Kind != 0 || v[FieldError].Kind != 0
	if v[FieldID].Kind != 0 && (v[FieldID].Kind != 'n' || !answers) {
		if m.ID, reason = s.Identify(FieldID, line); reason != "" {
			return m, reason
		}
	}
	switch {
	case v[FieldMethod].Kind == 0:
		m.Kind = Response
		if v[FieldID].Kind == 0 || !answers || failed && v[FieldResult].Kind != 0 {
			return m, schemas.ReasonNotJSONRPC
		}
		if v[FieldID].Kind == 'n' && !failed {
			return m, schemas.ReasonBadID
		}
	case answers || v[FieldMethod].Kind != '"' || v[FieldMethod].Cut || hasControl(v[FieldMethod].Text) || !isASCII(v[FieldMethod].Text):
		return m, schemas.ReasonNotJSONRPC
	default:
		m.Kind, m.Method = Request, string(v[FieldMethod].Text)
		if v[FieldID].Kind == 0 {
			m.Kind = Notification
		}
	}
	return m, ""
}

// Failed reports whether an answer has an error. A null error beside a result is none: some
// servers always write both.
func (s *Scanner) Failed() bool {
	k := s.vals[FieldError].Kind
	return k != 0 && (k != 'n' || s.vals[FieldResult].Kind == 0)
}

// CheckCall is the reason why a message is refused that is not a well-formed tools/call,
// or that could be taken for one; else "".
func (s *Scanner) CheckCall(m Message) (reason string) {
	if m.Method != MethodCall {
		if strings.EqualFold(strings.TrimSpace(m.Method), MethodCall) {
			return schemas.ReasonBadCall
		}
		return ""
	}
	name, args, meta := &s.vals[FieldName], s.vals[FieldArguments].Kind, s.vals[FieldMeta].Kind
	state := s.vals[FieldParamsState].Kind
	switch {
	case name.Kind != '"' || len(name.Text) == 0 || len(name.Text) > maxName || hasControl(name.Text),
		args != 0 && args != '{' && args != 'n',
		meta != 0 && meta != '{',
		state != 0 && state != '"':
		return schemas.ReasonBadCall
	}
	return ""
}

// Addressee is the id to which the error about a refused line goes, and whether there is
// an answer at all: not to a notification, and never under an id of the server's, which
// the client could take for one of its own.
func (s *Scanner) Addressee(line []byte) (ID, bool) {
	v := &s.vals
	if s.broken != "" || s.idBad {
		return NullID, true // another id could still have followed
	}
	if v[FieldMethod].Kind == 0 {
		return NullID, v[FieldResult].Kind == 0 && v[FieldError].Kind == 0
	}
	if v[FieldID].Kind == 0 {
		return NullID, v[FieldMethod].Kind != '"'
	}
	id, _ := s.Identify(FieldID, line)
	return id, true
}

// AnswerOf is the id of the request that a refused line was certainly the answer to.
func (s *Scanner) AnswerOf(line []byte) (ID, bool) {
	if s.broken != "" || s.idBad || s.vals[FieldMethod].Kind != 0 {
		return NullID, false
	}
	id, reason := s.Identify(FieldID, line)
	return id, reason == ""
}

package main

import (
	"bytes"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Why a message is refused (schemas/POLICY.md, "Reason codes").
const (
	badJSON      = schemas.ReasonBadJSON
	badUTF8      = schemas.ReasonBadUTF8
	duplicateKey = schemas.ReasonDuplicateKey
	caseKey      = schemas.ReasonCaseKey
	batch        = schemas.ReasonBatch
	tooLong      = schemas.ReasonTooLong
	tooDeep      = schemas.ReasonTooDeep
	notJSONRPC   = schemas.ReasonNotJSONRPC
	badID        = schemas.ReasonBadID
	idInUse      = schemas.ReasonIDInUse
	badCall      = schemas.ReasonBadCall
	logFailed    = schemas.ReasonLogFailed
	tooManyCalls = schemas.ReasonTooManyCalls
)

// The methods that the proxy acts on.
const (
	methodCall      = "tools/call"
	methodList      = "tools/list"
	methodCancelled = "notifications/cancelled"
)

// maxID is the length of an id, in bytes of its text.
const maxID = 256

// kind is what a JSON-RPC message is.
type kind uint8

const (
	request kind = iota + 1
	notification
	response
)

// id is a JSON-RPC id. Its key tells numbers and strings apart; the empty one is null.
type id struct {
	key string // "n" or "s" and the text
	raw string // as it was written; null when there is none
}

var nullID = id{raw: "null"}

// text is the id without quotes, and its type.
func (i id) text() (string, string) {
	if i.key == "" {
		return "", "null"
	}
	return i.key[1:], map[byte]string{'n': "number", 's': "string"}[i.key[0]]
}

// identify reads the id at a field; code says why it is none. Numbers with a
// fraction or an exponent are equal to others that are written differently, and
// minus zero to zero: what the answer would say is not known.
func (s *scanner) identify(f field, line []byte) (id, string) {
	v := &s.vals[f]
	if v.end == 0 || v.cut || len(v.text) > maxID {
		return nullID, badID
	}
	out := id{raw: string(v.text)}
	switch v.kind {
	case '0':
		if bytes.ContainsAny(v.text, ".eE") || string(v.text) == "-0" {
			return nullID, badID
		}
		out.key = "n" + out.raw
	case '"':
		if hasControl(v.text) {
			return nullID, badID
		}
		out.key, out.raw = "s"+out.raw, "" // in a streamed line its quotes are not known
		if line != nil {
			out.raw = string(line[v.start:v.end])
		}
	default:
		return nullID, badID
	}
	return out, ""
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

// message is what the proxy knows of a line.
type message struct {
	kind   kind
	id     id
	method string
}

// message says what a line is that was scanned to its end, or why it is refused.
// line is nil for one that was streamed.
func (s *scanner) message(line []byte) (message, string) {
	m := message{id: nullID}
	v := &s.vals
	if v[fJSONRPC].kind != '"' || string(v[fJSONRPC].text) != "2.0" {
		return m, notJSONRPC
	}
	if p := v[fParams].kind; p != 0 && p != '{' && p != 'n' { // null is as good as nothing
		return m, notJSONRPC
	}
	answers := v[fResult].kind != 0 || v[fError].kind != 0
	code := ""
	if v[fID].kind != 0 && (v[fID].kind != 'n' || !answers) {
		if m.id, code = s.identify(fID, line); code != "" {
			return m, code
		}
	}
	switch {
	case v[fMethod].kind == 0:
		m.kind = response
		if v[fID].kind == 0 || answers == (v[fResult].kind != 0 && v[fError].kind != 0) {
			return m, notJSONRPC
		}
		if v[fID].kind == 'n' && v[fError].kind == 0 {
			return m, badID
		}
	case answers || v[fMethod].kind != '"' || v[fMethod].cut || hasControl(v[fMethod].text):
		return m, notJSONRPC
	default:
		m.kind, m.method = request, string(v[fMethod].text)
		if v[fID].kind == 0 {
			m.kind = notification
		}
	}
	return m, ""
}

// call checks what a tools/call must have, and that no other method could be taken
// for one.
func (s *scanner) call(m message) string {
	if m.method != methodCall {
		if strings.EqualFold(strings.TrimSpace(m.method), methodCall) {
			return badCall
		}
		return ""
	}
	name, args, meta := &s.vals[fName], s.vals[fArguments].kind, s.vals[fMeta].kind
	switch {
	case name.kind != '"' || len(name.text) == 0 || len(name.text) > maxName || hasControl(name.text):
		return badCall
	case args != 0 && args != '{' && args != 'n', meta != 0 && meta != '{':
		return badCall
	case s.vals[fParamsState].kind != 0 && s.vals[fParamsState].kind != '"':
		return badCall
	}
	return ""
}

// addressee is the id to which a refused line's error goes, and whether there is an
// answer at all: not to a notification, and never under an id of the server's, which
// the client could hold for one of its own.
func (s *scanner) addressee(line []byte) (id, bool) {
	v := &s.vals
	if s.code != "" || s.idBad {
		return nullID, true // another id could still have followed
	}
	if v[fMethod].kind == 0 {
		return nullID, v[fResult].kind == 0 && v[fError].kind == 0
	}
	if v[fID].kind == 0 {
		return nullID, v[fMethod].kind != '"'
	}
	i, _ := s.identify(fID, line)
	return i, true
}

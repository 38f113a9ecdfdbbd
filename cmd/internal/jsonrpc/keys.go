package jsonrpc

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// role says which of the protocol's objects a frame is.
type role uint8

const (
	roleOther   role = iota
	roleMessage      // the line itself
	roleParams
	roleResult
	roleTools // the array result.tools
	roleTool
)

// Field is a key of one of the protocol's own objects.
type Field uint8

// The fields that are noted: of the message, its params, its result, and the tools there.
const (
	FieldJSONRPC Field = iota + 1
	FieldID
	FieldMethod
	FieldParams
	FieldResult
	FieldError
	FieldName
	FieldArguments
	FieldMeta
	FieldRequestID
	FieldParamsState
	FieldInputResponses
	FieldToken
	FieldTask
	FieldURI
	FieldCursor
	FieldIsError
	FieldResultType
	FieldResultState
	FieldTools
	FieldContent
	FieldStructured
	FieldNextCursor
	FieldResultMeta
	FieldToolName
	fieldCount
)

// names are the keys that have a meaning to some reader of the protocol.
var names = [...][]struct {
	name  string
	field Field
}{
	roleMessage: {{"jsonrpc", FieldJSONRPC}, {"id", FieldID}, {"method", FieldMethod}, {"params", FieldParams}, {"result", FieldResult}, {"error", FieldError}},
	roleParams: {{"name", FieldName}, {"arguments", FieldArguments}, {"_meta", FieldMeta}, {"requestId", FieldRequestID}, {"requestState", FieldParamsState},
		{"inputResponses", FieldInputResponses}, {"progressToken", FieldToken}, {"task", FieldTask}, {"uri", FieldURI}, {"cursor", FieldCursor}},
	roleResult: {{"isError", FieldIsError}, {"resultType", FieldResultType}, {"requestState", FieldResultState}, {"tools", FieldTools},
		{"content", FieldContent}, {"structuredContent", FieldStructured}, {"nextCursor", FieldNextCursor}, {"_meta", FieldResultMeta}},
	roleTools: nil,
	roleTool:  {{"name", FieldToolName}},
}

// inside is the role of an object that is the value of a field.
var inside = [fieldCount]role{FieldParams: roleParams, FieldResult: roleResult, FieldTools: roleTools}

// limits are how many bytes of a scalar's text are kept; 0 keeps none.
var limits = [fieldCount]int{
	FieldJSONRPC: 64, FieldID: 1024, FieldMethod: 1024, FieldName: maxName + 1, FieldRequestID: 1024, FieldParamsState: maxState,
	FieldResultType: 64, FieldResultState: maxState, FieldToolName: maxName + 1,
}

const (
	maxName  = 1024    // bytes of a tool's name
	maxState = 1 << 20 // bytes of a requestState that joins two requests
	maxKey   = 1024    // bytes of a key that could be one of the protocol's
	manyKeys = 32      // beyond these a map finds repeated keys
)

// beginKey begins a key of the innermost object.
func (s *Scanner) beginKey() {
	s.state, s.isKey, s.cut, s.text = stString, true, false, s.text[:0]
	s.limit = maxKey
	s.note = s.allKeys || s.stack[s.depth-1].role != roleOther
	if s.allKeys {
		s.limit = int(^uint(0) >> 1)
	}
}

// endKey looks at the key that was read.
func (s *Scanner) endKey() {
	s.state, s.isKey, s.key = stColon, false, 0
	if !s.note {
		return
	}
	s.note = false
	f := &s.stack[s.depth-1]
	for _, n := range names[f.role] {
		if string(s.text) == n.name {
			s.key = n.field
			if f.seen&(1<<n.field) != 0 {
				s.doubtKey(schemas.ReasonDuplicateKey, n.field)
			}
			f.seen |= 1 << n.field
		} else if sameFolded(s.text, n.name) {
			s.doubtKey(schemas.ReasonCaseKey, n.field)
		}
	}
	if s.allKeys {
		s.compare(f)
		if string(s.text) == "__proto__" {
			// Copied key by key in JavaScript, it brings keys from another place.
			s.doubt(schemas.ReasonNotJSONRPC)
		}
	}
}

func (s *Scanner) doubtKey(code string, f Field) {
	s.doubt(code)
	s.idBad = s.idBad || f == FieldID
}

// compare looks for the key among those that its object had.
func (s *Scanner) compare(f *frame) {
	n := len(s.keys) - f.keys
	if n >= manyKeys {
		if f.many == nil {
			f.many = map[string]struct{}{}
			for _, k := range s.keys[f.keys:] {
				f.many[s.folded(f, s.keyBytes[k.start:k.end])] = struct{}{}
			}
		}
		k := s.folded(f, s.text)
		if _, ok := f.many[k]; ok {
			s.doubt(map[bool]string{true: schemas.ReasonDuplicateKey, false: schemas.ReasonCaseKey}[f.role == roleOther])
		}
		f.many[k] = struct{}{}
		return
	}
	for _, k := range s.keys[f.keys:] {
		old := s.keyBytes[k.start:k.end]
		if bytes.Equal(old, s.text) {
			s.doubt(schemas.ReasonDuplicateKey)
		} else if f.role != roleOther && sameFolded(old, string(s.text)) {
			s.doubt(schemas.ReasonCaseKey)
		}
	}
	at := len(s.keyBytes)
	s.keyBytes = append(s.keyBytes, s.text...)
	s.keys = append(s.keys, span{at, len(s.keyBytes)})
}

// folded is what keys are compared by: in the protocol's own objects without case.
func (s *Scanner) folded(f *frame, key []byte) string {
	if f.role == roleOther {
		return string(key)
	}
	var out []byte
	for len(key) > 0 {
		r, n := utf8.DecodeRune(key)
		out, key = utf8.AppendRune(out, fold(r)), key[n:]
	}
	return string(out)
}

// sameFolded reports whether a reader that ignores case could take a for b.
func sameFolded(a []byte, b string) bool {
	for len(a) > 0 && len(b) > 0 {
		r, n := utf8.DecodeRune(a)
		q, m := utf8.DecodeRuneInString(b)
		if r != q && fold(r) != fold(q) {
			return false
		}
		a, b = a[n:], b[m:]
	}
	return len(a) == 0 && len(b) == 0
}

// fold is one character for all that differ only in case. The Turkish letters i without
// and with a dot are an i to some libraries (schemas/POLICY.md, "Reason codes").
func fold(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r == 'ı' || r == 'İ':
		return 'I'
	}
	least := r
	for q := unicode.SimpleFold(r); q != r; q = unicode.SimpleFold(q) {
		least = min(least, q)
	}
	return least
}

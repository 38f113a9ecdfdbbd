package jsonrpc

import (
	"bytes"
	"encoding/json"

	"github.com/runner-evidence/runner/schemas"
)

// Salvage is the ids of the requests that a refused line was about: what a client sent under
// them, or what a server answered. The line may be broken in the ways in which programs
// write JSON wrongly: other encodings, NaN and Infinity, several messages in an array. The
// ids are only good for telling the other side that its message was refused, under an id
// that it can have no second one of.
func Salvage(line []byte, answers bool) (ids []ID) {
	clean := plainWords(bytes.ToValidUTF8(line, []byte("?")))
	list := []json.RawMessage{clean}
	if t := bytes.TrimSpace(clean); len(t) > 0 && t[0] == '[' && json.Unmarshal(t, &list) != nil {
		return nil
	}
	s := NewServer()
	for _, raw := range list {
		if s.Line(raw) != "" || s.idBad {
			continue
		}
		if s.Has(FieldMethod) == answers || !s.Has(FieldID) {
			continue
		}
		if id, reason := s.Identify(FieldID, raw); reason == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// plainWords replaces NaN and Infinity outside of strings by numbers.
func plainWords(line []byte) []byte {
	out := make([]byte, 0, len(line))
	inString := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inString && c == '\\' && i+1 < len(line):
			out = append(out, c)
			i++
			out = append(out, line[i])
			continue
		case c == '"':
			inString = !inString
		case !inString && hasPrefix(line[i:], "NaN"):
			out, i = append(out, '0'), i+2
			continue
		case !inString && hasPrefix(line[i:], "Infinity"):
			out, i = append(out, '0'), i+7
			continue
		}
		out = append(out, line[i])
	}
	return out
}

// Written is the id with a form for answers, if the line that had it was not kept.
func (i ID) Written() ID {
	if text, kind := i.Text(); i.Raw == "" && kind == "string" {
		raw, _ := schemas.Marshal(text)
		i.Raw = string(raw)
	}
	return i
}

// Twin is the same id as the other of number and string.
func (i ID) Twin() ID {
	switch {
	case i.Key == "":
		return i
	case i.Key[0] == 'n':
		return ID{Key: "s" + i.Key[1:]}
	}
	return ID{Key: "n" + i.Key[1:]}
}

package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Note is one kind of note of observation-health.json (ARCHIVE.md, "Notes"): its one format. A note reads
// CODE: and, after a blank each, its fields and its tail.
type Note struct {
	Code   string
	By     string // the stage that writes it
	Shared bool   // other implementations write it too, with other words
	Shape  NoteShape
	Fields []NoteField            // in order; notes of other shapes have at most one
	Tail   string                 // fixed words at the end
	Former []string               // tails of earlier releases, whose archives stay valid
	Check  func(NoteValues) error // says which values there can be; nil: all of their form
	Says   string
}

// NoteShape is how the values of a note are laid out.
type NoteShape int

// Shapes of notes.
const (
	NoteOfFields NoteShape = iota // the fields, each once and in order
	NoteOfCounts                  // NAME=VALUE words, sorted by bytes, each once
	NoteOfTexts                   // texts, separated by "; "
)

// NoteField is one field of a note. Without a key only its value is written.
type NoteField struct {
	Key      string
	Form     NoteForm
	Optional bool // all optional fields of a note are present, or none
}

// NoteForm is the form of a field's value.
type NoteForm int

// Forms of values.
const (
	ValueCount  NoteForm = iota // a decimal number
	ValueWord                   // a text without blanks
	ValueDigest                 // sha256: and 64 hex digits
	ValueHex                    // 64 hex digits
	ValueQuoted                 // a JSON string
	ValueText                   // the rest of the note
)

// NoteValue is one value of a note. Texts have no key.
type NoteValue struct{ Key, Value string }

// NoteValues are the values of a note, in order.
type NoteValues []NoteValue

// CountOf is a NAME=VALUE word of a note of counts.
func CountOf(name string, n uint64) NoteValue { return NoteValue{name, strconv.FormatUint(n, 10)} }

// Get is the value of a key.
func (v NoteValues) Get(key string) (string, bool) {
	for i := range v {
		if v[i].Key == key {
			return v[i].Value, true
		}
	}
	return "", false
}

// Count is the number of a key; false without one.
func (v NoteValues) Count(key string) (uint64, bool) {
	text, there := v.Get(key)
	n, err := strconv.ParseUint(text, 10, 64)
	return n, there && err == nil
}

// Map is the values that have a key, by it.
func (v NoteValues) Map() map[string]string {
	m := map[string]string{}
	for i := range v {
		if v[i].Key != "" {
			m[v[i].Key] = v[i].Value
		}
	}
	return m
}

// Sum adds the numbers of all values; false if one is none, or the sum has no room.
func (v NoteValues) Sum() (sum uint64, ok bool) {
	for i := range v {
		n, is := v.Count(v[i].Key)
		if sum += n; !is || sum < n {
			return 0, false
		}
	}
	return sum, true
}

// Format writes the note with its values: one uint64 or string for each field in a note of
// fields, NoteValues in a note of counts, strings in a note of texts. Optional fields may
// be left out.
func (n *Note) Format(values ...any) string {
	b := append([]byte(n.Code), ':')
	switch n.Shape {
	case NoteOfCounts:
		return string(appendCounts(b, values))
	case NoteOfTexts:
		for i, v := range values {
			if i > 0 {
				b = append(b, ';')
			}
			b = append(append(b, ' '), v.(string)...)
		}
		return string(b)
	}
	if len(values) != len(n.Fields) && (len(values) > len(n.Fields) || !n.Fields[len(values)].Optional) {
		panic(fmt.Sprintf("schemas: note %s has %d fields, not %d", n.Code, len(n.Fields), len(values)))
	}
	for i, v := range values {
		f := &n.Fields[i]
		b = append(b, ' ')
		if f.Key != "" {
			b = append(append(b, f.Key...), '=')
		}
		switch v := v.(type) {
		case uint64:
			b = strconv.AppendUint(b, v, 10)
		case string:
			if f.Form == ValueQuoted {
				b = AppendQuote(b, []byte(v))
			} else {
				b = append(b, v...)
			}
		}
	}
	if n.Tail != "" {
		b = append(append(b, ' '), n.Tail...)
	}
	return string(b)
}

func appendCounts(b []byte, values []any) []byte {
	words := make([]string, len(values))
	for i, v := range values {
		w := v.(NoteValue)
		words[i] = w.Key + "=" + w.Value
	}
	slices.Sort(words)
	for _, w := range words {
		b = append(append(b, ' '), w...)
	}
	return b
}

// Parse reads a note exactly as Format writes it, with values that there can be.
func (n *Note) Parse(note string) (NoteValues, error) {
	rest, ok := strings.CutPrefix(note, n.Code+":")
	if ok {
		rest, ok = n.cutTail(rest)
	}
	var v NoteValues
	if ok {
		switch n.Shape {
		case NoteOfCounts:
			v, ok = parseCounts(rest)
		case NoteOfTexts:
			v, ok = parseTexts(rest)
		default:
			v, rest, ok = n.parseFields(rest)
			ok = ok && rest == ""
		}
	}
	if !ok {
		return nil, fmt.Errorf("note %s is not of the form %q", n.Code, n.Template())
	}
	if n.Check != nil {
		if err := n.Check(v); err != nil {
			return nil, fmt.Errorf("note %s %w", n.Code, err)
		}
	}
	return v, nil
}

// cutTail takes the tail off, or one of an earlier release.
func (n *Note) cutTail(rest string) (string, bool) {
	if n.Tail == "" {
		return rest, true
	}
	for _, tail := range append([]string{n.Tail}, n.Former...) {
		if rest, ok := strings.CutSuffix(rest, " "+tail); ok {
			return rest, true
		}
	}
	return rest, false
}

func (n *Note) parseFields(rest string) (v NoteValues, left string, ok bool) {
	for i := range n.Fields {
		f := &n.Fields[i]
		if f.Optional && rest == "" && !n.Fields[i-1].Optional {
			return v, "", true
		}
		prefix := " "
		if f.Key != "" {
			prefix += f.Key + "="
		}
		text, ok := strings.CutPrefix(rest, prefix)
		if !ok {
			return nil, rest, false
		}
		value, size := f.Form.value(text)
		if size == 0 {
			return nil, rest, false
		}
		v, rest = append(v, NoteValue{f.Key, value}), text[size:]
	}
	return v, rest, true
}

// value returns the value at the beginning of a text, and its length in the text.
func (f NoteForm) value(text string) (value string, size int) {
	switch f {
	case ValueText:
		return text, len(text)
	case ValueQuoted:
		return quoted(text)
	}
	word, _, _ := strings.Cut(text, " ")
	ok := word != ""
	switch f {
	case ValueCount:
		n, err := strconv.ParseUint(word, 10, 64)
		ok = err == nil && strconv.FormatUint(n, 10) == word
	case ValueDigest:
		ok = ValidDigest(word)
	case ValueHex:
		ok = ValidDigest("sha256:" + word)
	}
	if !ok {
		return "", 0
	}
	return word, len(word)
}

// quoted returns the JSON string in canonical form at the beginning of a text.
func quoted(text string) (value string, size int) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			raw := text[:i+1]
			if Unmarshal([]byte(raw), &value) != nil || string(AppendQuote(nil, []byte(value))) != raw {
				return "", 0
			}
			return value, len(raw)
		}
	}
	return "", 0
}

func parseCounts(rest string) (v NoteValues, ok bool) {
	last, lastName := "", ""
	for rest != "" {
		word, found := strings.CutPrefix(rest, " ")
		word, _, _ = strings.Cut(word, " ")
		name, value, is := strings.Cut(word, "=")
		// Words are sorted, so those of one name are neighbours.
		if !found || !is || name == "" || value == "" || word <= last || name == lastName {
			return nil, false
		}
		v, last, lastName, rest = append(v, NoteValue{name, value}), word, name, rest[1+len(word):]
	}
	return v, len(v) > 0
}

func parseTexts(rest string) (v NoteValues, ok bool) {
	rest, ok = strings.CutPrefix(rest, " ")
	for text := range strings.SplitSeq(rest, "; ") {
		ok = ok && text != ""
		v = append(v, NoteValue{Value: text})
	}
	return v, ok
}

// Template is the form of the note, as the specification prints it.
func (n *Note) Template() string {
	b := n.Code + ":"
	switch n.Shape {
	case NoteOfCounts:
		return b + " NAME=VALUE …"
	case NoteOfTexts:
		return b + " TEXT; TEXT …"
	}
	end := ""
	for _, f := range n.Fields {
		if f.Optional && end == "" {
			b, end = b+"[", "]"
		}
		b += " "
		if f.Key != "" {
			b += f.Key + "="
		}
		b += [...]string{"N", "WORD", "sha256:HEX", "HEX", `"TEXT"`, "TEXT"}[f.Form]
	}
	if b += end; n.Tail != "" {
		b += " " + n.Tail
	}
	return b
}

// CutNote splits any note into its code and the text after the colon. Notes of other
// implementations may have neither.
func CutNote(note string) (code, text string, ok bool) { return strings.Cut(note, ":") }

// NoteWords are the KEY=VALUE words of the text of any note. If a key is repeated, the
// first one counts, because later words may be names.
func NoteWords(text string) map[string]string {
	out := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if k, val, ok := strings.Cut(word, "="); ok && out[k] == "" {
			out[k] = val
		}
	}
	return out
}

// LookupNote returns the note of a code: one of the table, or of a further layer.
func LookupNote(code string) (*Note, bool) {
	for _, n := range Notes {
		if n.Code == code {
			return n, true
		}
	}
	for i := range Layers {
		if n := Layers[i].Note; n != nil && n.Code == code {
			return n, true
		}
	}
	return nil, false
}

// NoteRank is the place of a code's notes in observation-health.json: those of the table in
// its order, then all others.
func NoteRank(code string) int {
	i := slices.IndexFunc(Notes[:], func(n *Note) bool { return n.Code == code })
	if i < 0 {
		return len(Notes)
	}
	return i
}

// Package strict reads YAML and JSON files that people write, and reports everything that is wrong with
// one, with its place, what was expected and what to type. Whatever can be read in more than one way is
// refused: unknown keys, keys that are there twice, aliases, tags, characters that read differently from
// how they are shown.
package strict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of a file.
const (
	MaxFile    = 1 << 20 // bytes
	maxNesting = 64      // levels: the deepest useful value is a JSON value in a condition
)

// Reader reads a file and collects what is wrong with it.
type Reader struct {
	File  string // its name in problems
	What  string // what it is: a policy
	First string // its first line, to type into an empty one
	list  []Problem
	Meant map[string]string // keys that are often typed for others
}

// Bad notes a problem at a node.
func (r *Reader) Bad(n *yaml.Node, what, expected, typed string) {
	r.BadAt(n.Line, n.Column, what, expected, typed)
}

// BadAt notes a problem at a line and a column.
func (r *Reader) BadAt(line, column int, what, expected, typed string) {
	if len(r.list) <= MaxProblems {
		r.list = append(r.list, Problem{r.File, max(line, 1), max(column, 1), what, expected, typed})
	}
}

// Document returns the file's one document, or nil.
func (r *Reader) Document(b []byte) *yaml.Node {
	if len(b) > MaxFile {
		r.BadAt(1, 1, "the file is larger than 1 MiB", r.What+" of at most 1 MiB", "")
		return nil
	}
	if i, what := badByte(b); i >= 0 {
		line, column := place(b, i)
		r.BadAt(line, column, what, "UTF-8 that reads as it is shown", "")
		return nil
	}
	text, ok := r.plainJSON(b)
	if !ok {
		return nil
	}
	doc, err := parseYAML(text)
	if err != nil {
		line, what := r.yamlError(err)
		if !errors.Is(err, errSecond) {
			line = faultLine(text, line, strings.Contains(what, "expected ':'"))
		}
		r.BadAt(line, 1, what, "YAML or JSON", "")
		return nil
	}
	if doc.Kind == 0 || len(doc.Content) != 1 {
		r.BadAt(1, 1, "the file is empty", r.What, r.First)
		return nil
	}
	r.plain(doc.Content[0], 0)
	return doc.Content[0]
}

var errSecond = errors.New("a second document")

// parseYAML reads one document. The parser reports a bad file as an
// error or a panic; both are errors here.
func parseYAML(b []byte) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	doc = new(yaml.Node)
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(doc); err != nil && err != io.EOF {
		return nil, err
	} else if err == io.EOF {
		return doc, nil
	}
	var second yaml.Node
	if err := d.Decode(&second); err == nil {
		return nil, fmt.Errorf("line %d: %w", second.Line, errSecond)
	} else if err != io.EOF {
		return nil, err
	}
	return doc, nil
}

// faultLine is the line with the fault of a text that is not YAML: the one after the
// longest part of the text that is. The parser itself names the line where the construct
// began, or none; certain says that it names the right one.
func faultLine(b []byte, named int, certain bool) int {
	const work = 32 << 20 // bytes that are parsed for it
	lines := bytes.SplitAfter(b, []byte("\n"))
	if certain || len(lines)*len(b) > work {
		return named
	}
	for n, end := len(lines), len(b); n > 0; n-- {
		if end -= len(lines[n-1]); len(lines[n-1]) == 0 {
			continue
		}
		if _, err := parseYAML(b[:end]); err == nil || errors.Is(err, errSecond) {
			return n
		}
	}
	return named
}

var lineOf = pattern.New(`^line ([0-9]{1,9}): `)

// yamlError splits the parser's message into its line and its text.
func (r *Reader) yamlError(err error) (int, string) {
	s := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := lineOf.FindStringSubmatch(s); m != nil {
		line, _ = strconv.Atoi(m[1])
		s = s[len(m[0]):]
	}
	if errors.Is(err, errSecond) {
		return line, "a second document begins here: " + r.What + " is one document"
	}
	if strings.Contains(s, "expected alphabetic or numeric") {
		s += ` (quote what begins with * or &: "*")`
	}
	if strings.Contains(s, "cannot start any token") {
		s += " (lines are indented with blanks, not tabs; quote what begins with a tab, @, % or `)"
	}
	return line, "not readable: " + s
}

// badByte is the place of the first character that a file must not contain, or -1, and
// its description. Some characters break a line, or change its direction, only in some
// editors. People would then see another policy than the one that is read. In quotes such
// a character can be written as an escape like \u2028.
func badByte(b []byte) (int, string) {
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		switch {
		case c == utf8.RuneError && n == 1 || c == 0:
			return i, fmt.Sprintf("byte 0x%02x is not text", b[i])
		case c == '\uFEFF' && i == 0:
			return i, "a byte order mark"
		case c == '\u0085' || c == '\u2028' || c == '\u2029' || c == '\r' && (i+1 == len(b) || b[i+1] != '\n'):
			return i, fmt.Sprintf("the character %U breaks the line", c)
		case '\u202A' <= c && c <= '\u202E' || '\u2066' <= c && c <= '\u2069':
			return i, fmt.Sprintf("the character %U turns the text round", c)
		}
		i += n
	}
	return -1, ""
}

// place is the line and column of a byte.
func place(b []byte, i int) (line, column int) {
	before := b[:i]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// plainJSON rewrites JSON so that the YAML parser can read it: YAML has no tabs between
// values, no escaped slash and no surrogate pairs. A file named .json must be JSON.
func (r *Reader) plainJSON(b []byte) ([]byte, bool) {
	if !json.Valid(b) {
		if !strings.HasSuffix(r.File, ".json") {
			return b, true
		}
		var v any
		err := json.Unmarshal(b, &v)
		line, column := place(b, len(b))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset > 0 {
			line, column = place(b, min(int(syntax.Offset)-1, len(b)))
		}
		r.BadAt(line, column, "not readable: "+err.Error(), "JSON, as the name of the file says", "")
		return nil, false
	}
	out := make([]byte, 0, len(b))
	for i, quoted := 0, false; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
			out = append(out, c)
		case c == '\t' && !quoted:
			out = append(out, ' ')
		case c == '\\' && quoted:
			if n, char := halves(b[i:]); n > 0 {
				out = utf8.AppendRune(out, char)
				i += n - 1
				continue
			}
			if i++; b[i] != '/' {
				out = append(out, c)
			}
			out = append(out, b[i])
		default:
			out = append(out, c)
		}
	}
	return out, true
}

// halves reads a character that JSON writes as a surrogate pair.
func halves(b []byte) (int, rune) {
	if len(b) < 12 || b[1] != 'u' || b[6] != '\\' || b[7] != 'u' {
		return 0, 0
	}
	high, err1 := strconv.ParseUint(string(b[2:6]), 16, 32)
	low, err2 := strconv.ParseUint(string(b[8:12]), 16, 32)
	if err1 != nil || err2 != nil || high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff {
		return 0, 0
	}
	return 12, rune(0x10000 + (high-0xd800)<<10 + (low - 0xdc00))
}

// plain reports YAML features with which a file does not mean what it seems to mean.
func (r *Reader) plain(n *yaml.Node, depth int) {
	if depth > maxNesting {
		r.Bad(n, "nested too deeply", fmt.Sprintf("at most %d levels", maxNesting), "")
		return
	}
	if n.Kind == yaml.AliasNode {
		r.Bad(n, "alias *"+n.Value, "the value itself: aliases are not read", "")
		return
	}
	if n.Anchor != "" {
		r.Bad(n, "anchor &"+n.Anchor, "only the value: anchors are not read", "")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.Bad(n, "tag "+n.Tag, "only the value: tags are not read", "")
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				continue // reported below or where the key is read
			}
			if k.ShortTag() == "!!merge" {
				r.Bad(k, "merge key <<", "the keys themselves: merging is not read", "")
				continue
			}
			if first := seen[k.Value]; first != nil {
				r.Bad(k, fmt.Sprintf("key %s is here twice, first in line %d", Quote(k.Value), first.Line), "each key once", "")
				continue
			}
			seen[k.Value] = k
		}
	}
	for _, c := range n.Content {
		r.plain(c, depth+1)
	}
}

// Field is one key of an object, with its value.
type Field struct{ Key, Value *yaml.Node }

// Object reads a mapping. Unknown keys are reported, with the key that was probably meant.
func (r *Reader) Object(n *yaml.Node, what string, known ...string) map[string]Field {
	if n.Kind == yaml.AliasNode {
		return nil // already reported
	}
	if n.Kind != yaml.MappingNode {
		r.Bad(n, what+" is "+Kind(n), "an object with the keys "+strings.Join(known, ", "), "")
		return nil
	}
	out := map[string]Field{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			if k.ShortTag() != "!!merge" && k.Kind != yaml.AliasNode {
				r.Bad(k, "a key is "+Kind(k), "one of "+strings.Join(known, ", "), "")
			}
		case !slices.Contains(known, k.Value):
			typed := ""
			if len(r.list) <= MaxProblems {
				typed = cmp.Or(r.Meant[k.Value], nearest.Word(k.Value, known))
			}
			if !slices.Contains(known, typed) {
				typed = ""
			}
			if typed != "" {
				typed += ":"
			}
			r.Bad(k, "unknown key "+Quote(k.Value)+" in "+what, "one of "+strings.Join(known, ", "), typed)
		default:
			if _, twice := out[k.Value]; !twice {
				out[k.Value] = Field{k, v}
			}
		}
	}
	return out
}

// Text reads a string.
func (r *Reader) Text(n *yaml.Node, what string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	if n.Kind != yaml.AliasNode { // already reported
		typed := ""
		if n.Kind == yaml.ScalarNode && n.Value != "" {
			typed = strconv.Quote(n.Value)
		}
		r.Bad(n, what+" is "+Kind(n), "a string", typed)
	}
	return "", false
}

// Word reads one of a few words.
func (r *Reader) Word(n *yaml.Node, what string, words ...string) (string, bool) {
	s, ok := r.Text(n, what)
	if ok && !slices.Contains(words, s) {
		r.Bad(n, what+" is "+Quote(s), "one of "+strings.Join(words, ", "), nearest.Word(s, words))
		return "", false
	}
	return s, ok
}

// Items are the elements of a non-empty list; a single value is a list of one element.
func (r *Reader) Items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	if len(n.Content) == 0 {
		r.Bad(n, what+" is empty", "at least one", "")
	}
	return n.Content
}

// Kind names what a node is, for people.
func Kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!str":
		return "the string " + Quote(n.Value)
	case "!!null":
		if n.Value != "" {
			return "the null " + Quote(n.Value)
		}
		return "empty"
	case "!!bool":
		return "the boolean " + Quote(n.Value)
	case "!!timestamp":
		return "the date " + Quote(n.Value)
	}
	return "the number " + Quote(n.Value)
}

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
)

// maxNesting is how deep a policy file may nest; the deepest useful value
// is a JSON value in a condition.
const maxNesting = 64

// reader reads a policy file and collects what is wrong with it.
type reader struct {
	file  string
	list  []Problem
	full  map[string]bool       // what there is too much of, and was reported
	names nameSet               // names of arguments that the rules read
	lines map[string]*yaml.Node // where each is read first, by its folded form
}

// bad notes a problem at a node.
func (r *reader) bad(n *yaml.Node, what, expected, typed string) {
	r.badAt(n.Line, n.Column, what, expected, typed)
}

func (r *reader) badAt(line, column int, what, expected, typed string) {
	if len(r.list) <= maxProblems {
		r.list = append(r.list, Problem{r.file, max(line, 1), max(column, 1), what, expected, typed})
	}
}

// document returns the file's one document, or nil.
func (r *reader) document(b []byte) *yaml.Node {
	if len(b) > maxFile {
		r.badAt(1, 1, "the file is larger than 1 MiB", "a policy of at most 1 MiB", "")
		return nil
	}
	if i, what := badByte(b); i >= 0 {
		line, column := place(b, i)
		r.badAt(line, column, what, "UTF-8 that reads as it is shown", "")
		return nil
	}
	text, ok := r.plainJSON(b)
	if !ok {
		return nil
	}
	doc, err := parseYAML(text)
	if err != nil {
		line, what := yamlError(err)
		r.badAt(line, 1, what, "YAML or JSON", "")
		return nil
	}
	if doc.Kind == 0 || len(doc.Content) != 1 {
		r.badAt(1, 1, "the file is empty", "a policy", "schema: runner.policy.v0")
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

var lineOf = regexp.MustCompile(`^line ([0-9]{1,9}): `)

// yamlError splits the parser's message into its line and its text.
func yamlError(err error) (int, string) {
	s := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := lineOf.FindStringSubmatch(s); m != nil {
		line, _ = strconv.Atoi(m[1])
		s = s[len(m[0]):]
	}
	if errors.Is(err, errSecond) {
		return line, "a second document begins here: a policy is one document"
	}
	if strings.Contains(s, "expected alphabetic or numeric") {
		s += ` (quote what begins with * or &: "*")`
	}
	if strings.Contains(s, "cannot start any token") {
		s += " (lines are indented with blanks, not tabs; quote what begins with a tab, @, % or `)"
	}
	return line, "not readable: " + s
}

// badByte is the place of the first character that a policy must not contain, or -1, and
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
func (r *reader) plainJSON(b []byte) ([]byte, bool) {
	if !json.Valid(b) {
		if !strings.HasSuffix(r.file, ".json") {
			return b, true
		}
		var v any
		err := json.Unmarshal(b, &v)
		line, column := place(b, len(b))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset > 0 {
			line, column = place(b, min(int(syntax.Offset)-1, len(b)))
		}
		r.badAt(line, column, "not readable: "+err.Error(), "JSON, as the name of the file says", "")
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
func (r *reader) plain(n *yaml.Node, depth int) {
	if depth > maxNesting {
		r.bad(n, "nested too deeply", fmt.Sprintf("at most %d levels", maxNesting), "")
		return
	}
	if n.Kind == yaml.AliasNode {
		r.bad(n, "alias *"+n.Value, "the value itself: aliases are not read", "")
		return
	}
	if n.Anchor != "" {
		r.bad(n, "anchor &"+n.Anchor, "only the value: anchors are not read", "")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.bad(n, "tag "+n.Tag, "only the value: tags are not read", "")
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				continue // reported below or where the key is read
			}
			if k.ShortTag() == "!!merge" {
				r.bad(k, "merge key <<", "the keys themselves: merging is not read", "")
				continue
			}
			if first := seen[k.Value]; first != nil {
				r.bad(k, fmt.Sprintf("key %s is here twice, first in line %d", quote(k.Value), first.Line), "each key once", "")
				continue
			}
			seen[k.Value] = k
		}
	}
	for _, c := range n.Content {
		r.plain(c, depth+1)
	}
}

// field is one key of an object, with its value.
type field struct{ key, value *yaml.Node }

// object reads a mapping. Unknown keys are reported, with the key that was probably meant.
func (r *reader) object(n *yaml.Node, what string, known ...string) map[string]field {
	if n.Kind == yaml.AliasNode {
		return nil // already reported
	}
	if n.Kind != yaml.MappingNode {
		r.bad(n, what+" is "+kind(n), "an object with the keys "+strings.Join(known, ", "), "")
		return nil
	}
	out := map[string]field{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			if k.ShortTag() != "!!merge" && k.Kind != yaml.AliasNode {
				r.bad(k, "a key is "+kind(k), "one of "+strings.Join(known, ", "), "")
			}
		case !contains(known, k.Value):
			typed := ""
			if len(r.list) <= maxProblems {
				typed = nearest.Word(k.Value, known)
			}
			if typed != "" {
				typed += ":"
			}
			r.bad(k, "unknown key "+quote(k.Value)+" in "+what, "one of "+strings.Join(known, ", "), typed)
		default:
			if _, twice := out[k.Value]; !twice {
				out[k.Value] = field{k, v}
			}
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// text reads a string.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	if n.Kind != yaml.AliasNode { // already reported
		typed := ""
		if n.Kind == yaml.ScalarNode && n.Value != "" {
			typed = strconv.Quote(n.Value)
		}
		r.bad(n, what+" is "+kind(n), "a string", typed)
	}
	return "", false
}

// word reads one of a few words.
func (r *reader) word(n *yaml.Node, what string, words ...string) (string, bool) {
	s, ok := r.text(n, what)
	if ok && !contains(words, s) {
		r.bad(n, what+" is "+quote(s), "one of "+strings.Join(words, ", "), nearest.Word(s, words))
		return "", false
	}
	return s, ok
}

// items are the elements of a non-empty list; a single value is a list of one element.
func (r *reader) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	if len(n.Content) == 0 {
		r.bad(n, what+" is empty", "at least one", "")
	}
	return n.Content
}

// kind names what a node is, for people.
func kind(n *yaml.Node) string {
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
		return "the string " + quote(n.Value)
	case "!!null":
		if n.Value != "" {
			return "the null " + quote(n.Value)
		}
		return "empty"
	case "!!bool":
		return "the boolean " + quote(n.Value)
	case "!!timestamp":
		return "the date " + quote(n.Value)
	}
	return "the number " + quote(n.Value)
}

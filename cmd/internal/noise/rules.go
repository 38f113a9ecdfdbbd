package noise

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

type form uint8

const (
	formExact form = iota
	formPrefix
	formContains
	formLibrary
	formProcess
)

var forms = map[string]form{
	"exact": formExact, "prefix": formPrefix, "contains": formContains,
	"library": formLibrary, "process": formProcess,
}

// rule is one line of the noise table.
type rule struct {
	id, reason string
	drop       bool
	form       form
	parts      [][]byte // one, except for contains, library and process
	needles    []needle // the parts of contains and library
}

// parseRules reads a table in the form that noise.txt explains.
func parseRules(text string) ([]rule, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("not valid UTF-8")
	}
	var rules []rule
	no := 0
	for line := range strings.Lines(text) {
		no++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", no, err)
		}
		for _, o := range rules {
			if o.id == r.id && (o.reason != r.reason || o.drop != r.drop) {
				return nil, fmt.Errorf("line %d: rule %s has another verdict or reason above", no, r.id)
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(line string) (r rule, err error) {
	var col [5]string
	for i := range col {
		var ok bool
		if col[i], line, ok = cutField(line); !ok {
			return r, fmt.Errorf("expected verdict, id, operations, form, pattern and reason")
		}
	}
	r.id, r.reason = col[1], line
	switch col[0] {
	case "keep":
	case "drop":
		r.drop = true
	default:
		return r, fmt.Errorf("verdict %q, expected keep or drop", col[0])
	}
	if strings.Trim(r.id, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || !strings.Contains(r.id, ".") {
		return r, fmt.Errorf("id %q, expected lower-case words joined by a dot", r.id)
	}
	if col[2] != "open" {
		return r, fmt.Errorf("operations %q, expected open", col[2])
	}
	f, ok := forms[col[3]]
	if !ok {
		return r, fmt.Errorf("form %q, expected exact, prefix, contains, library or process", col[3])
	}
	r.form = f
	return r, r.setPattern(col[4])
}

// cutField cuts the first of several columns off a line.
func cutField(line string) (field, rest string, ok bool) {
	i := strings.IndexAny(line, " \t")
	if i <= 0 {
		return "", "", false
	}
	rest = strings.TrimLeft(line[i:], " \t")
	return line[:i], rest, rest != ""
}

func (r *rule) setPattern(p string) error {
	// A backslash would have to be written in the text form, which is easy to get
	// wrong, and no rule needs one.
	if strings.Contains(p, `\`) {
		return fmt.Errorf("pattern %q holds a backslash", p)
	}
	sep := ""
	switch r.form {
	case formContains, formLibrary:
		sep = "&"
	case formProcess:
		sep = ","
	}
	for _, part := range splitParts(p, sep) {
		if !r.partOK(part) {
			return fmt.Errorf("pattern %q: %q is not what this form takes", p, part)
		}
		r.parts = append(r.parts, []byte(part))
		r.needles = append(r.needles, newNeedle(part))
	}
	return nil
}

func splitParts(p, sep string) []string {
	if sep == "" {
		return []string{p}
	}
	return strings.Split(p, sep)
}

// partOK wants /a/path, /a/prefix/, /a/part/ or a name, as the form has it.
func (r *rule) partOK(part string) bool {
	if part == "" {
		return false
	}
	first, last := part[0] == '/', part[len(part)-1] == '/'
	switch r.form {
	case formExact:
		return first && !last && len(part) > 1
	case formProcess:
		return part != "task" && !strings.Contains(part, "/")
	}
	return first && last && len(part) > 2
}

// matches reports whether the rule applies to this path, opened by process pid. Of the form library, the path is one.
func (r *rule) matches(path []byte, pid uint32) bool {
	switch r.form {
	case formExact:
		return bytes.Equal(path, r.parts[0])
	case formPrefix:
		return bytes.HasPrefix(path, r.parts[0])
	case formContains, formLibrary:
		return r.contains(path)
	}
	return r.otherProcess(path, pid)
}

func (r *rule) contains(path []byte) bool {
	for i := range r.needles {
		if !r.needles[i].in(path) {
			return false
		}
	}
	return true
}

func (r *rule) otherProcess(path []byte, pid uint32) bool {
	rest, ok := bytes.CutPrefix(path, procDir)
	if !ok {
		return false
	}
	n, rest, ok := cutNumber(rest)
	if !ok || n == uint64(pid) {
		return false
	}
	if task, ok := bytes.CutPrefix(rest, taskDir); ok {
		if _, rest, ok = cutNumber(task); !ok {
			return false
		}
	}
	name, _, _ := bytes.Cut(rest, slash)
	for _, part := range r.parts {
		if bytes.Equal(name, part) {
			return true
		}
	}
	return false
}

var (
	procDir = []byte("/proc/")
	taskDir = []byte("task/")
	slash   = []byte{'/'}
)

// cutNumber cuts `NUMBER/` off a path.
func cutNumber(path []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range path {
		if c == '/' {
			return n, path[i+1:], i > 0
		}
		if c < '0' || c > '9' || i > 18 {
			return 0, nil, false
		}
		n = n*10 + uint64(c-'0')
	}
	return 0, nil, false
}

// isLibrary reports whether a path names a shared object.
func isLibrary(path []byte) bool {
	return bytes.HasSuffix(path, soEnd) || soMiddle.in(path)
}

var (
	soEnd    = []byte(".so")
	soMiddle = newNeedle(".so.")
)

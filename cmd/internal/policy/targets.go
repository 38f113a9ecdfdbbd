package policy

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// targetSet collects the paths and endpoints in a call that a kernel line can show.
type targetSet struct {
	list  []string
	bytes int
	seen  map[string]bool // paths as they were written
	cut   bool
}

func (t *targetSet) add(s string) {
	if slices.Contains(t.list, s) {
		return
	}
	if len(t.list) == schemas.MaxTargets || t.bytes+len(s) > schemas.MaxTargetBytes {
		t.cut = true
		return
	}
	t.list, t.bytes = append(t.list, s), t.bytes+len(s)
}

// targets gives a decision its targets. What the file redacts is left out, and only that it
// named something is told.
func (e *evaluation) targets(d *Decision, r *rule) {
	shown, out := e.policy.Redact(e.call.Arguments)
	t, checked := e.collect(r, shown, !d.Allow)
	if out != nil {
		all, _ := e.collect(r, e.call.Arguments, !d.Allow)
		t.cut = t.cut || len(all.list) > len(t.list)
	}
	slices.Sort(checked)
	d.Checked = checked
	d.Targets, d.TargetsCut = t.sorted()
}

// collect finds the targets in arguments: first the values that the conditions of the rule
// that decided read, and what it expects, which are those that were checked; then the
// values that other rules' conditions read, then all other strings, so that many other
// strings do not displace the first; of a call that is denied, then what parts of the strings name.
func (e *evaluation) collect(r *rule, arguments any, denied bool) (t targetSet, checked []string) {
	if r != nil {
		e.read(&t, r, arguments)
		for _, s := range r.expects {
			if strings.HasPrefix(s, "/") {
				e.path(&t, s)
			} else {
				t.add(s)
			}
		}
	}
	checked = slices.Clone(t.list)
	for i := range e.policy.rules {
		if x := &e.policy.rules[i]; x != r && x.speaksOf(e.call.Tool) {
			e.read(&t, x, arguments)
		}
	}
	e.strings(&t, arguments, maxDepth)
	if denied {
		left := maxTokens
		eachString(arguments, maxDepth, func(s string) { e.tokens(&t, s, &left) })
	}
	return t, checked
}

// Names are the targets of texts, found without looking at any file: what each names as a whole, and what parts of
// it name. Relative paths start at dir, if that is not empty.
func Names(texts []string, dir string) (targets []string, cut bool) {
	e, t, left := &evaluation{policy: &Policy{}, call: Call{Dir: dir}, blind: true}, targetSet{}, maxTokens
	for _, s := range texts {
		e.target(&t, s, false)
	}
	for _, s := range texts {
		e.tokens(&t, s, &left)
	}
	return t.sorted()
}

func (t *targetSet) sorted() ([]string, bool) {
	slices.Sort(t.list)
	return append([]string{}, t.list...), t.cut
}

// read adds the values that a rule's conditions read in arguments.
func (e *evaluation) read(t *targetSet, r *rule, arguments any) {
	for _, c := range r.args {
		_ = c.at.Each(arguments, func(v any, _ bool) error {
			if s, ok := v.(string); ok && !t.cut {
				e.target(t, s, c.under != nil)
			}
			return nil
		})
	}
}

func (e *evaluation) strings(t *targetSet, v any, left int) {
	if t.cut || left < 0 || e.ended.Load() == givenUp {
		t.cut = true
		return
	}
	switch x := v.(type) {
	case string:
		e.target(t, x, false)
	case []any:
		for _, y := range x {
			e.strings(t, y, left-1)
		}
	case map[string]any:
		for _, k := range sortedKeys(x) {
			e.strings(t, x[k], left-1)
		}
	}
}

// target adds what one string names. A relative path is one only where a rule reads it as one.
func (e *evaluation) target(t *targetSet, s string, isPath bool) {
	if rest, ok := cutFold(s, "file://"); ok && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "localhost/")) {
		if u, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost")); err == nil {
			s = u
		}
	}
	if strings.HasPrefix(s, "/") || isPath {
		// A single slash is usually a separator, and everything is below it.
		if isFile(s) && (isPath || path.Clean(s) != "/") {
			e.path(t, s)
		}
	}
	if strings.HasPrefix(s, "/") {
		return
	}
	// A call with a path that no rule can read is denied. The target shows effects that
	// happen anyway.
	if x := trimmed(s); x != s && strings.HasPrefix(x, "/") {
		if isFile(x) {
			e.path(t, x)
		}
		return
	}
	if socket, ok := cutFold(s, "unix:"); ok && strings.HasPrefix(socket, "/") && isFile(socket) {
		t.add(schemas.Text("unix:" + path.Clean(socket)))
		return
	}
	if strings.IndexByte(s, ':') > 0 {
		if d, err := parseDest(s); err == nil {
			if p, ok := d.endpoint(); ok {
				t.add(schemas.Text(p))
			}
		}
	}
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// isFile reports whether a string can name a file at all.
func isFile(s string) bool {
	if s == "" || len(s) >= maxPath || strings.IndexByte(s, 0) >= 0 {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if len(part) > maxName {
			return false
		}
	}
	return true
}

func (e *evaluation) path(t *targetSet, s string) {
	if t.seen[s] {
		return
	}
	if len(t.seen) == maxLookups {
		t.cut = true
		return
	}
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	t.seen[s] = true
	if x, ok := e.known[s]; ok && x.err == nil {
		for _, place := range x.places {
			t.add(schemas.Text(place))
		}
		return
	}
	whole, err := join(e.call.Dir, s)
	if err != nil {
		return
	}
	cleaned := path.Clean(whole)
	t.add(schemas.Text(cleaned))
	if e.blind {
		return
	}
	for _, p := range []string{cleaned, whole} {
		if place, err := resolve(p); err == nil {
			t.add(schemas.Text(place))
		}
		if whole == cleaned {
			break
		}
	}
}

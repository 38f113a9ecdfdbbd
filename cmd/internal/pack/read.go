package pack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of a pack.
const (
	maxRules    = 200
	maxMappings = 16       // of one rule
	maxText     = 500      // characters of a message or a fix
	maxProgram  = 16 << 10 // bytes
)

// RuleSignals is the id of the rule that every pack has: the signals that it requires are there.
const RuleSignals = "requires-signals"

// reader reads a pack and collects what is wrong with it.
type reader struct {
	strict.Reader
	frameworks map[string]bool
	ids        map[string]int
}

func (r *reader) pack(b []byte) *Pack {
	doc := r.Document(b)
	if doc == nil {
		return nil
	}
	o := r.Object(doc, "the pack", "schema", "name", "version", "kind", "description", "frameworks", "x-assay", "rules")
	if o == nil {
		return nil
	}
	p := &Pack{}
	if s := r.needed(doc, o, "schema", "schema: "+schemas.SchemaPack); s != nil {
		r.Word(s, "schema", schemas.SchemaPack)
	}
	p.Name = r.formed(doc, o, "name", "name: my-pack", schemas.PackName, "1 to 64 of a-z 0-9 -")
	p.Version = r.formed(doc, o, "version", "version: 1.0.0", schemas.PackVersion, "MAJOR.MINOR.PATCH")
	if n := r.needed(doc, o, "kind", "kind: quality"); n != nil {
		p.Kind, _ = r.Word(n, "kind", schemas.PackKinds[:]...)
	}
	if f, there := o["description"]; there {
		p.Description = r.sentence(f.Value, "description")
	}
	r.frameworks, r.ids = map[string]bool{}, map[string]int{}
	if f, there := o["frameworks"]; there {
		p.Frameworks = r.frameworkList(f.Value)
	}
	if f, there := o["x-assay"]; there {
		x := r.Object(f.Value, "x-assay", "requires_signals")
		if s, there := x["requires_signals"]; there {
			p.Requires = r.signals(s.Value, "requires_signals")
		}
	}
	if n := r.needed(doc, o, "rules", "rules:"); n != nil {
		p.Rules = r.rules(n)
	}
	return p
}

// needed is the value of a key that must be there, or nil.
func (r *reader) needed(n *yaml.Node, o map[string]strict.Field, key, typed string) *yaml.Node {
	f, there := o[key]
	if !there {
		r.Bad(n, "the key "+key+" is missing", "", typed)
		return nil
	}
	return f.Value
}

func (r *reader) formed(n *yaml.Node, o map[string]strict.Field, key, typed string, form *pattern.Pattern, expected string) string {
	v := r.needed(n, o, key, typed)
	if v == nil {
		return ""
	}
	s, ok := r.Text(v, key)
	if ok && !form.MatchString(s) {
		r.Bad(v, key+" is "+strict.Quote(s), expected, "")
	}
	return s
}

// sentence is a text for people, on one line.
func (r *reader) sentence(n *yaml.Node, what string) string {
	s, ok := r.Text(n, what)
	if !ok {
		return ""
	}
	s = strings.TrimSpace(s)
	unprintable := strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
	if s == "" || len([]rune(s)) > maxText || unprintable {
		r.Bad(n, what+" is empty, too long or not one line", fmt.Sprintf("1 to %d characters", maxText), "")
	}
	return s
}

func (r *reader) list(n *yaml.Node, what string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.Bad(n, what+" is "+strict.Kind(n), "a list", "")
		return nil
	}
	if len(n.Content) == 0 || len(n.Content) > most {
		r.Bad(n, fmt.Sprintf("%s has %d entries", what, len(n.Content)), fmt.Sprintf("1 to %d", most), "")
	}
	return n.Content[:min(len(n.Content), most)]
}

func (r *reader) frameworkList(n *yaml.Node) (list []Framework) {
	for _, item := range r.list(n, "frameworks", 32) {
		o := r.Object(item, "a framework", "id", "title", "url")
		if o == nil {
			continue
		}
		f := Framework{ID: r.formed(item, o, "id", "id: MY-FRAMEWORK", schemas.PackWord, "1 to 64 of A-Z a-z 0-9 _ . -")}
		if n := r.needed(item, o, "title", "title:"); n != nil {
			f.Title = r.sentence(n, "title")
		}
		if u, there := o["url"]; there {
			f.URL = r.sentence(u.Value, "url")
		}
		if r.frameworks[f.ID] {
			r.Bad(item, "the framework "+strict.Quote(f.ID)+" is here twice", "each once", "")
		}
		r.frameworks[f.ID] = true
		list = append(list, f)
	}
	return list
}

func (r *reader) signals(n *yaml.Node, what string) (list []string) {
	for _, item := range r.list(n, what, len(schemas.Signals)) {
		s, ok := r.Text(item, "a signal")
		switch _, known := schemas.SignalOf(s); {
		case !ok:
		case !known:
			r.Bad(item, "unknown signal "+strict.Quote(s), "a signal of the registry: runner-lint --signals lists them", nearest.Word(s, schemas.SignalNames()))
		case slices.Contains(list, s):
			r.Bad(item, "the signal "+s+" is here twice", "each once", "")
		default:
			list = append(list, s)
		}
	}
	return list
}

func (r *reader) rules(n *yaml.Node) (list []Rule) {
	for _, item := range r.list(n, "rules", maxRules) {
		o := r.Object(item, "a rule", "id", "severity", "needs", "assert", "none", "message", "fix", "mappings")
		if o == nil {
			continue
		}
		list = append(list, r.rule(item, o))
	}
	return list
}

func (r *reader) rule(item *yaml.Node, o map[string]strict.Field) (x Rule) {
	x.ID = r.formed(item, o, "id", "id: my-rule", schemas.PackName, "1 to 64 of a-z 0-9 -")
	switch line, twice := r.ids[x.ID]; {
	case twice:
		r.Bad(item, fmt.Sprintf("id %s is that of the rule in line %d", strict.Quote(x.ID), line), "an id of its own", "")
	case x.ID == RuleSignals:
		r.Bad(item, "id "+RuleSignals+" is that of the rule that every pack has", "an id of its own", "")
	}
	r.ids[x.ID] = item.Line
	if n := r.needed(item, o, "severity", "severity: error"); n != nil {
		name, _ := r.Word(n, "severity", schemas.Severities[:]...)
		x.Severity, _ = ParseSeverity(name)
	}
	if n := r.needed(item, o, "message", "message:"); n != nil {
		x.Message = r.sentence(n, "message")
	}
	if n := r.needed(item, o, "fix", "fix:"); n != nil {
		x.Fix = r.sentence(n, "fix")
	}
	if f, there := o["needs"]; there {
		x.Needs = r.signals(f.Value, "needs")
	}
	if f, there := o["mappings"]; there {
		x.Mappings = r.mappings(f.Value)
	}
	yes, hasAssert := o["assert"]
	none, hasNone := o["none"]
	switch {
	case hasAssert == hasNone:
		r.Bad(item, "a rule has one program", "assert (it must give true) or none (it must give nothing)", "assert: .health.kernel_layer == \"complete\"")
	case hasAssert:
		x.Assert = r.program(yes.Value, "assert")
	default:
		x.Assert, x.None = r.program(none.Value, "none"), true
	}
	return x
}

func (r *reader) mappings(n *yaml.Node) (list []Mapping) {
	for _, item := range r.list(n, "mappings", maxMappings) {
		o := r.Object(item, "a mapping", "framework", "ref")
		if o == nil {
			continue
		}
		m := Mapping{r.formed(item, o, "framework", "framework:", schemas.PackWord, "the id of a framework"),
			r.formed(item, o, "ref", "ref:", schemas.PackWord, "1 to 64 of A-Z a-z 0-9 _ . -")}
		if m.Framework != "" && !r.frameworks[m.Framework] {
			var known []string
			for id := range r.frameworks {
				known = append(known, id)
			}
			slices.Sort(known)
			r.Bad(item, "the framework "+strict.Quote(m.Framework)+" is not one of the pack", "one of frameworks: "+strings.Join(known, ", "), nearest.Word(m.Framework, known))
		}
		list = append(list, m)
	}
	return list
}

// program compiles a jq program. A key that the documents do not have is named with the one that was
// probably meant.
func (r *reader) program(n *yaml.Node, what string) *assertion.Assertion {
	text, ok := r.Text(n, what)
	if !ok {
		return nil
	}
	if strings.TrimSpace(text) == "" || len(text) > maxProgram {
		r.Bad(n, what+" is empty or too long", fmt.Sprintf("a jq program of at most %d bytes", maxProgram), "")
		return nil
	}
	a, err := assertion.Parse(text)
	if err != nil {
		typed := ""
		if unknown := new(jq.UnknownKeyError); errors.As(err, &unknown) {
			if typed = nearest.Word(unknown.Key, unknown.Known); typed != "" {
				typed = "." + typed
			}
		}
		r.Bad(n, what+": "+verdict.Printable(err.Error(), maxText), "a jq program", typed)
		return nil
	}
	return a
}

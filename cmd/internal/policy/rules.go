package policy

import (
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of a rule. They keep decisions fast.
const (
	maxRules   = 1024
	maxPattern = 256  // bytes of a tool name or a glob
	maxText    = 4096 // bytes of a reason, a path, a jq program
)

// rule is one rule about tools.
type rule struct {
	id      string
	allow   bool
	tools   []glob
	args    []condition
	when    *program
	also    []jsonpath.Path // places in the arguments that need no condition
	open    bool            // arguments that nothing names are no reason to deny
	rate    Rate
	digests []string // of arguments; nil: any
	line    int
	expects []string // cleaned paths and endpoints
	reason  string
}

// condition is one requirement on an argument: exactly one of under, in, to and typed is set.
type condition struct {
	at    jsonpath.Path
	under []root
	in    []any
	to    []destPattern
	typed *typed
}

var idForm = pattern.New(`^[A-Za-z0-9_.-]{1,64}$`)

// noSchema is what is wrong with a file that does not say that it is a policy.
const noSchema = "no schema"

// policy reads the whole file.
func (r *reader) policy(b []byte) *Policy {
	doc := r.Document(b)
	if doc == nil {
		return nil
	}
	p := new(Policy)
	o := r.Object(doc, "the policy", "schema", "default", "relative_to", "redact", "rules", "resources", "methods", "network", "files", "exec")
	if o == nil {
		return nil
	}
	if f, ok := o["schema"]; !ok {
		r.Bad(doc, noSchema, "the key schema", "schema: "+schemas.SchemaPolicyFile)
	} else if s, ok := r.Text(f.Value, "schema"); ok && s != schemas.SchemaPolicyFile {
		r.Bad(f.Value, "schema is "+strict.Quote(s), schemas.SchemaPolicyFile, "schema: "+schemas.SchemaPolicyFile)
	}
	if f, ok := o["default"]; ok {
		p.HasToolRules = true
		p.allow = r.action(f.Value)
	}
	if f, ok := o["relative_to"]; ok {
		if s, ok := r.Text(f.Value, "relative_to"); ok {
			p.RelativeTo, _ = r.absolute(f.Value, s)
		}
	}
	if f, ok := o["redact"]; ok {
		p.redact = r.redact(f.Value)
	}
	ids := map[string]int{}
	if f, ok := o["rules"]; ok {
		p.HasToolRules = true
		for _, n := range r.ruleList(f.Value, "rules") {
			if x, ok := r.rule(n, ids); ok {
				p.rules = append(p.rules, x)
			}
		}
	}
	if f, ok := o["resources"]; ok {
		p.HasToolRules, p.resources = true, r.requestRules(f.Value, "resources", ids)
	}
	if f, ok := o["methods"]; ok {
		p.HasToolRules, p.methods = true, r.requestRules(f.Value, "methods", ids)
	}
	if f, ok := o["network"]; ok {
		p.network = r.network(f.Value, ids)
	}
	p.files = r.fileRules(o, ids)
	r.mentions(p.rules)
	p.names = r.names
	return p
}

// section reads one section of rules for the kernel: its default, which is the given one if
// the file does not say, and each rule.
func (r *reader) section(n *yaml.Node, what, action string, rule func(item *yaml.Node)) string {
	o := r.Object(n, what, "default", "rules")
	if f, ok := o["default"]; ok {
		if action = schemas.DecisionDeny; r.action(f.Value) {
			action = schemas.DecisionAllow
		}
	}
	if f, ok := o["rules"]; ok {
		for _, item := range r.ruleList(f.Value, what+" rules") {
			rule(item)
		}
	}
	return action
}

// bound reports once that there are too many things in the rules of a section.
func (r *reader) bound(n *yaml.Node, have, most int, what string) {
	if have > most && !r.full[what] {
		r.full[what] = true
		r.Bad(n, fmt.Sprintf("more than %d %s", most, what), "fewer: the kernel asks them one by one", "")
	}
}

func (r *reader) action(n *yaml.Node) bool {
	s, _ := r.Word(n, "default", "allow", "deny")
	return s == "allow"
}

// ruleList reads a list of rules, which may be empty.
func (r *reader) ruleList(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		if n.Kind != yaml.AliasNode {
			r.Bad(n, what+" is "+strict.Kind(n), "a list of rules", "")
		}
		return nil
	}
	if len(n.Content) > maxRules {
		r.Bad(n.Content[maxRules], fmt.Sprintf("more than %d rules", maxRules), "fewer", "")
		return n.Content[:maxRules]
	}
	return n.Content
}

// id reads the id of a rule, which is unique over all lists.
func (r *reader) id(n *yaml.Node, o map[string]strict.Field, ids map[string]int) string {
	f, ok := o["id"]
	if !ok {
		r.Bad(n, "a rule without id", "the key id, which decisions name", "id: a-name")
		return ""
	}
	s, ok := r.Text(f.Value, "id")
	if !ok {
		return ""
	}
	if !idForm.MatchString(s) {
		r.Bad(f.Value, "id is "+strict.Quote(s), "1 to 64 of A-Z a-z 0-9 _ . -", "")
	} else if line := ids[s]; line != 0 {
		r.Bad(f.Value, fmt.Sprintf("id %s is that of the rule in line %d", s, line), "an id of its own", "")
	} else {
		ids[s] = f.Value.Line
	}
	return s
}

// side finds which of allow and deny a rule has; it must be one.
func (r *reader) side(n *yaml.Node, o map[string]strict.Field, of string) (strict.Field, bool, bool) {
	a, allow := o["allow"]
	d, deny := o["deny"]
	switch {
	case allow && deny:
		r.Bad(d.Key, "a rule with both allow and deny", "one of them", "")
	case allow:
		return a, true, true
	case deny:
		return d, false, true
	default:
		r.Bad(n, "a rule without allow or deny", "allow or deny with "+of, "")
	}
	return strict.Field{}, false, false
}

// rule reads one rule about tools.
func (r *reader) rule(n *yaml.Node, ids map[string]int) (rule, bool) {
	var x rule
	o := r.Object(n, "the rule", "id", "allow", "deny", "args", "also", "only", "digests", "when", "rate", "expects", "reason")
	if o == nil {
		return x, false
	}
	x.id, x.line = r.id(n, o, ids), n.Line
	f, allow, ok := r.side(n, o, "the names of tools")
	x.allow = allow
	if ok {
		for _, item := range r.Items(f.Value, f.Key.Value) {
			if s, ok := r.Text(item, "a tool's name"); ok {
				if s == "" || len(s) > maxPattern {
					r.Bad(item, "a tool's name of "+fmt.Sprint(len(s))+" bytes", fmt.Sprintf("1 to %d", maxPattern), "")
				}
				g, err := parseGlob(s)
				if err != nil {
					r.Bad(item, "a tool's name "+strict.Quote(s)+": "+err.Error(), `a name, a pattern of * and ?, or a list of them; a backslash before a character that is part of the name`, "")
				}
				x.tools = append(x.tools, g)
			}
		}
	}
	if f, ok := o["args"]; ok {
		if f.Value.Kind != yaml.SequenceNode {
			r.Bad(f.Value, "args is "+strict.Kind(f.Value), "a list of conditions", `- at: $.path`)
		} else {
			for _, item := range r.Items(f.Value, "args") {
				if c, ok := r.condition(item); ok {
					x.args = append(x.args, c)
				}
			}
		}
	}
	if f, ok := o["when"]; ok {
		x.when = r.when(f.Value)
	}
	r.scope(o, &x)
	if f, ok := o["rate"]; ok {
		if x.rate = r.rate(f.Value); !allow {
			r.Bad(f.Key, "rate in a rule that denies", "rate in a rule that allows", "")
		}
	}
	if f, ok := o["digests"]; ok {
		for _, item := range r.Items(f.Value, "digests") {
			if s, ok := r.Text(item, "a digest"); ok {
				if !schemas.ValidDigest(s) {
					r.Bad(item, "the digest "+strict.Quote(s), "sha256: and 64 hex digits, as arguments_digest in the decision log", "")
				}
				x.digests = append(x.digests, s)
			}
		}
	}
	if f, ok := o["expects"]; ok {
		if !allow {
			r.Bad(f.Key, "expects in a rule that denies", "expects in a rule that allows: a denied call may touch nothing", "")
		}
		for _, item := range r.Items(f.Value, "expects") {
			if s, ok := r.Text(item, "expects"); ok {
				x.expects = append(x.expects, r.expected(item, s))
			}
		}
	}
	if f, ok := o["reason"]; ok {
		s, ok := r.Text(f.Value, "reason")
		if ok && (strings.TrimSpace(s) == "" || len(s) > maxText) {
			r.Bad(f.Value, "reason has no text, or too much", fmt.Sprintf("1 to %d bytes that are said to the client", maxText), "")
		}
		x.reason = s
	}
	return x, true
}

// expected reads one thing that calls may touch.
func (r *reader) expected(n *yaml.Node, s string) string {
	if strings.HasPrefix(s, "/") {
		p, _ := r.absolute(n, s)
		return p
	}
	d, err := parseDest(s)
	if e, ok := d.endpoint(); err == nil && ok {
		return e
	}
	r.Bad(n, "expects "+strict.Quote(s), "an absolute path, or HOST:PORT", "")
	return ""
}

// absolute reads a path of the policy. It must be absolute and clean, except for a slash
// at the end, so that it cannot be misread.
func (r *reader) absolute(n *yaml.Node, s string) (string, bool) {
	switch {
	case !strings.HasPrefix(s, "/"):
		r.Bad(n, "path "+strict.Quote(s)+" is not absolute", "a path from the root", printedBy("realpath -m", s))
	case len(s) > maxText:
		r.Bad(n, "a path of "+fmt.Sprint(len(s))+" bytes", fmt.Sprintf("at most %d", maxText), "")
	case path.Clean(s) != s && path.Clean(s)+"/" != s:
		r.Bad(n, "path "+strict.Quote(s)+" is not in its plain form", "no empty, . or .. components", path.Clean(s))
	default:
		return path.Clean(s), true
	}
	return "", false
}

// printedBy is what to type instead of a path that is not absolute: what a shell command
// prints for it. There is none if the shell would not take the path as one word.
func printedBy(command, path string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("~$./_-", c)
	}
	if path == "" || path[0] == '-' || strings.TrimFunc(path, plain) != "" {
		return ""
	}
	return "what this prints: " + command + " " + path
}

// condition reads one requirement on an argument.
func (r *reader) condition(n *yaml.Node) (condition, bool) {
	var c condition
	o := r.Object(n, "the condition", append([]string{"at", "under", "in", "to"}, typedKinds...)...)
	if o == nil {
		return c, false
	}
	if f, ok := o["at"]; !ok {
		r.Bad(n, "a condition without at", "the place of an argument", "at: $.path")
	} else if s, ok := r.Text(f.Value, "at"); ok {
		var err error
		if c.at, err = jsonpath.Parse(s); err != nil {
			r.Bad(f.Value, "at "+strict.Quote(s)+": "+err.Error(), `$ followed by .name, ["name"], [0] or [*]`, "")
		}
		for _, st := range c.at.Steps {
			if st.Index == jsonpath.ByName {
				r.reads(f.Value, st.Name)
			}
		}
	}
	if given := len(o) - count(o, "at"); given != 1 {
		r.Bad(n, fmt.Sprintf("a condition with %d of under, in, to and a type", given), "one of them", "")
		return c, false
	}
	if f, ok := o["under"]; ok {
		for _, item := range r.Items(f.Value, "under") {
			if s, ok := r.Text(item, "under"); ok {
				if s, ok := r.absolute(item, s); ok {
					c.under = append(c.under, makeRoot(s))
				}
			}
		}
	}
	if f, ok := o["in"]; ok {
		if f.Value.Kind != yaml.SequenceNode {
			r.Bad(f.Value, "in is "+strict.Kind(f.Value), "a list of values", "")
		} else {
			for _, item := range r.Items(f.Value, "in") {
				c.in = append(c.in, r.value(item))
			}
		}
	}
	for _, kind := range typedKinds {
		if f, ok := o[kind]; ok {
			c.typed = r.typed(kind, f.Value)
		}
	}
	if f, ok := o["to"]; ok {
		for _, item := range r.Items(f.Value, "to") {
			if s, ok := r.Text(item, "to"); ok {
				d, err := parseDestPattern(s)
				if err != nil {
					r.Bad(item, "to "+strict.Quote(s)+": "+err.Error(), "NAME, *.NAME or ADDRESS, each with :PORT or without, or CIDR", destOf(s))
				}
				c.to = append(c.to, d)
			}
		}
	}
	return c, true
}

// destOf is what to type instead of a URL: where it leads.
func destOf(s string) string {
	if d, err := parseDest(s); err == nil && strings.Contains(s, "://") {
		if e, ok := d.endpoint(); ok {
			return e
		}
	}
	return ""
}

func count(o map[string]strict.Field, key string) int {
	if _, ok := o[key]; ok {
		return 1
	}
	return 0
}

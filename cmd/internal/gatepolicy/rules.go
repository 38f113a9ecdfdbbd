package gatepolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// rule says what becomes of the items that all of its keys ask for.
type rule struct {
	id    string
	at    *yaml.Node
	does  action
	about class
	conds []condition
	web   []glob   // url_path; nil: it has none
	when  *program // nil: it has none
	by    []string // fingerprints; nil: all keys
	count int      // 0: as many as the policy asks for
}

// bare reports whether the rule is about all items of its classes.
func (x *rule) bare() bool { return len(x.conds) == 0 && x.web == nil && x.when == nil }

// requirement must be true of the whole input.
type requirement struct {
	id   string
	that *program
}

// rule reads one rule.
func (r *reader) rule(n *yaml.Node, p *Policy) (x rule) {
	known := append([]string{"id"}, schemas.GateActions[:]...)
	for _, k := range ruleKeys {
		known = append(known, k.name)
	}
	o := r.Object(n, "the rule", append(known, keyURLPath, keyWhen, "by", "count")...)
	if o == nil {
		return x
	}
	x.id, x.at = r.id(n, o), n
	r.action(n, o, &x)
	if x.about == 0 {
		return x
	}
	r.foreign(o, x.about)
	for _, k := range ruleKeys {
		if f, ok := o[k.name]; ok && k.of&x.about == x.about {
			x.conds = append(x.conds, k.read(r, f.Value, x.about))
		}
	}
	if f, ok := o[keyURLPath]; ok && ofURLPath&x.about == x.about {
		x.web = append([]glob{}, r.urlPaths(f.Value, keyURLPath)...)
	}
	r.fits(n, o, &x)
	if f, ok := o[keyWhen]; ok {
		x.when = r.program(f.Value, keyWhen, x.about.itemShape())
	}
	r.who(n, o, &x, p)
	return x
}

// action reads which of allow, deny and require_approval a rule has, and its classes.
func (r *reader) action(n *yaml.Node, o map[string]strict.Field, x *rule) {
	const form = "file, intent, network or call, a list of them, or any"
	for _, a := range schemas.GateActions {
		f, ok := o[a]
		switch {
		case !ok:
			continue
		case x.does != "":
			r.Bad(f.Key, "a rule with both "+string(x.does)+" and "+a, "one of them", "")
			continue
		}
		x.does = action(a)
		for _, item := range r.items(f.Value, a) {
			s, _ := r.Word(item, "the class of "+a, append(schemas.GateClasses[:], schemas.GateAny)...)
			if s == schemas.GateAny && f.Value.Kind == yaml.SequenceNode && len(f.Value.Content) > 1 {
				r.Bad(item, "any in a list", "any alone: it is all classes", a+": any")
			}
			for _, c := range classes {
				if s == c.name || s == schemas.GateAny {
					x.about |= c.class
				}
			}
		}
	}
	if x.does == "" {
		r.Bad(n, "a rule without allow, deny or require_approval", "one of them, with "+form, "allow: file")
	}
}

// foreign reports keys that the items of the rule's classes do not all have.
func (r *reader) foreign(o map[string]strict.Field, about class) {
	have := map[string]class{keyURLPath: ofURLPath}
	names := []string{}
	for _, k := range ruleKeys {
		have[k.name] = k.of
		if k.of&about == about {
			names = append(names, k.name)
		}
	}
	if ofURLPath&about == about {
		names = append(names, keyURLPath)
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		of, narrows := have[name]
		if !narrows || of&about == about {
			continue
		}
		r.Bad(o[name].Key, fmt.Sprintf("the key %s in a rule about %s, which is a key of %s", name, about, of), "one of "+strings.Join(append(names, keyWhen), ", "), "")
	}
}

// fits reports keys of one rule that no item has together.
func (r *reader) fits(n *yaml.Node, o map[string]strict.Field, x *rule) {
	if x.about != classIntent {
		return
	}
	_, path := o["path"]
	request := ""
	for _, k := range []string{"scheme", "host", "port", "method", keyURLPath} {
		if _, ok := o[k]; ok && request == "" {
			request = k
		}
	}
	if path && request != "" {
		r.Bad(o[request].Key, "both path and "+request, "one of them: path is of files.write, "+request+" of http.request", "")
		return
	}
	f, typed := o["type"]
	need := map[bool]string{true: intentFile, false: intentHTTP}[path]
	if !typed || !path && request == "" {
		return
	}
	if kinds := readType(&reader{}, f.Value, classIntent); !kinds(&view{kind: need}) {
		r.Bad(f.Value, fmt.Sprintf("a rule about %s with %s", strict.Kind(f.Value), map[bool]string{true: "path", false: request}[path]), "the type "+need+", whose key that is", "type: "+need)
	}
}

// who reads whose approval a rule asks for.
func (r *reader) who(n *yaml.Node, o map[string]strict.Field, x *rule, p *Policy) {
	for _, key := range []string{"by", "count"} {
		if f, ok := o[key]; ok && x.does != actApprove && x.does != "" {
			r.Bad(f.Key, key+" in a rule without require_approval", "no "+key+": nobody is asked", "")
			return
		}
	}
	able := len(p.keys)
	if f, ok := o["by"]; ok {
		x.by = r.names(f.Value)
		able = len(x.by)
	}
	if f, ok := o["count"]; ok {
		x.count = r.count(f.Value, "count", able)
	} else if len(x.by) > 0 && p.threshold > len(x.by) {
		r.Bad(o["by"].Value, fmt.Sprintf("by has %d, and approvals.threshold is %d", len(x.by), p.threshold), "the key count, or more names", "count: "+fmt.Sprint(len(x.by)))
	}
}

// names reads names of keys, and returns their fingerprints.
func (r *reader) names(n *yaml.Node) []string {
	list, known := []string{}, []string{}
	for _, k := range r.keys {
		known = append(known, k.Name)
	}
	for _, x := range r.items(n, "by") {
		s, ok := r.Text(x, "by")
		if !ok {
			continue
		}
		i := slices.Index(known, s)
		if i < 0 {
			r.Bad(x, "by has "+strict.Quote(s)+", which is no key", "names of approvals.keys: "+strings.Join(known, ", "), nearest.Word(s, known))
			continue
		}
		list = append(list, r.keys[i].String())
	}
	return set(list)
}

// reachable reports rules that no item reaches.
func (r *reader) reachable(rules []rule) {
	var taken class
	by := map[class]string{}
	for i := range rules {
		x := &rules[i]
		if x.about != 0 && x.about&^taken == 0 {
			r.Bad(x.at, "no item reaches the rule "+x.id+": the rule "+by[x.about&-x.about]+" before it takes all of its class", "this rule before that one, or no such rule", "")
		}
		if !x.bare() || x.about == 0 {
			continue
		}
		for _, c := range classes {
			if x.about&c.class != 0 && taken&c.class == 0 {
				taken |= c.class
				by[c.class] = x.id
			}
		}
	}
}

// requirement reads one element of require.
func (r *reader) requirement(n *yaml.Node) (x requirement) {
	o := r.Object(n, "the requirement", "id", "that")
	if o == nil {
		return x
	}
	x.id = r.id(n, o)
	if f, ok := o["that"]; ok {
		x.that = r.program(f.Value, "that", inputShape())
	} else {
		r.Bad(n, "a requirement without that", "a jq program over the whole input", `that: ".evidence.exit_code == 0"`)
	}
	return x
}

package gatepolicy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// condition reports whether an item is one that a key asks for.
type condition func(v *view) bool

// ruleKey is a key of rules that narrows what they are about.
type ruleKey struct {
	name string
	of   class // whose items have it
	read func(r *reader, n *yaml.Node, of class) condition
}

// Forms of words.
const (
	typeForm   = `^[a-z0-9_-]+(\.[a-z0-9_-]+)*(\.\*)?$`
	labelForm  = `^[a-z0-9_.-]+$`
	methodForm = `^[A-Z]+(-[A-Z]+)*$`
	hostForm   = `^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`
)

var typeWord, labelWord, methodWord, hostWord = pattern.New(typeForm), pattern.New(labelForm), pattern.New(methodForm), pattern.New(hostForm)

// ruleKeys are the keys that narrow a rule, but for url_path and when, which are asked last.
var ruleKeys = []ruleKey{
	{"path", classFile | classIntent, readPath},
	{"op", classFile, oneOf("op", schemas.FileChanges[:], func(v *view) string { return v.op })},
	{"kind", classFile, oneOf("kind", schemas.FileKinds[:], func(v *view) string { return v.file })},
	{"type", classIntent, readType},
	{"label", classIntent, readLabel},
	{"decision", classNetwork | classCall, readDecision},
	{"scheme", classNetwork | classIntent, ofWeb(oneOf("scheme", schemas.NetSchemes[:], func(v *view) string { return v.web.scheme }))},
	{"host", classNetwork | classIntent, ofWeb(readHost)},
	{"port", classNetwork | classIntent, ofWeb(numbers("port", 1, 65535, func(v *view) int { return int(v.web.port) }))},
	{"method", classNetwork | classIntent, ofWeb(readMethod)},
	{"status", classNetwork, numbers("status", 100, 999, func(v *view) int { return int(v.status) })},
	{"tool", classCall, readTool},
	{"max_size", classFile | classIntent | classNetwork, size("max_size", func(have, bound uint64) bool { return have <= bound })},
	{"min_size", classFile, size("min_size", func(have, bound uint64) bool { return have >= bound })},
}

// Keys of rules that are not in ruleKeys.
const (
	keyURLPath = "url_path"
	keyWhen    = "when"
)

// ofURLPath are the classes whose rules have the key url_path.
const ofURLPath = classNetwork | classIntent

type readKey = func(r *reader, n *yaml.Node, of class) condition

// ofWeb is a key of requests alone: nothing else is what its rule is about.
func ofWeb(read readKey) readKey {
	return func(r *reader, n *yaml.Node, of class) condition {
		holds := read(r, n, of)
		return func(v *view) bool { return v.web != nil && holds(v) }
	}
}

// oneOf is a key whose values are among a few words.
func oneOf(name string, all []string, of func(*view) string) readKey {
	return func(r *reader, n *yaml.Node, _ class) condition {
		var list []string
		for _, x := range r.items(n, name) {
			s, _ := r.Word(x, name, all...)
			list = append(list, s)
		}
		return func(v *view) bool { return slices.Contains(list, of(v)) }
	}
}

// numbers is a key whose values are numbers.
func numbers(name string, least, most int, of func(*view) int) readKey {
	return func(r *reader, n *yaml.Node, _ class) condition {
		var list []int
		for _, x := range r.items(n, name) {
			list = append(list, r.number(x, name, least, most))
		}
		return func(v *view) bool { return slices.Contains(list, of(v)) }
	}
}

// size is a key about sizes. What has no size is not what its rule is about.
func size(name string, holds func(have, bound uint64) bool) readKey {
	return func(r *reader, n *yaml.Node, _ class) condition {
		var bound uint64
		ok := n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!str" || n.ShortTag() == "!!int")
		if ok {
			bound, ok = parseSize(n.Value)
		}
		if !ok && n.Kind != yaml.AliasNode {
			r.Bad(n, name+" is "+strict.Kind(n), "a number of bytes, such as 4096, 64KiB or 16MiB", "")
		}
		return func(v *view) bool { return v.size != nil && holds(*v.size, bound) }
	}
}

var sizeWord = pattern.New(`^[0-9]{1,19}([KMG](iB)?)?$`)

// parseSize reads a size as the flags of tools have it, with iB or without.
func parseSize(s string) (uint64, bool) {
	n, ok := tool.ParseSize(strings.TrimSuffix(s, "iB"))
	return n, ok && sizeWord.MatchString(s)
}

func readPath(r *reader, n *yaml.Node, _ class) condition {
	var list []glob
	for _, x := range r.items(n, "path") {
		s, ok := r.Text(x, "path")
		if !ok {
			continue
		}
		g, err := parseGlob(s, true)
		if err == nil && s != "." && slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }) {
			err = fmt.Errorf("it has a component that no path has")
		}
		if err != nil {
			r.Bad(x, "path "+strict.Quote(s)+": "+err.Error(), "a path below the workspace, such as docs/a.md, *.md or docs/**", strings.Trim(strings.TrimPrefix(s, "./"), "/"))
			continue
		}
		list = append(list, g)
	}
	return func(v *view) bool {
		return v.path != nil && slices.ContainsFunc(list, func(g glob) bool { return g.match(*v.path) })
	}
}

// urlPaths reads patterns of paths of URLs.
func (r *reader) urlPaths(n *yaml.Node, what string) (list []glob) {
	for _, x := range r.items(n, what) {
		s, ok := r.Text(x, what)
		if !ok {
			continue
		}
		g, err := parseGlob(s, false)
		parts := strings.Split(s, "/")
		switch {
		case err != nil:
		case parts[0] != "":
			err = fmt.Errorf("it does not begin with a slash")
		case strings.ContainsAny(s, "?%#;"):
			err = fmt.Errorf("it has one of ? %% # ;")
		case slices.ContainsFunc(parts[1:max(len(parts)-1, 1)], func(part string) bool { return part == "" }),
			slices.ContainsFunc(parts, func(part string) bool { return part == "." || part == ".." }):
			err = fmt.Errorf("it has a component that no path has")
		}
		if err != nil {
			r.Bad(x, what+" "+strict.Quote(s)+": "+err.Error(), "a decoded path without query, such as /orders, /orders/* or /v1/**", "")
			continue
		}
		list = append(list, g)
	}
	return list
}

func readType(r *reader, n *yaml.Node, _ class) condition {
	var list []string
	for _, x := range r.items(n, "type") {
		s, _ := r.formed(x, "type", typeWord, "a type of intents such as files.write, or http.* for all that begin so")
		list = append(list, s)
	}
	return func(v *view) bool {
		return slices.ContainsFunc(list, func(s string) bool {
			prefix, open := strings.CutSuffix(s, "*")
			return s == v.kind || open && strings.HasPrefix(v.kind, prefix) && len(v.kind) > len(prefix)
		})
	}
}

func readLabel(r *reader, n *yaml.Node, _ class) condition {
	var list []string
	for _, x := range r.items(n, "label") {
		s, _ := r.formed(x, "label", labelWord, "a label, of a-z 0-9 _ . -")
		list = append(list, s)
	}
	return func(v *view) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(v.labels, s) })
	}
}

// readDecision takes the words that all classes of the rule have.
func readDecision(r *reader, n *yaml.Node, of class) condition {
	all := schemas.NetDecisions[:]
	if of&classCall != 0 {
		all = []string{schemas.DecisionAllow, schemas.DecisionDeny}
	}
	return oneOf("decision", all, func(v *view) string { return v.decision })(r, n, of)
}

// hostPattern is a name, an address, or with below all names below a name.
type hostPattern struct {
	name  string
	below bool
}

func (p hostPattern) match(host string) bool {
	if p.below {
		return strings.HasSuffix(host, "."+p.name) && len(host) > len(p.name)+1
	}
	return host == p.name
}

func (r *reader) hosts(n *yaml.Node) (list []hostPattern) {
	for _, x := range r.items(n, "host") {
		s, ok := r.Text(x, "host")
		if !ok {
			continue
		}
		name, below := strings.CutPrefix(s, "*.")
		a, err := netip.ParseAddr(s)
		if isAddress := err == nil && a.Zone() == ""; len(s) > 255 || !isAddress && !hostWord.MatchString(s) {
			r.Bad(x, "host is "+strict.Quote(s), "a name, *. and a name, or an address; scheme, port and path are keys of their own", "")
			continue
		}
		list = append(list, hostPattern{foldHost(name), below})
	}
	return list
}

func readHost(r *reader, n *yaml.Node, _ class) condition {
	list := r.hosts(n)
	return func(v *view) bool {
		return slices.ContainsFunc(list, func(p hostPattern) bool { return p.match(v.web.host) })
	}
}

func readMethod(r *reader, n *yaml.Node, _ class) condition {
	var list []string
	for _, x := range r.items(n, "method") {
		s, _ := r.formed(x, "method", methodWord, "a method in upper case, such as POST")
		list = append(list, s)
	}
	return func(v *view) bool { return slices.Contains(list, v.web.method) }
}

// readTool reads names of tools, in which * is any text.
func readTool(r *reader, n *yaml.Node, _ class) condition {
	var list []component
	for _, x := range r.items(n, "tool") {
		s, ok := r.Text(x, "tool")
		if !ok {
			continue
		}
		c, err := parseComponent(s, false)
		if err != nil || s == "" || len(s) > maxPattern {
			r.Bad(x, "tool is "+strict.Quote(s), "the name of a tool, or a pattern of * and ?; a backslash before a character that is part of the name", "")
			continue
		}
		list = append(list, c)
	}
	return func(v *view) bool {
		return slices.ContainsFunc(list, func(c component) bool { return c.match(v.tool) })
	}
}

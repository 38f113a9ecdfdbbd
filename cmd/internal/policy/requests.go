package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// maxTarget is how many bytes of a request's target are recorded.
const maxTarget = 4096

// Request is one request that is no tool call, of the client or of the server.
type Request struct {
	Method string
	Params any    // as Decode makes it; nil if there are none, or if they are too long to be read
	Dir    string // absolute directory at which relative paths start
}

// Target is what a request is about: the URI of a resource, the name of a prompt, what a
// completion completes, the address of a page that the user is sent to.
func (r *Request) Target() string {
	p, _ := r.Params.(map[string]any)
	if ref, ok := p["ref"].(map[string]any); ok {
		p = ref
	}
	for _, key := range []string{"uri", "name", "url"} {
		if s, ok := p[key].(string); ok {
			return s
		}
	}
	return ""
}

// protocol are the requests without which there is no session, or that only list what there
// is: no rule is asked about them.
var protocol = []string{"initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen", "tools/list", "prompts/list",
	"resources/list", "resources/templates/list", "resources/unsubscribe", "roots/list", "tasks/list", "tasks/get", "tasks/result", "tasks/cancel"}

// DecideRequest decides a request that is no tool call.
func (p *Policy) DecideRequest(_ context.Context, r *Request) Decision {
	d := p.requestRule(r)
	e := &evaluation{policy: p, call: Call{Dir: r.Dir}}
	var t targetSet
	if s := r.Target(); len(s) <= maxTarget {
		e.target(&t, s, false)
	} else {
		t.cut = true
	}
	if m, ok := r.Params.(map[string]any); ok {
		e.strings(&t, m["arguments"], maxDepth)
		e.strings(&t, m["argument"], maxDepth)
		if left := maxTokens; !d.Allow {
			eachString(m, maxDepth, func(s string) { e.tokens(&t, s, &left) })
		}
	}
	d.Targets, d.TargetsCut = t.sorted()
	return d
}

// requestRule asks the rules: those of resources about what reads one, those of methods
// about everything else that is not of the protocol itself.
func (p *Policy) requestRule(r *Request) Decision {
	if slices.Contains(protocol, r.Method) {
		return Decision{Allow: true, Reason: schemas.ReasonAllowProtocol}
	}
	rules, what := p.methods, r.Method
	if strings.HasPrefix(r.Method, "resources/") {
		rules, what = p.resources, r.Target()
	}
	for i := range rules {
		x := &rules[i]
		ok, err := x.about(what)
		switch {
		case err != nil:
			return Decision{Reason: schemas.ReasonEvalError, RuleID: x.id, Say: "policy rule " + x.id + " cannot be evaluated for this request: " + err.Error()}
		case !ok:
			continue
		case x.allow:
			return Decision{Allow: true, Reason: schemas.ReasonAllowRule, RuleID: x.id}
		}
		d := Decision{Reason: schemas.ReasonDenyRule, RuleID: x.id, Say: "policy rule " + x.id + " denies this request"}
		if x.reason != "" {
			d.Say += ": " + x.reason
		}
		return d
	}
	if p.allow {
		return Decision{Allow: true, Reason: schemas.ReasonAllowDefault}
	}
	return Decision{Reason: schemas.ReasonDenyDefault, Say: "no policy rule allows this request"}
}

// requestRule is one rule about methods, or about the URIs of resources.
type requestRule struct {
	id       string
	allow    bool
	byURI    bool
	patterns []glob
	under    []root // of file: URIs
	reason   string
}

var errURI = errors.New("its URI is not clear")

// about reports whether a rule is about a method or a URI.
func (r *requestRule) about(s string) (bool, error) {
	if r.byURI {
		file, isFile, err := clearURI(s)
		switch {
		case err != nil:
			return false, err
		case isFile:
			all, err := places("", file)
			if err != nil {
				return false, err
			}
			for _, place := range all {
				if within(place, r.under) != r.allow {
					return !r.allow, nil
				}
			}
			return r.allow, nil
		}
	}
	return slices.ContainsFunc(r.patterns, func(g glob) bool { return g.match(s) }), nil
}

// clearURI refuses a URI that servers may read as another one. file is the path of a file:
// URI.
func clearURI(s string) (file string, isFile bool, err error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !schemeForm(scheme) || strings.ToLower(scheme) != scheme || len(s) > maxTarget ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return "", false, errURI
	}
	if scheme == "file" {
		if file, ok := fileURI(s); ok {
			return file, true, nil
		}
		return "", false, errURI
	}
	all, err := readings(rest)
	if err != nil {
		return "", false, err
	}
	for _, reading := range all {
		for part := range strings.FieldsFuncSeq(reading, func(r rune) bool { return strings.ContainsRune("/?#;&", r) }) {
			if part == ".." || part == "." {
				return "", false, errURI
			}
		}
	}
	return "", false, nil
}

// requestRules reads a list of rules about methods or resources.
func (r *reader) requestRules(n *yaml.Node, what string, ids map[string]int) (list []requestRule) {
	byURI := what == "resources"
	for _, item := range r.ruleList(n, what) {
		o := r.Object(item, "the rule", "id", "allow", "deny", "reason")
		if o == nil {
			continue
		}
		x := requestRule{id: r.id(item, o, ids), byURI: byURI}
		f, allow, ok := r.side(item, o, map[bool]string{true: "paths and URIs", false: "methods"}[byURI])
		x.allow = allow
		if ok {
			for _, entry := range r.Items(f.Value, f.Key.Value) {
				r.requestPattern(entry, &x)
			}
		}
		if f, ok := o["reason"]; ok {
			x.reason, _ = r.Text(f.Value, "reason")
		}
		list = append(list, x)
	}
	return list
}

func (r *reader) requestPattern(n *yaml.Node, x *requestRule) {
	s, ok := r.Text(n, "a pattern")
	if !ok {
		return
	}
	if x.byURI && strings.HasPrefix(s, "/") {
		if p, ok := r.absolute(n, s); ok {
			x.under = append(x.under, makeRoot(p))
		}
		return
	}
	if _, isFile := cutFold(s, "file:"); isFile && x.byURI {
		r.Bad(n, "the URI "+strict.Quote(s), "for files a path, which means it and all below", strings.TrimSuffix(strings.TrimPrefix(s, "file://"), "/*"))
		return
	}
	g, err := parseGlob(s)
	switch {
	case err != nil || s == "" || len(s) > maxText:
		r.Bad(n, "the pattern "+strict.Quote(s)+" is not one of * and ?", "a method, a URI, or a pattern; a path for files", "")
	case !x.byURI && slices.ContainsFunc(protocol, func(m string) bool { return g.text == m }), !x.byURI && (g.text == "tools/call" || strings.HasPrefix(g.text, "resources/")):
		r.Bad(n, "no rule of methods is asked about "+strict.Quote(s), "prompts/get, completion/complete, sampling/createMessage, elicitation/create or another method; rules for tools, resources for resources", "")
	}
	x.patterns = append(x.patterns, g)
}

func (x *requestRule) explain(w io.Writer, number int) {
	var list []string
	for _, g := range x.patterns {
		list = append(list, plainQuote(g.text))
	}
	for _, d := range x.under {
		list = append(list, plainQuote(d.text)+" and below")
	}
	fmt.Fprintf(w, "  %d. %s: %s %s\n", number, x.id, map[bool]string{true: "allow", false: "deny"}[x.allow], strings.Join(list, " or "))
	if x.reason != "" {
		fmt.Fprintf(w, "     message to the client: %s\n", plainQuote(x.reason))
	}
}

// RootsDecision is the answer to roots that a client offers.
type RootsDecision struct {
	Allow  bool
	Reason string
	Say    string   // what is said to the server; empty when allowed
	Roots  []string // the URIs, in text form
	Dirs   []string // the directories that they are, of those in Roots
	Cut    bool     // there were more, or longer ones
	By     string   // digest of the policy that decided, if the caller says so
}

// DecideRoots decides the result of roots/list: each root must be, or lie below, a
// directory that an allowing rule names in an under. Without such a rule, and with the
// default allow, those that no denying rule names pass.
func (p *Policy) DecideRoots(result any) RootsDecision {
	d := RootsDecision{Allow: true, Reason: schemas.ReasonAllowRoots, Roots: []string{}}
	deny := func(say string) { d.Allow, d.Reason, d.Say = false, schemas.ReasonDenyRoots, say }
	list, ok := rootList(result)
	if !ok {
		deny("the roots cannot be read")
	}
	size := 0
	for _, uri := range list {
		if size += len(uri); len(d.Roots) == schemas.MaxTargets || size > schemas.MaxTargetBytes {
			d.Cut = true
		} else {
			d.Roots = append(d.Roots, schemas.Text(uri))
			if file, ok := fileURI(uri); ok {
				if dir, err := url.PathUnescape(file); err == nil {
					d.Dirs = append(d.Dirs, dir)
				}
			}
		}
		if !p.covers(uri) {
			deny("a root is not one that the policy names")
		}
	}
	if d.Cut {
		deny("there are too many roots")
	}
	return d
}

// HasRoots reports whether a server could take a value for a list of roots.
func HasRoots(result any) bool {
	r, _ := result.(map[string]any)
	_, ok := r["roots"]
	return ok || other(r, "roots")
}

// rootList is the URIs of a list of roots; false if a server could read others.
func rootList(result any) (uris []string, ok bool) {
	r, isObject := result.(map[string]any)
	list, isList := r["roots"].([]any)
	if !isObject || !isList || other(r, "roots") {
		return nil, false
	}
	ok = true
	for _, item := range list {
		root, isObject := item.(map[string]any)
		uri, isText := root["uri"].(string)
		if !isObject || !isText || other(root, "uri") {
			ok = false
			continue
		}
		uris = append(uris, uri)
	}
	return uris, ok
}

// other reports whether an object has a key that differs from a name only in case.
func other(m map[string]any, name string) bool {
	want := string(fold(nil, name))
	for k := range m {
		if k != name && string(fold(nil, k)) == want {
			return true
		}
	}
	return false
}

// covers reports whether a root is one that the policy names.
func (p *Policy) covers(uri string) bool {
	if p.RelativeTo != "" { // with another root, relative paths would start elsewhere
		file, ok := fileURI(uri)
		return ok && path.Clean(file) == p.RelativeTo && !strings.Contains(file, "%")
	}
	var allowed, denied []root
	for i := range p.rules {
		for _, c := range p.rules[i].args {
			if p.rules[i].allow {
				allowed = append(allowed, c.under...)
			} else {
				denied = append(denied, c.under...)
			}
		}
	}
	open := p.allow && len(allowed) == 0
	file, isFile := fileURI(uri)
	if !isFile {
		return open
	}
	all, err := places("", file)
	if err != nil {
		return false
	}
	for _, place := range all {
		if !open && !within(place, allowed) || open && within(place, denied) {
			return false
		}
	}
	return true
}

// fileURI is the path of a file: URI of this machine.
func fileURI(uri string) (path string, ok bool) {
	rest, ok := cutFold(uri, "file://")
	if !ok || strings.ContainsAny(rest, "?#") {
		return "", false
	}
	if after, local := cutFold(rest, "localhost"); local {
		rest = after
	}
	return rest, strings.HasPrefix(rest, "/")
}

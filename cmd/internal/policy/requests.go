package policy

import (
	"context"
	"path"
	"strings"

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

// DecideRequest decides a request that is no tool call.
func (p *Policy) DecideRequest(_ context.Context, r *Request) Decision {
	d := Decision{Allow: true, Reason: schemas.ReasonAllowProtocol}
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
	}
	d.Targets, d.TargetsCut = t.sorted()
	return d
}

// RootsDecision is the answer to roots that a client offers.
type RootsDecision struct {
	Allow  bool
	Reason string
	Say    string   // what is said to the server; empty when allowed
	Roots  []string // the URIs, in text form
	Cut    bool     // there were more, or longer ones
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

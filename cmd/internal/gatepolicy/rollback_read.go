package gatepolicy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Forms of texts of rollbacks.
const (
	templateForm    = `^(/(\{id\}|[A-Za-z0-9._~!$&'()*+,=:@-]*))+$`
	headerNameForm  = "^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$"
	headerValueForm = `^[!-~]([ -~]{0,998}[!-~])?$`
	// ownHeaderForm is the names of headers that follow from the rest of a request.
	ownHeaderForm = `^(connection|content-length|expect|host|idempotency-key|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$`
)

var template, headerName, headerValue, ownHeader = pattern.New(templateForm), pattern.New(headerNameForm), pattern.New(headerValueForm), pattern.New(ownHeaderForm)

// rollback reads one element of rollbacks.
func (r *reader) rollback(n *yaml.Node) (x rollbackRule) {
	o := r.Object(n, "the rollback", "id", "host", "method", "path", "match", "id_from", "rollback")
	if o == nil {
		return x
	}
	x.id = r.id(n, o)
	for _, k := range []string{"host", "method", "path", "rollback"} {
		if _, ok := o[k]; !ok {
			r.Bad(n, "a rollback without "+k, "host, method and path of the request, and how it is undone", "")
			return x
		}
	}
	x.hosts = r.hosts(o["host"].Value)
	for _, item := range r.items(o["method"].Value, "method") {
		s, _ := r.formed(item, "method", methodWord, "a method in upper case, such as POST")
		x.methods = append(x.methods, s)
	}
	x.paths = r.urlPaths(o["path"].Value, "path")
	if f, ok := o["match"]; ok {
		r.match(f.Value, &x)
	}
	if f, ok := o["id_from"]; ok {
		for _, item := range r.items(f.Value, "id_from") {
			x.sources = append(x.sources, r.source(item))
		}
	}
	r.undo(o["rollback"].Value, &x)
	_, from := o["id_from"]
	switch needs := strings.Contains(x.path, idPart); {
	case needs && !from:
		r.Bad(n, "a path with {id}, and no id_from", "where the id is in the answer", `id_from: ["header:location", "json:$.id"]`)
	case from && !needs && x.path != "":
		r.Bad(o["id_from"].Key, "id_from, and no {id} in the path of the rollback", "both, or neither", "")
	}
	return x
}

// match reads what the request must have besides.
func (r *reader) match(n *yaml.Node, x *rollbackRule) {
	o := r.Object(n, "match", "headers", "json")
	if f, ok := o["headers"]; ok {
		x.headers = r.headers(f.Value)
	}
	f, ok := o["json"]
	if !ok {
		return
	}
	r.pairs(f.Value, "json", `places and values: {"$.kind": order}`, func(k, v *yaml.Node) {
		if p, ok := r.place(k, "json"); ok {
			x.members = append(x.members, member{p, r.scalar(v)})
		}
	})
}

// place reads a path to one place.
func (r *reader) place(n *yaml.Node, what string) (jsonpath.Path, bool) {
	s, ok := r.Text(n, what)
	if !ok {
		return jsonpath.Path{}, false
	}
	p, err := jsonpath.Parse(s)
	if err == nil && slices.ContainsFunc(p.Steps, func(st jsonpath.Step) bool { return st.Index == jsonpath.Every }) {
		err = fmt.Errorf("it leads to many places")
	}
	if err == nil && len(s) > maxPattern {
		err = fmt.Errorf("it has more than %d bytes", maxPattern)
	}
	if err != nil {
		r.Bad(n, what+" "+strict.Quote(s)+": "+err.Error(), `$ followed by .name, ["name"] or [0]`, "")
	}
	return p, err == nil
}

// scalar reads a text, a boolean or an integer.
func (r *reader) scalar(n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode {
		switch tag := n.ShortTag(); {
		case tag == "!!str":
			return n.Value
		case tag == "!!bool" && (n.Value == "true" || n.Value == "false"):
			return n.Value == "true"
		case tag == "!!int" && integer.MatchString(n.Value):
			return json.Number(n.Value)
		}
	}
	if n.Kind != yaml.AliasNode {
		r.Bad(n, "a value is "+strict.Kind(n), "a string, true or false, or a decimal integer", "")
	}
	return nil
}

// pairs calls f for the keys and values of an object with any keys.
func (r *reader) pairs(n *yaml.Node, what, form string, f func(k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content) > 2*maxKeys {
		if n.Kind != yaml.AliasNode {
			r.Bad(n, what+" is "+strict.Kind(n)+", or has no or too many keys", form, "")
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i], n.Content[i+1])
	}
}

// headers reads headers with their values, sorted by name.
func (r *reader) headers(n *yaml.Node) (list []schemas.NetHeader) {
	r.pairs(n, "headers", "names in lower case and values: {x-reason: revert}", func(k, v *yaml.Node) {
		name, ok := r.formed(k, "the name of a header", headerName, "a name in lower case")
		value, isText := r.formed(v, "the value of a header", headerValue, "printable ASCII without blanks at its ends")
		if ok && ownHeader.MatchString(name) {
			r.Bad(k, "the header "+name, "a header that does not follow from the rest of the request", "")
		} else if ok && isText {
			list = append(list, schemas.NetHeader{Name: name, Value: value})
		}
	})
	slices.SortFunc(list, func(a, b schemas.NetHeader) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// source reads where an id is.
func (r *reader) source(n *yaml.Node) (s source) {
	const form = "header:NAME in lower case, or json:$.NAME"
	text, ok := r.Text(n, "id_from")
	if !ok {
		return s
	}
	s.text = text
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case kind == "header" && headerName.MatchString(rest):
		s.header = rest
	case kind == "json":
		at := *n
		at.Value = rest
		if p, ok := r.place(&at, "id_from"); ok {
			s.at = p
		}
	default:
		r.Bad(n, "id_from has "+strict.Quote(text), form, "")
	}
	return s
}

// undo reads the request that undoes.
func (r *reader) undo(n *yaml.Node, x *rollbackRule) {
	o := r.Object(n, "the rollback", "method", "path", "headers")
	if o == nil {
		return
	}
	if f, ok := o["method"]; ok {
		x.method, _ = r.Word(f.Value, "method", schemas.RollbackMethods[:]...)
	} else {
		r.Bad(n, "a rollback without method", "DELETE or POST", "method: DELETE")
	}
	if f, ok := o["path"]; !ok {
		r.Bad(n, "a rollback without path", "a path, with {id} for the id", "path: /orders/{id}")
	} else if s, ok := r.Text(f.Value, "path"); ok {
		if x.path = s; len(s) > maxPattern || !template.MatchString(s) || strings.Contains(s, "//") ||
			slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool { return part == "." || part == ".." }) {
			r.Bad(f.Value, "path is "+strict.Quote(s), "a path such as /orders/{id}: {id} is a whole component, and there is no query", "")
		}
	}
	if f, ok := o["headers"]; ok {
		x.send = r.headers(f.Value)
	}
}

package gatepolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of what a server answers.
const (
	maxID   = 256     // bytes of an id
	maxBody = 1 << 20 // bytes of a body that an id is read from
)

// rollbackRule says how the commit of a request is undone.
type rollbackRule struct {
	id      string
	hosts   []hostPattern
	methods []string
	paths   []glob
	headers []schemas.NetHeader // that the request has
	members []member            // that its JSON has
	sources []source
	method  string
	path    string // with {id}, or without
	send    []schemas.NetHeader
}

// member is a value that the JSON of a request has at a place.
type member struct {
	at    jsonpath.Path
	value any // string, bool, json.Number
}

// source is where an id is in an answer.
type source struct {
	text   string // as it was written
	header string // "": it is in the body
	at     jsonpath.Path
}

const idPart = "{id}"

// Rollback is how the commit of one intent is undone.
type Rollback struct {
	rule *rollbackRule
	from *url.URL // of the request
}

// Rollback finds the first rule of the registry that undoes an intent.
func (p *Policy) Rollback(i *gate.Intent) (*Rollback, bool) {
	v := intentView(i)
	if v.never != "" || v.web == nil || v.web.path == nil {
		return nil, false
	}
	fields, err := textFields(i.Payload)
	if err != nil {
		return nil, false
	}
	u, err := url.Parse(fields["url"])
	if err != nil {
		return nil, false
	}
	for n := range p.rollbacks {
		if x := &p.rollbacks[n]; x.about(v.web) && x.fits(i.Payload) {
			return &Rollback{x, u}, true
		}
	}
	return nil, false
}

// Rollback finds the rule of the first policy that undoes an intent.
func (c *Combined) Rollback(i *gate.Intent) (*Rollback, bool) {
	for _, e := range c.engines {
		if p, is := e.(*Policy); is {
			if b, found := p.Rollback(i); found {
				return b, true
			}
		}
	}
	return nil, false
}

func (x *rollbackRule) about(w *web) bool {
	return slices.Contains(x.methods, w.method) && slices.ContainsFunc(x.hosts, func(p hostPattern) bool { return p.match(w.host) }) &&
		slices.ContainsFunc(x.paths, func(g glob) bool { return g.match(*w.path) })
}

// fits reports whether a payload has the headers and the members that the rule asks for.
func (x *rollbackRule) fits(payload []byte) bool {
	if len(x.headers) == 0 && len(x.members) == 0 {
		return true
	}
	v, err := jsonpath.Decode(payload)
	if err != nil {
		return false
	}
	request, _ := v.(map[string]any)
	headers, _ := request["headers"].(map[string]any)
	for _, h := range x.headers {
		if headers[h.Name] != h.Value {
			return false
		}
	}
	for _, m := range x.members {
		if have, err := one(m.at, request["json"]); err != nil || have != m.value {
			return false
		}
	}
	return true
}

// errAbsent is of a place without a value.
var errAbsent = errors.New("there is nothing")

// one is the value at a path that leads to one place, if it is neither an object nor an array.
func one(p jsonpath.Path, v any) (found any, err error) {
	err = p.Each(v, func(v any, present bool) error {
		if !present {
			return errAbsent
		}
		found = v
		return nil
	})
	switch found.(type) {
	case map[string]any, []any:
		return nil, errors.New("it is " + jsonpath.Kind(found))
	}
	return found, err
}

// Rule is the id of the rule.
func (b *Rollback) Rule() string { return b.rule.id }

// Plan is what a plan says of it.
func (b *Rollback) Plan() gate.Rollback {
	g := gate.Rollback{Available: true, Rule: b.rule.id, Method: b.rule.method, PathTemplate: b.rule.path, RequiresID: b.needsID(), IDSources: []string{}}
	for _, s := range b.rule.sources {
		g.IDSources = append(g.IDSources, s.text)
	}
	return g
}

func (b *Rollback) needsID() bool { return strings.Contains(b.rule.path, idPart) }

// IDFrom finds the id in the answer to the request; it is "" if no id is needed. The error says by name why the commit cannot
// be undone. The first source that the answer has counts: if that is no id, no other one is guessed.
func (b *Rollback) IDFrom(header http.Header, body []byte) (string, error) {
	if !b.needsID() {
		return "", nil
	}
	var names []string
	for _, s := range b.rule.sources {
		names = append(names, s.text)
		id, err := b.read(&s, header, body)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err == nil {
			err = checkID(id)
		}
		if err != nil {
			return "", fmt.Errorf("rollback %s: %s of the answer: %w", b.rule.id, s.text, err)
		}
		return id, nil
	}
	return "", fmt.Errorf("rollback %s: the answer has no id: neither of %s", b.rule.id, strings.Join(names, ", "))
}

// read reads an id from one source.
func (b *Rollback) read(s *source, header http.Header, body []byte) (string, error) {
	if s.header == "" {
		return fromBody(s.at, body)
	}
	values := header.Values(s.header)
	switch {
	case len(values) == 0:
		return "", errAbsent
	case len(values) > 1:
		return "", errors.New("it is there more than once")
	case s.header == "location" || s.header == "content-location":
		return b.lastPart(values[0])
	}
	return values[0], nil
}

func fromBody(at jsonpath.Path, body []byte) (string, error) {
	if len(body) == 0 {
		return "", errAbsent
	}
	if len(body) > maxBody {
		return "", fmt.Errorf("the body has more than %d bytes", maxBody)
	}
	v, err := jsonpath.Decode(body)
	if err != nil {
		return "", errors.New("the body is not JSON without doubt: " + clip(err.Error()))
	}
	found, err := one(at, v)
	if err != nil {
		return "", err
	}
	switch id := found.(type) {
	case string:
		return id, nil
	case json.Number:
		if integer.MatchString(string(id)) {
			return string(id), nil
		}
	}
	return "", errors.New("it is neither a text nor an integer")
}

var integer = pattern.New(`^(0|[1-9][0-9]*)$`)

// lastPart is the last component of the path that a server names, which has to be on the same server.
func (b *Rollback) lastPart(location string) (string, error) {
	u, err := b.from.Parse(location)
	if err != nil || len(location) > maxPattern {
		return "", errors.New("it is no URL")
	}
	here, there := target(http.MethodGet, b.from.String()), target(http.MethodGet, u.String())
	if there == nil || there.path == nil || here == nil || here.scheme != there.scheme || here.host != there.host || here.port != there.port {
		return "", errors.New("it is not a plain path on the same server")
	}
	part := (*there.path)[strings.LastIndexByte(*there.path, '/')+1:]
	if part == "" {
		return "", errors.New("its path ends in a slash")
	}
	return part, nil
}

// checkID refuses what would not be one component of a path for every server.
func checkID(id string) error {
	switch {
	case id == "" || len(id) > maxID:
		return fmt.Errorf("the id has %d bytes, expected 1 to %d", len(id), maxID)
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }), !allow.PlainPath("/" + url.PathEscape(id)):
		return fmt.Errorf("the id %.100q is not one component of a path", id)
	}
	return nil
}

// Request is the request that undoes the commit: the headers are sorted by name. The id is what IDFrom gave.
func (b *Rollback) Request(id string) (method, address string, headers []schemas.NetHeader, err error) {
	path := b.rule.path
	if b.needsID() {
		if err := checkID(id); err != nil {
			return "", "", nil, fmt.Errorf("rollback %s: %w", b.rule.id, err)
		}
		path = strings.ReplaceAll(path, idPart, url.PathEscape(id))
	}
	return b.rule.method, b.from.Scheme + "://" + b.from.Host + path, slices.Clone(b.rule.send), nil
}

package gatepolicy

import (
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/schemas"
)

// class is one kind of what a plan has. Their bits make a set.
type class uint8

const (
	classFile class = 1 << iota
	classIntent
	classNetwork
	classCall
)

// classes are all classes, with their names in rules and the form of their items.
var classes = []struct {
	class
	name string
	item *jq.Shape
}{
	{classFile, schemas.GateFile, jq.OfType(reflect.TypeFor[gate.File]())},
	{classIntent, schemas.GateIntent, jq.OfType(reflect.TypeFor[gate.Intent]())},
	{classNetwork, schemas.GateNetwork, jq.OfType(reflect.TypeFor[gate.Exchange]())},
	{classCall, schemas.GateCall, jq.OfType(reflect.TypeFor[gate.Call]())},
}

func (c class) String() string {
	var names []string
	for _, x := range classes {
		if c&x.class != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ", ")
}

// itemShape is what the items of all these classes have.
func (c class) itemShape() *jq.Shape {
	var list []*jq.Shape
	for _, x := range classes {
		if c&x.class != 0 {
			list = append(list, x.item)
		}
	}
	return jq.Common(list...)
}

// view is what rules see of an item.
type view struct {
	class class
	index int
	kind  string // what decisions call its type
	item  any    // as the input has it
	never string // why it is not allowed, whatever rules say; "" for most

	path           *string // raw bytes; nil: it has none
	op, file       string
	size           *uint64
	labels         []string
	decision, tool string
	web            *web // nil: it is no request
	status         uint16
}

// web is where a request goes.
type web struct {
	scheme, host string // in the form of foldHost
	port         uint16
	method       string  // "" for bytes that are not HTTP
	path         *string // decoded; nil: others may read it as another path
}

// subjects are the items of an input, in its order.
type subjects [4][]view

// views reads the items of an input. The error is that of a caller: indexes that are not those of items.
func views(in *gate.Input) (*subjects, error) {
	s := new(subjects)
	for i := range in.Files {
		s[0] = append(s[0], fileView(&in.Files[i]))
	}
	for i := range in.Intents {
		s[1] = append(s[1], intentView(&in.Intents[i]))
	}
	for i := range in.Network {
		s[2] = append(s[2], exchangeView(&in.Network[i]))
	}
	for i := range in.Calls {
		c := &in.Calls[i]
		s[3] = append(s[3], view{class: classCall, index: c.Index, kind: c.Tool, item: c, tool: c.Tool, decision: c.Decision})
	}
	for i, list := range s {
		if len(list) > gate.MaxItems {
			return nil, fmt.Errorf("the input has %d items of the class %s, at most %d", len(list), classes[i].name, gate.MaxItems)
		}
		seen := make(map[int]bool, len(list))
		for _, v := range list {
			if v.index < 0 || seen[v.index] {
				return nil, fmt.Errorf("the index %d of the class %s is there twice, or below 0", v.index, classes[i].name)
			}
			seen[v.index] = true
		}
	}
	return s, nil
}

func fileView(f *gate.File) view {
	v := view{class: classFile, index: f.Index, kind: f.Op, item: f, op: f.Op}
	state := f.After
	if state == nil {
		state = f.Before
	}
	raw, err := schemas.Untext(f.Path)
	if err != nil || state == nil {
		v.never = "not_readable:file"
		return v
	}
	path := string(raw)
	v.path, v.file, v.size = &path, state.Kind, state.Size
	return v
}

// exchangeView reads an exchange. Its path is that of the wire.
func exchangeView(x *gate.Exchange) view {
	v := view{class: classNetwork, index: x.Index, kind: x.Method, item: x, decision: x.Decision, size: &x.Sent, status: x.Status}
	v.web = &web{scheme: x.Scheme, host: foldHost(x.Host), port: x.Port, method: x.Method, path: plain(x.Path)}
	return v
}

// intentView reads an intent. One whose payload is not that of its type cannot be done, and no rule would see what it is about.
func intentView(i *gate.Intent) view {
	size := uint64(len(i.Payload))
	v := view{class: classIntent, index: i.Index, kind: i.Type, item: i, labels: i.Labels, size: &size}
	fields, err := textFields(i.Payload)
	switch {
	case i.Type == intentFile:
		if v.path = belowPath(fields["path"]); err != nil || v.path == nil {
			v.never = "not_readable:" + i.Type
		}
	case i.Type == intentHTTP:
		if v.web = target(fields["method"], fields["url"]); err != nil || v.web == nil {
			v.never = "not_readable:" + i.Type
		}
	default:
		v.never = "unknown_intent_type:" + clip(i.Type)
	}
	return v
}

// Types of intents that can be done.
const (
	intentFile = schemas.IntentFilesWrite
	intentHTTP = schemas.IntentHTTPRequest
)

// textFields are the texts among the members of an object.
func textFields(b []byte) (map[string]string, error) {
	var all map[string]any
	if err := schemas.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for k, v := range all {
		if s, is := v.(string); is {
			texts[k] = s
		}
	}
	return texts, nil
}

// belowPath is a path below a directory, or nil.
func belowPath(s string) *string {
	raw, err := schemas.Untext(s)
	if err != nil || strings.IndexByte(s, 0) >= 0 {
		return nil
	}
	path := string(raw)
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return nil
		}
	}
	return &path
}

// target is where a request goes, or nil if that is not clear.
func target(method, address string) *web {
	u, err := url.Parse(address)
	if err != nil || !methodWord.MatchString(method) || u.Scheme != schemas.NetHTTP && u.Scheme != schemas.NetHTTPS || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return nil
	}
	port := map[string]uint16{schemas.NetHTTP: 80, schemas.NetHTTPS: 443}[u.Scheme]
	if s := u.Port(); s != "" || strings.HasSuffix(u.Host, ":") {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return nil
		}
		port = uint16(n)
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return &web{scheme: u.Scheme, host: foldHost(u.Hostname()), port: port, method: method, path: plain(path)}
}

// plain is the decoded form of a path that is one thing to everybody, or nil. Parameters after a semicolon are no part of a
// path for some servers.
func plain(path string) *string {
	if !allow.PlainPath(path) {
		return nil
	}
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.Contains(decoded, ";") {
		return nil
	}
	return &decoded
}

// foldHost is the one spelling of a name or an address.
func foldHost(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

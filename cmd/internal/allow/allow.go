// Package allow reads files that say which requests may leave, and decides about requests.
package allow

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// maxRules of a file.
const maxRules = 1000

// Rule allows requests. All that it says must be true of one.
type Rule struct {
	ID      string
	Host    string   // a name, "*." and a name for all below it, or an address
	Port    uint16   // 0: 80 for http and 443 for https
	Methods []string // none: all
	Paths   []string // a path that ends with a slash is also that of all below it; none: all
	TCP     bool     // bytes are passed on as they are
}

// Rules are those of a file, in order. Nil allows nothing.
type Rules struct {
	List   []Rule
	digest string // of the file
}

// Digest is that of the file, "" without rules.
func (r *Rules) Digest() string {
	if r == nil {
		return ""
	}
	return r.digest
}

// Request is what is decided about.
type Request struct {
	Host   string // in lower case
	Port   uint16
	Method string // "" for TCP
	Path   string // as it is on the wire
}

// Read reads a file.
func Read(file string) (*Rules, error) {
	b, err := tool.ReadFile(file, strict.MaxFile+1)
	if err != nil {
		return nil, err
	}
	return Parse(file, b)
}

// Parse reads the text of a file. All that is wrong with it is in the error.
func Parse(file string, b []byte) (*Rules, error) {
	r := &reader{Reader: strict.Reader{File: file, What: "a list of what may leave", First: "schema: " + schemas.SchemaNetAllow,
		Meant: map[string]string{"hosts": "host", "ports": "port", "method": "methods", "path": "paths", "pathPrefixes": "paths", "allow": "rules"}}, ids: map[string]bool{}}
	rules := r.file(b)
	if p := r.Problems(); p != nil {
		return nil, tool.Fail(tool.ExitInput, p)
	}
	rules.digest = schemas.DigestOf(b)
	return rules, nil
}

type reader struct {
	strict.Reader
	ids map[string]bool
}

func (r *reader) file(b []byte) *Rules {
	doc := r.Document(b)
	if doc == nil {
		return nil
	}
	o := r.Object(doc, "the file", "schema", "rules")
	if s, there := o["schema"]; there {
		r.Word(s.Value, "schema", schemas.SchemaNetAllow)
	} else if o != nil {
		r.Bad(doc, "the key schema is missing", "", "schema: "+schemas.SchemaNetAllow)
	}
	list, there := o["rules"]
	if !there || list.Value.Kind != yaml.SequenceNode || len(list.Value.Content) == 0 {
		r.Bad(doc, "there are no rules", "a list of at least one", "rules: [{host: api.example.com}]")
		return nil
	}
	if n := len(list.Value.Content); n > maxRules {
		r.Bad(list.Value, fmt.Sprintf("there are %d rules", n), fmt.Sprintf("at most %d", maxRules), "")
		return nil
	}
	rules := new(Rules)
	for i, n := range list.Value.Content {
		rules.List = append(rules.List, r.rule(n, i))
	}
	return rules
}

var (
	idForm     = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)
	hostForm   = pattern.New(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)
	methodForm = pattern.New(`^[A-Z][A-Z-]{0,31}$`)
)

func (r *reader) rule(n *yaml.Node, i int) Rule {
	o := r.Object(n, "a rule", "id", "host", "port", "methods", "paths", "tcp")
	u := Rule{ID: "rule-" + strconv.Itoa(i+1)}
	if f, there := o["id"]; there {
		u.ID, _ = r.formed(f.Value, "id", idForm, "1 to 64 of A-Z a-z 0-9 . _ -")
	}
	if r.ids[u.ID] {
		r.Bad(n, "the id "+strict.Quote(u.ID)+" is there twice", "another one", "")
	}
	r.ids[u.ID] = true
	if f, there := o["host"]; there {
		u.Host = r.host(f.Value)
	} else if o != nil {
		r.Bad(n, "the key host is missing", "", "host: api.example.com")
	}
	if f, there := o["port"]; there {
		port, err := strconv.ParseUint(f.Value.Value, 10, 16)
		if f.Value.ShortTag() != "!!int" || err != nil || port == 0 {
			r.Bad(f.Value, "port is "+strict.Quote(f.Value.Value), "a number from 1 to 65535", "")
		}
		u.Port = uint16(port)
	}
	if f, there := o["methods"]; there {
		for _, m := range r.Items(f.Value, "methods") {
			s, _ := r.formed(m, "methods", methodForm, "upper-case words such as GET")
			u.Methods = append(u.Methods, s)
		}
	}
	if f, there := o["paths"]; there {
		for _, p := range r.Items(f.Value, "paths") {
			if s, ok := r.Text(p, "paths"); ok && !PlainPath(s) {
				r.Bad(p, "paths has "+strict.Quote(s), "paths that begin with a slash, as they are sent, without . and .. as parts", "")
			} else {
				u.Paths = append(u.Paths, s)
			}
		}
	}
	if f, there := o["tcp"]; there {
		if f.Value.ShortTag() != "!!bool" || f.Value.Decode(&u.TCP) != nil {
			r.Bad(f.Value, "tcp is "+strict.Kind(f.Value), "true or false", "tcp: true")
		}
	}
	if u.TCP && (u.Port == 0 || len(u.Methods) > 0 || len(u.Paths) > 0) {
		r.Bad(n, "the rule is about bytes", "a port, and neither methods nor paths", "")
	}
	return u
}

func (r *reader) formed(n *yaml.Node, what string, form *pattern.Pattern, expected string) (string, bool) {
	s, ok := r.Text(n, what)
	if ok && !form.MatchString(s) {
		r.Bad(n, what+" is "+strict.Quote(s), expected, "")
	}
	return s, ok
}

func (r *reader) host(n *yaml.Node) string {
	s, ok := r.Text(n, "host")
	if !ok {
		return ""
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().String()
	}
	if len(s) > 255 || !hostForm.MatchString(s) {
		r.Bad(n, "host is "+strict.Quote(s), "a name in lower case, *. and a name, or an address; the port is a key of its own", "")
	}
	return s
}

// Decide returns the first rule that allows a request, or nil.
func (rs *Rules) Decide(q Request) *Rule {
	if rs == nil {
		return nil
	}
	for i := range rs.List {
		if u := &rs.List[i]; u.allows(q) {
			return u
		}
	}
	return nil
}

// TCP returns the rule that passes on the bytes of a connection, or nil.
func (rs *Rules) TCP(host string, port uint16) *Rule {
	return rs.Decide(Request{Host: host, Port: port})
}

// Ports are all that rules name, and those of http and https.
func (rs *Rules) Ports() []uint16 {
	list := []uint16{80, 443}
	if rs != nil {
		for _, u := range rs.List {
			if u.Port != 0 {
				list = append(list, u.Port)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (u *Rule) allows(q Request) bool {
	switch {
	case u.TCP != (q.Method == ""):
		return false
	case u.Port != 0 && u.Port != q.Port, u.Port == 0 && q.Port != 80 && q.Port != 443:
		return false
	case len(u.Methods) > 0 && !slices.Contains(u.Methods, q.Method):
		return false
	case !u.names(q.Host):
		return false
	}
	return len(u.Paths) == 0 || PlainPath(q.Path) && slices.ContainsFunc(u.Paths, func(p string) bool {
		return p == q.Path || strings.HasSuffix(p, "/") && strings.HasPrefix(q.Path, p)
	})
}

func (u *Rule) names(host string) bool {
	if below, any := strings.CutPrefix(u.Host, "*"); any {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return u.Host == host
}

// Inward are the rules for hosts that the command reaches in its own network: they let out nothing that it sends there. A connection
// to a loopback address is refused before rules are asked, unless one passes on its bytes; and localhost and 0.0.0.0 lead to such an
// address, of which the name is not known then.
func (rs *Rules) Inward() (list []Rule) {
	if rs == nil {
		return nil
	}
	for _, u := range rs.List {
		if u.inward() {
			list = append(list, u)
		}
	}
	return list
}

func (u *Rule) inward() bool {
	name := strings.TrimPrefix(u.Host, "*.")
	a, err := netip.ParseAddr(u.Host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && (a.IsUnspecified() || a.IsLoopback() && !u.TCP)
}

// PlainPath reports whether a path is one thing to everybody: a server could take .. or an escaped slash as another one.
func PlainPath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\?#") {
		return false
	}
	lower := strings.ToLower(p)
	for _, escaped := range []string{"%2e", "%2f", "%5c", "%00", "%25"} {
		if strings.Contains(lower, escaped) {
			return false
		}
	}
	for part := range strings.SplitSeq(p[1:], "/") {
		if name, _, _ := strings.Cut(part, ";"); name == "." || name == ".." {
			return false
		}
	}
	return !strings.Contains(p, "//")
}

package gatepolicy

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of a policy file.
const (
	maxRules     = 1024
	maxPrograms  = 64 // of a file: each is a process
	maxKeys      = 64
	maxRollbacks = 256
	maxPattern   = 1024 // bytes
	maxText      = 4096 // bytes of a program
	maxList      = 256  // elements of a list in a rule
)

var idForm = pattern.New(`^[A-Za-z0-9_.-]{1,64}$`)

const idExpected = "1 to 64 of A-Z a-z 0-9 _ . -"

// meant are keys that people who know other policies type.
var meant = map[string]string{"policy": "rules", "allow": "rules", "deny": "rules", "paths": "path", "methods": "method", "hosts": "host",
	"labels": "label", "types": "type", "if": "when", "requires": "require", "approvers": "approvals", "max_bytes": "max_size", "url": "url_path",
	"urlPath": "url_path", "threshold": "count", "maxSize": "max_size", "apiVersion": "schema", "ports": "port", "rollback": "rollbacks", "tools": "tool"}

// reader reads a policy file and collects what is wrong with it.
type reader struct {
	strict.Reader
	ids      map[string]int // of the whole file, with their lines
	keys     []Key
	programs int
}

// policy reads the whole file.
func (r *reader) policy(b []byte) *Policy {
	doc := r.Document(b)
	if doc == nil {
		return nil
	}
	o := r.Object(doc, "the policy", "schema", "version", "default", "approvals", "rules", "require", "rollbacks")
	if o == nil {
		return nil
	}
	if f, ok := o["schema"]; !ok {
		r.Bad(doc, "no schema", "the key schema", "schema: "+schemas.SchemaGatePolicy)
	} else if s, ok := r.Text(f.Value, "schema"); ok && s != schemas.SchemaGatePolicy {
		r.Bad(f.Value, "schema is "+strict.Quote(s), schemas.SchemaGatePolicy, "schema: "+schemas.SchemaGatePolicy)
	}
	p := &Policy{byDefault: actDeny, threshold: 1}
	if f, ok := o["version"]; ok {
		p.version, _ = r.formed(f.Value, "version", idForm, idExpected)
	}
	if f, ok := o["default"]; ok {
		s, _ := r.Word(f.Value, "default", schemas.GateActions[:]...)
		p.byDefault = action(s)
	}
	if f, ok := o["approvals"]; ok {
		r.approvals(f.Value, p)
	}
	if f, ok := o["rules"]; ok {
		for _, n := range r.list(f.Value, "rules", maxRules) {
			p.rules = append(p.rules, r.rule(n, p))
		}
		r.reachable(p.rules)
	}
	if f, ok := o["require"]; ok {
		for _, n := range r.list(f.Value, "require", maxRules) {
			p.require = append(p.require, r.requirement(n))
		}
	}
	if f, ok := o["rollbacks"]; ok {
		for _, n := range r.list(f.Value, "rollbacks", maxRollbacks) {
			p.rollbacks = append(p.rollbacks, r.rollback(n))
		}
	}
	return p
}

// approvals reads who may approve, and how many have to.
func (r *reader) approvals(n *yaml.Node, p *Policy) {
	o := r.Object(n, "approvals", "threshold", "keys")
	if f, ok := o["keys"]; ok {
		p.keys = r.people(f.Value)
		r.keys = p.keys
	}
	if f, ok := o["threshold"]; ok {
		p.threshold = r.count(f.Value, "threshold", len(p.keys))
	}
}

// count reads a number of people. It can be no more than there are keys, if there are any.
func (r *reader) count(n *yaml.Node, what string, keys int) int {
	count := r.number(n, what, 1, maxKeys)
	if keys > 0 && count > keys {
		r.Bad(n, fmt.Sprintf("%s is %d, and there %s", what, count, counted(keys, "key")), fmt.Sprintf("at most %d: each key counts once", keys), "")
	}
	return count
}

func counted(n int, what string) string {
	if n == 1 {
		return "is 1 " + what
	}
	return fmt.Sprintf("are %d %ss", n, what)
}

// people reads the keys, sorted by name.
func (r *reader) people(n *yaml.Node) (keys []Key) {
	const form = "names, each with its public key: {alice: MCowBQYDK2VwAyEA…}"
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		if n.Kind != yaml.AliasNode {
			r.Bad(n, "keys is "+map[bool]string{true: "empty", false: strict.Kind(n)}[n.Kind == yaml.MappingNode], form, "")
		}
		return nil
	}
	if len(n.Content) > 2*maxKeys {
		r.Bad(n, fmt.Sprintf("%d keys", len(n.Content)/2), fmt.Sprintf("at most %d", maxKeys), "")
		return nil
	}
	names := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, ok := r.formed(n.Content[i], "the name of a key", idForm, idExpected)
		text, isText := r.Text(n.Content[i+1], "a key")
		if !ok || !isText {
			continue
		}
		key, err := parseKey(text)
		if err != nil {
			r.Bad(n.Content[i+1], "the key of "+name+": "+err.Error(), "the base64 of a public key, ed25519 or P-256: the lines between those of its PEM file that begin with five hyphens", "")
			continue
		}
		if other := names[key.String()]; other != "" {
			r.Bad(n.Content[i+1], "the key of "+name+" is that of "+other, "each key once: it counts once", "")
			continue
		}
		names[key.String()] = name
		keys = append(keys, Key{name, key})
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// parseKey reads a SubjectPublicKeyInfo in base64. White space is that of wrapped lines.
func parseKey(s string) (*attestation.PublicKey, error) {
	if strings.Contains(s, "-----") {
		return nil, fmt.Errorf("it has the first or the last line of a PEM file")
	}
	der, err := base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil || len(der) == 0 {
		return nil, fmt.Errorf("it is not base64")
	}
	return attestation.ParsePublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// list reads a list of objects, which may be empty.
func (r *reader) list(n *yaml.Node, what string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		if n.Kind != yaml.AliasNode {
			r.Bad(n, what+" is "+strict.Kind(n), "a list", "")
		}
		return nil
	}
	if len(n.Content) > most {
		r.Bad(n.Content[most], fmt.Sprintf("%s has %d elements", what, len(n.Content)), fmt.Sprintf("at most %d", most), "")
		return n.Content[:most]
	}
	return n.Content
}

// items are the elements of a list in a rule, or its one value. None is there twice.
func (r *reader) items(n *yaml.Node, what string) []*yaml.Node {
	list := r.Items(n, what)
	if len(list) > maxList {
		r.Bad(n, fmt.Sprintf("%s has %d elements", what, len(list)), fmt.Sprintf("at most %d", maxList), "")
		return nil
	}
	seen := map[string]bool{}
	for _, x := range list {
		if x.Kind == yaml.ScalarNode && seen[x.Value] {
			r.Bad(x, what+" has "+strict.Quote(x.Value)+" twice", "each once", "")
		}
		seen[x.Value] = true
	}
	return list
}

// id reads the id of a rule, which is unique in the file.
func (r *reader) id(n *yaml.Node, o map[string]strict.Field) string {
	f, ok := o["id"]
	if !ok {
		r.Bad(n, "a rule without id", "the key id, which decisions name", "id: a-name")
		return ""
	}
	s, ok := r.formed(f.Value, "id", idForm, idExpected)
	if !ok {
		return ""
	}
	if line := r.ids[s]; line != 0 {
		r.Bad(f.Value, fmt.Sprintf("id %s is that of the rule in line %d", s, line), "an id of its own", "")
		return s
	}
	r.ids[s] = f.Value.Line
	return s
}

func (r *reader) formed(n *yaml.Node, what string, form *pattern.Pattern, expected string) (string, bool) {
	s, ok := r.Text(n, what)
	if ok && !form.MatchString(s) {
		r.Bad(n, what+" is "+strict.Quote(s), expected, "")
		return "", false
	}
	return s, ok
}

// number reads an integer.
func (r *reader) number(n *yaml.Node, what string, least, most int) int {
	i, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || strconv.Itoa(i) != n.Value || i < least || i > most {
		if n.Kind != yaml.AliasNode {
			r.Bad(n, what+" is "+strict.Kind(n), fmt.Sprintf("a number from %d to %d", least, most), "")
		}
		return 0
	}
	return i
}

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Schema strings of policy files. Both are of others; schemas/PROC.md says what they mean here.
const (
	SchemaRules = "x07.os.process.policy@0.1.0"
	SchemaRunOS = "x07.run-os-policy@0.1.0"
)

// Policy decides requests. It never changes, so any number of goroutines may use it.
type Policy struct {
	Digest  string // sha256: and the hex SHA-256 of the file's bytes
	MaxLive uint32 // processes at one time
	// MaxSpawns is how many processes one program may start; NoLimit if the file does not say.
	MaxSpawns uint64
	// KillOnDrop and KillTree: a process ends with its handle, and its descendants with it.
	KillOnDrop, KillTree bool

	decider
}

// MaxHandles is how many processes a pool holds at one time where no policy says less.
const MaxHandles = 64

// NoLimit is a number without a bound.
const NoLimit = 1<<64 - 1

// decider is the part of a policy that its schema gives.
type decider interface {
	// decide decides a request by its bytes alone. It looks at no file.
	decide(q *Request, c *Caps) Verdict
}

// Verdict is the decision about a request.
type Verdict struct {
	Allow   bool
	RuleID  string // of the rule that allows; "" for a default
	Why     string // for people, of a denial
	Limit   bool   // it is above a bound
	Program string // what to execute: the path of the request without . and ..
	Below   string // the program must be in this directory when its links are followed; "" is anywhere
	SHA256  string // the program must have this digest, in hex; "" is any

	// TimeoutMS replaces the limit of the request, where that has none.
	TimeoutMS uint32
	// Next is what else could allow it, if a condition that only the file system knows does not hold.
	Next []Verdict
}

// Decide decides a request. It looks at no file.
func (p *Policy) Decide(q *Request, c *Caps) Verdict {
	if p.MaxLive == 0 || p.MaxSpawns == 0 {
		return denyLimit("no process may be started")
	}
	return p.decide(q, c)
}

// DenyAll is the policy of a world that must have one and was given none.
func DenyAll() *Policy {
	return &Policy{Digest: noPolicy, MaxLive: MaxHandles, MaxSpawns: NoLimit, KillOnDrop: true, KillTree: true, decider: denyAll{}}
}

// noPolicy is the digest where there is no policy file: that of an empty one.
var noPolicy = schemas.DigestOf("")

type denyAll struct{}

func (denyAll) decide(*Request, *Caps) Verdict { return deny("there is no policy") }

// denyLimit denies what is above a bound.
func denyLimit(why string) Verdict { return Verdict{Why: why, Limit: true} }

func deny(format string, a ...any) Verdict { return Verdict{Why: fmt.Sprintf(format, a...)} }

// cleaned is the path that a program is compared and executed by: . and .. are resolved in the text. A name
// without a slash stays one, which execve takes for a file of the directory.
func cleaned(program []byte) string { return path.Clean(string(program)) }

// below reports whether a path is a directory or lies below it, by component. Both are clean.
func below(s, dir string) bool {
	switch dir {
	case "/":
		return s != "" && s[0] == '/'
	case ".":
		return s != ".." && !bytes.HasPrefix([]byte(s), []byte("../")) && s != "" && s[0] != '/'
	}
	return s == dir || len(s) > len(dir) && s[:len(dir)] == dir && s[len(dir)] == '/'
}

// OpenPolicy reads and checks a policy file of either schema. Its error has the exit code 3 for a file that is not
// valid (the message lists all problems), 5 for one that cannot be read.
func OpenPolicy(file string) (*Policy, error) {
	b, err := tool.ReadFile(file, strict.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tool.Fail(tool.ExitIO, fmt.Errorf("there is no policy file %s", file))
	}
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	p, err := ParsePolicy(file, b)
	if err != nil {
		return nil, tool.Fail(tool.ExitInput, err)
	}
	return p, nil
}

// policyReader reads a policy file and collects what is wrong with it.
type policyReader struct{ strict.Reader }

// ParsePolicy checks a policy; name is the file name in problems. The error is *strict.Problems.
func ParsePolicy(name string, b []byte) (*Policy, error) {
	r := &policyReader{strict.Reader{File: name, What: "a policy", First: `{"schema_version": "` + SchemaRules + `", …}`}}
	p := &Policy{Digest: schemas.DigestOf(b), MaxSpawns: NoLimit, KillOnDrop: true, KillTree: true}
	if doc := r.Document(b); doc != nil {
		r.policy(doc, p)
	}
	if bad := r.Problems(); bad != nil {
		return nil, bad
	}
	return p, nil
}

func (r *policyReader) policy(doc *yaml.Node, p *Policy) {
	version := ""
	if doc.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if doc.Content[i].Value == "schema_version" {
				version = doc.Content[i+1].Value
			}
		}
	}
	switch version {
	case SchemaRules:
		r.rules(doc, p)
	case SchemaRunOS:
		r.runOS(doc, p)
	default:
		r.Bad(doc, "schema_version is "+strict.Quote(version), SchemaRules+" or "+SchemaRunOS, "")
	}
}

// required reports keys that are missing.
func (r *policyReader) required(n *yaml.Node, o map[string]strict.Field, what string, keys ...string) bool {
	whole := o != nil
	for _, k := range keys {
		if _, ok := o[k]; o != nil && !ok {
			r.Bad(n, "no "+k+" in "+what, "the key "+k, "")
			whole = false
		}
	}
	return whole
}

// number reads a whole number in bounds; the default if the key is not there.
func (r *policyReader) number(o map[string]strict.Field, key string, most, without uint64) uint64 {
	f, ok := o[key]
	if !ok {
		return without
	}
	var n uint64
	if f.Value.ShortTag() != "!!int" || f.Value.Decode(&n) != nil || n > most {
		r.Bad(f.Value, key+" is "+strict.Kind(f.Value), fmt.Sprintf("a whole number of at most %d", most), "")
	}
	return n
}

func (r *policyReader) boolean(o map[string]strict.Field, key string, without bool) bool {
	f, ok := o[key]
	if !ok {
		return without
	}
	var v bool
	if f.Value.ShortTag() != "!!bool" || f.Value.Decode(&v) != nil {
		r.Bad(f.Value, key+" is "+strict.Kind(f.Value), "true or false", "")
	}
	return v
}

// texts reads a list of strings, which may be empty or absent. check says what is wrong with one.
func (r *policyReader) texts(o map[string]strict.Field, key string, most, longest int, check func(string) string) (list []string) {
	f, ok := o[key]
	if !ok {
		return nil
	}
	if f.Value.Kind != yaml.SequenceNode {
		r.Bad(f.Value, key+" is "+strict.Kind(f.Value), "a list of strings", "")
		return nil
	}
	if len(f.Value.Content) > most {
		r.Bad(f.Value, fmt.Sprintf("%s has %d elements", key, len(f.Value.Content)), fmt.Sprintf("at most %d", most), "")
		return nil
	}
	for _, n := range f.Value.Content {
		s, ok := r.Text(n, "an element of "+key)
		switch {
		case !ok:
		case len(s) > longest:
			r.Bad(n, fmt.Sprintf("an element of %s has %d bytes", key, len(s)), fmt.Sprintf("at most %d", longest), "")
		case check != nil && check(s) != "":
			r.Bad(n, "an element of "+key+" is "+strict.Quote(s)+": "+check(s), "", "")
		default:
			list = append(list, s)
		}
	}
	return list
}

package main

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of a file of rules.
const (
	maxRules  = 1000
	maxRuleID = 64
)

var ruleID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// day is how a rule's last day is written.
const day = "2006-01-02"

type ignoreReader struct {
	strict.Reader
	now time.Time
}

// readIgnore reads a file of rules.
func readIgnore(name string, opt *Options) (*ignore, error) {
	b, err := tool.ReadFile(name, strict.MaxFile+1)
	if err != nil {
		return nil, err
	}
	r := &ignoreReader{Reader: strict.Reader{File: name, What: "a file of ignore rules", First: "schema_version: " + schemas.VersionCapabilityIgnore}, now: opt.now.UTC()}
	g := &ignore{file: schemas.Text(name), digest: schemas.DigestOf(b), from: opt.nowFrom, day: r.now.Format(day)}
	if doc := r.Document(b); doc != nil {
		r.file(g, doc)
	}
	if p := r.Problems(); p != nil {
		return nil, tool.Fail(tool.ExitInput, p)
	}
	return g, nil
}

func (r *ignoreReader) file(g *ignore, doc *yaml.Node) {
	fields := r.Object(doc, "the file", "schema_version", "rules")
	if fields == nil {
		return
	}
	if v, ok := fields["schema_version"]; !ok {
		r.Bad(doc, "schema_version is missing", schemas.VersionCapabilityIgnore, "schema_version: "+schemas.VersionCapabilityIgnore)
	} else {
		r.Word(v.Value, "schema_version", schemas.VersionCapabilityIgnore)
	}
	list, ok := fields["rules"]
	if !ok || list.Value.Kind != yaml.SequenceNode {
		r.Bad(doc, "rules is missing or no list", "a list of rules", "rules: []")
		return
	}
	if len(list.Value.Content) > maxRules {
		r.Bad(list.Value, fmt.Sprintf("%d rules", len(list.Value.Content)), fmt.Sprintf("at most %d", maxRules), "")
		return
	}
	seen := map[string]bool{}
	for _, n := range list.Value.Content {
		x := r.rule(n)
		if x.id != "" && seen[x.id] {
			r.Bad(n, "the id "+strict.Quote(x.id)+" is there twice", "each id once", "")
		}
		seen[x.id] = true
		g.dated = g.dated || x.expires != ""
		g.rules = append(g.rules, x)
	}
}

func (r *ignoreReader) rule(n *yaml.Node) (x ignoreRule) {
	fields := r.Object(n, "a rule", "id", "kind", "match", "reason", "expires")
	if fields == nil {
		return x
	}
	for _, key := range []string{"id", "kind", "match", "reason"} {
		if _, ok := fields[key]; !ok {
			r.Bad(n, key+" is missing", "a rule with id, kind, match and reason", "")
			return x
		}
	}
	if id, ok := r.Text(fields["id"].Value, "id"); ok {
		if x.id = id; !ruleID.MatchString(id) || len(id) > maxRuleID {
			r.Bad(fields["id"].Value, "id is "+strict.Quote(id), "at most 64 of A-Z a-z 0-9 . _ -, not beginning with a sign", "")
		}
	}
	x.kind, _ = r.Word(fields["kind"].Value, "kind", kindNames()...)
	if reason, ok := r.Text(fields["reason"].Value, "reason"); ok {
		if x.reason = reason; reason == "" {
			r.Bad(fields["reason"].Value, "reason is empty", "why these items are ignored", "")
		}
	}
	if f, ok := fields["expires"]; ok {
		at, err := time.Parse(day, f.Value.Value)
		if err != nil {
			r.Bad(f.Value, "expires is "+strict.Kind(f.Value), "the last day on which the rule ignores", "2027-01-31")
		}
		x.expires, x.expired = f.Value.Value, !r.now.Before(at.AddDate(0, 0, 1))
	}
	r.match(fields["match"].Value, &x)
	return x
}

func (r *ignoreReader) match(n *yaml.Node, x *ignoreRule) {
	ways := r.Object(n, "match", matchExact, matchGlob, matchPrefix, matchJQ)
	if ways == nil {
		return
	}
	if len(ways) != 1 {
		r.Bad(n, fmt.Sprintf("match has %d keys", len(ways)), "one of exact, glob, prefix and jq", "")
		return
	}
	for way, f := range ways {
		text, ok := r.Text(f.Value, way)
		if x.match, x.text = way, text; !ok {
			continue
		}
		switch {
		case text == "":
			r.Bad(f.Value, way+" is empty", "what the value of an item is compared with", "")
		case way == matchGlob:
			x.glob = globPattern(text)
		case way == matchJQ:
			p, err := jq.NewProgram(text, jq.Form{Shape: jq.Flat(keysOfItem)})
			if err != nil {
				r.Bad(f.Value, "jq: "+err.Error(), "a program over kind, group, value and how with one boolean result", "")
			}
			x.program, x.left = p, maxProgram
		}
	}
}

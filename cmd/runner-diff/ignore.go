package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// ignore is a file of rules.
type ignore struct {
	file   string
	digest string
	rules  []ignoreRule
	from   string // where the time is from
	day    string // of that time
	dated  bool   // a rule has a date
}

// ignoreRule ignores items.
type ignoreRule struct {
	id, kind, reason string
	expires          string // a day, or ""
	expired          bool
	match            string // one of the ways
	text             string
	glob             *regexp.Regexp
	program          *jq.Program
	left             time.Duration // that the program may still take
	ignored          uint64
}

// Ways to match a value.
const (
	matchExact  = "exact"
	matchGlob   = "glob"
	matchPrefix = "prefix"
	matchJQ     = "jq"
)

// anyKind is the kind of a rule for items of all kinds.
const anyKind = "any"

// Bounds of a program: of one item, and of all.
const (
	maxAsk     = 2 * time.Second
	maxProgram = 20 * time.Second
)

type (
	// ignoreReport is what the report says of the rules.
	ignoreReport struct {
		File   string       `json:"file"`
		Digest string       `json:"sha256"`
		Judged *judgedAt    `json:"expiry_judged,omitempty"`
		Rules  []ruleReport `json:"rules"`
	}
	judgedAt struct {
		Day  string `json:"day"`
		From string `json:"from"`
	}
	ruleReport struct {
		ID      string `json:"id"`
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Expires string `json:"expires,omitempty"`
		State   string `json:"state"` // used, unused or expired
		Ignored uint64 `json:"ignored"`
	}
)

// States of rules.
const (
	ruleUsed    = "used"
	ruleUnused  = "unused"
	ruleExpired = "expired"
)

func (r *ignoreRule) state() string {
	switch {
	case r.expired:
		return ruleExpired
	case r.ignored == 0:
		return ruleUnused
	}
	return ruleUsed
}

// of is the id of the first rule that ignores an item, or "".
func (g *ignore) of(ctx context.Context, k *key, group string) (string, error) {
	if g == nil {
		return "", nil
	}
	for i := range g.rules {
		r := &g.rules[i]
		if r.expired || r.kind != anyKind && r.kind != k.name() {
			continue
		}
		is, err := r.matches(ctx, k, group)
		if err != nil {
			return "", tool.Failf(tool.ExitInput, "%s: rule %s: %w", g.file, r.id, err)
		}
		if is {
			r.ignored++
			return r.id, nil
		}
	}
	return "", nil
}

func (r *ignoreRule) matches(ctx context.Context, k *key, group string) (bool, error) {
	switch r.match {
	case matchExact:
		return k.value == r.text, nil
	case matchPrefix:
		return strings.HasPrefix(k.value, r.text), nil
	case matchGlob:
		return r.glob.MatchString(k.value), nil
	}
	if r.left <= 0 {
		return false, fmt.Errorf("jq: %w: more than %s for all items", jq.ErrTime, maxProgram)
	}
	input, err := schemas.Marshal(map[string]string{"kind": k.name(), "group": group, "value": k.value, "how": k.how})
	if err != nil {
		return false, err
	}
	start := time.Now()
	a, err := r.program.Ask(ctx, input, true, min(maxAsk, r.left))
	r.left -= time.Since(start)
	switch {
	case err != nil:
		return false, fmt.Errorf("jq: %w", err)
	case a.Fault != "":
		return false, fmt.Errorf("jq: %s", verdict.Printable(a.Fault, maxShownName))
	case a.Count > 1 || a.Count == 1 && a.Kind != "boolean":
		return false, fmt.Errorf("jq: its result is of the type %s, expected one boolean, or nothing", a.Kind)
	}
	return a.Holds(), nil
}

// keysOfItem are the keys of what a program gets.
var keysOfItem = []string{"kind", "group", "value", "how"}

// close ends the programs.
func (g *ignore) close() {
	if g == nil {
		return
	}
	for i := range g.rules {
		if p := g.rules[i].program; p != nil {
			p.Close()
		}
	}
}

func (g *ignore) report() *ignoreReport {
	if g == nil {
		return nil
	}
	r := &ignoreReport{File: g.file, Digest: g.digest, Rules: []ruleReport{}}
	if g.dated {
		r.Judged = &judgedAt{g.day, g.from}
	}
	for i := range g.rules {
		x := &g.rules[i]
		r.Rules = append(r.Rules, ruleReport{x.id, x.kind, x.reason, x.expires, x.state(), x.ignored})
	}
	return r
}

// text says which rules ignored, which did not, and which are over.
func (g *ignore) text(b *strings.Builder) {
	if g == nil {
		return
	}
	b.WriteString("\n")
	for i := range g.rules {
		r := &g.rules[i]
		id := verdict.Printable(r.id, maxShownName)
		switch r.state() {
		case ruleExpired:
			fmt.Fprintf(b, "rule %s expired on %s and ignores nothing (today is %s, by %s)\n", id, r.expires, g.day, g.from)
		case ruleUnused:
			fmt.Fprintf(b, "rule %s is unused\n", id)
		default:
			fmt.Fprintf(b, "rule %s ignored %d: %s\n", id, r.ignored, verdict.Printable(r.reason, maxShownName))
		}
	}
}

// globPattern makes a pattern of a glob: * and ? stay within a folder, ** goes through all.
func globPattern(glob string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for i := 0; i < len(glob); i++ {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`.*`)
			i++
		case glob[i] == '*':
			b.WriteString(`[^/]*`)
		case glob[i] == '?':
			b.WriteString(`[^/]`)
		default:
			end := i + 1
			for end < len(glob) && glob[end] != '*' && glob[end] != '?' {
				end++
			}
			b.WriteString(regexp.QuoteMeta(glob[i:end]))
			i = end - 1
		}
	}
	return regexp.MustCompile(b.String() + `$`)
}

// kindNames are the kinds that a rule can have.
func kindNames() []string {
	names := []string{anyKind}
	for i := range schemas.CapabilityKinds {
		names = append(names, schemas.CapabilityKinds[i].Name)
	}
	return slices.Clip(names)
}

// Package limits has the table of what each mechanism for file rules cannot stop. It is
// data in one file: the checks compare with it, and the table of schemas/LIMITS.md is made of it.
package limits

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outcomes of an attempt to get around the rules.
const (
	Refused = "refused" // the record must say so
	Stopped = "stopped" // a step before failed, that needs none of what the rules deny
	Through = "through"
)

// Table is the content of the file.
type Table struct {
	Mechanisms []Mechanism `json:"mechanisms"` // in the order in which they are tried
	Starts     []Start     `json:"starts"`
	Attempts   []Attempt   `json:"attempts"`
}

// Mechanism is one, with the form of policy under which the attempts are made: the one of
// the workload bypass that asks the most of it.
type Mechanism struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Policy string `json:"policy"`
}

// Start is a kind of rule that some mechanisms cannot enforce: a run does not start.
type Start struct {
	Rules     string   `json:"rules"`
	Policy    string   `json:"policy"` // of the workload, for the attempts
	Attempts  []string `json:"attempts"`
	RefusedBy []string `json:"refused_by"`
}

// Attempt is one way around the rules.
type Attempt struct {
	Name string `json:"name"`
	Op   string `json:"op"`
	// Passes has the mechanisms under which it gets through, and Limit says why it does.
	Passes []string `json:"passes,omitempty"`
	Limit  string   `json:"limit,omitempty"`
	// Silent has the mechanisms under which it is refused without a line: the refusal cannot
	// be told from another error, or its call is not recorded.
	Silent []string `json:"silent,omitempty"`
	// Without has the mechanisms that do not start with the rule that it needs.
	Without []string `json:"without,omitempty"`
}

//go:embed limits.json
var file []byte

// Read parses the file.
func Read() (t Table, err error) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, fmt.Errorf("limits.json: %w", err)
	}
	for _, a := range t.Attempts {
		if (len(a.Passes)+len(a.Silent) > 0) != (a.Limit != "") {
			return t, fmt.Errorf("limits.json: %s: what passes or is silent needs a limit, and only that", a.Name)
		}
	}
	return t, nil
}

// Lookup finds a mechanism.
func (t Table) Lookup(name string) (Mechanism, bool) {
	i := slices.IndexFunc(t.Mechanisms, func(m Mechanism) bool { return m.Name == name })
	if i < 0 {
		return Mechanism{}, false
	}
	return t.Mechanisms[i], true
}

// Of are the names of the attempts that are made under a mechanism.
func (t Table) Of(mechanism string) (names []string) {
	for _, a := range t.Attempts {
		if !slices.Contains(a.Without, mechanism) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Passes reports whether an attempt gets through under a mechanism.
func (t Table) Passes(attempt, mechanism string) bool {
	return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Name == attempt && slices.Contains(a.Passes, mechanism) })
}

// Silent reports whether an attempt is refused without a line under a mechanism.
func (t Table) Silent(attempt, mechanism string) bool {
	return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Name == attempt && slices.Contains(a.Silent, mechanism) })
}

// Markdown is the table of schemas/LIMITS.md.
func (t Table) Markdown() string {
	var b strings.Builder
	row := func(what string, cell func(m Mechanism) string) {
		b.WriteString("| " + what)
		for _, m := range t.Mechanisms {
			b.WriteString(" | " + cell(m))
		}
		b.WriteString(" |\n")
	}
	row("", func(m Mechanism) string { return m.Title })
	b.WriteString("|---" + strings.Repeat("|---", len(t.Mechanisms)) + "|\n")
	for _, s := range t.Starts {
		row(s.Rules, func(m Mechanism) string {
			if slices.Contains(s.RefusedBy, m.Name) {
				return "does not start"
			}
			return "enforced"
		})
	}
	for _, a := range t.limits() {
		row(a.Limit, func(m Mechanism) string {
			switch {
			case slices.Contains(a.Passes, m.Name):
				return "**gets through**"
			case slices.Contains(a.Silent, m.Name):
				return "stopped, no line"
			}
			return "stopped"
		})
	}
	return b.String()
}

// limits are the attempts that get through somewhere, those of one limit as one.
func (t Table) limits() (all []Attempt) {
	for _, a := range t.Attempts {
		i := slices.IndexFunc(all, func(o Attempt) bool { return o.Limit == a.Limit })
		switch {
		case a.Limit == "":
		case i < 0:
			a.Passes, a.Silent = slices.Clone(a.Passes), slices.Clone(a.Silent)
			all = append(all, a)
		default:
			all[i].Passes = append(all[i].Passes, a.Passes...)
			all[i].Silent = append(all[i].Silent, a.Silent...)
		}
	}
	return all
}

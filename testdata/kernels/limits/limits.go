// Package limits has the table of what each mechanism for file rules cannot stop. It is
// data in one file: the checks compare with it, and the table of README.md is made of it.
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
	Refused = "refused"
	Through = "through"
	Cannot  = "cannot" // the machine cannot make the attempt
)

// Mechanisms are all mechanisms, in the order in which they are tried.
var Mechanisms = [...]string{"lsm", "fanotify", "landlock"}

// Table is the content of the file.
type Table struct {
	// Refuses has the operations of which a mechanism enforces no rule: a run with such a
	// rule does not start under it.
	Refuses map[string][]string `json:"refuses"`
	Rows    []Row               `json:"attempts"`
}

// Row is one attempt.
type Row struct {
	Attempt string `json:"attempt"`
	Op      string `json:"op"`
	// Passes has the mechanisms under which the attempt gets through.
	Passes []string `json:"passes,omitempty"`
	Limit  string   `json:"limit,omitempty"` // why, for README.md
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
	for _, r := range t.Rows {
		if (len(r.Passes) > 0) != (r.Limit != "") {
			return t, fmt.Errorf("limits.json: %s: what passes needs a limit, and only that", r.Attempt)
		}
	}
	return t, nil
}

// Attempts are those that are made under a mechanism.
func (t Table) Attempts(mechanism string) (names []string) {
	for _, r := range t.Rows {
		if !slices.Contains(t.Refuses[mechanism], r.Op) {
			names = append(names, r.Attempt)
		}
	}
	return names
}

// Outcome is what an attempt must come to under a mechanism.
func (t Table) Outcome(attempt, mechanism string) string {
	for _, r := range t.Rows {
		if r.Attempt == attempt && slices.Contains(r.Passes, mechanism) {
			return Through
		}
	}
	return Refused
}

// Markdown is the table of README.md.
func (t Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| what a program may try | LSM | fanotify | Landlock |\n|---|---|---|---|\n")
	row := func(what string, cell func(mechanism string) string) {
		b.WriteString("| " + what)
		for _, m := range Mechanisms {
			b.WriteString(" | " + cell(m))
		}
		b.WriteString(" |\n")
	}
	for _, op := range t.ops() {
		row("rules on "+op, func(m string) string {
			if slices.Contains(t.Refuses[m], op) {
				return "refused at the start"
			}
			return "enforced"
		})
	}
	for _, limit := range t.limits() {
		row(limit.Limit, func(m string) string {
			switch {
			case !slices.Contains(limit.Passes, m) && slices.Contains(t.Refuses[m], limit.Op):
				return "–"
			case slices.Contains(limit.Passes, m):
				return "**gets through**"
			}
			return "stopped"
		})
	}
	return b.String()
}

func (t Table) ops() (ops []string) {
	for _, r := range t.Rows {
		if !slices.Contains(ops, r.Op) {
			ops = append(ops, r.Op)
		}
	}
	return ops
}

// limits are the rows that get through somewhere, those of one limit as one.
func (t Table) limits() (rows []Row) {
	for _, r := range t.Rows {
		i := slices.IndexFunc(rows, func(o Row) bool { return o.Limit == r.Limit })
		switch {
		case r.Limit == "":
		case i < 0:
			r.Passes = slices.Clone(r.Passes)
			rows = append(rows, r)
		default:
			rows[i].Passes = append(rows[i].Passes, r.Passes...)
		}
	}
	return rows
}

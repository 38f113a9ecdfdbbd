package confine

import (
	"fmt"
	"path"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Region is a path with all below it up to where other regions begin. The rules decide
// alike about everything in it.
type Region struct {
	Path  string // as bytes, without symbolic links
	Place Place
	Deny  map[string]bool   // operation → refused
	Rule  map[string]uint32 // operation → number of the rule that decided
	Above *Region           // nil for "/"
	Log   bool              // it is a log of the run, which the command may write to by an automatic rule
}

// Place is what is at a region's path.
type Place int

// Places.
const (
	Absent     Place = iota // nothing
	BehindLink              // the path leads through a symbolic link
	File
	Directory
)

// RuleError says why a mechanism cannot enforce a rule.
type RuleError struct {
	Rule   string // id, or which default
	Reason string
}

func (e *RuleError) Error() string { return e.Rule + " " + e.Reason }

// Regions cuts the file system tree along the rules' paths, "/" first, each region after
// those above it. look says what is at a path.
func Regions(rules *schemas.FileRules, look func(string) (Place, error)) ([]*Region, error) {
	paths, logs := []string{"/"}, map[string]bool{}
	for i := range rules.Rules {
		b, err := schemas.Untext(rules.Rules[i].Path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, string(b))
		logs[string(b)] = logs[string(b)] || rules.Rules[i].Automatic()
	}
	slices.Sort(paths)
	var all []*Region
	for _, p := range slices.Compact(paths) {
		r := &Region{Path: p, Log: logs[p], Deny: map[string]bool{}, Rule: map[string]uint32{}}
		for _, op := range schemas.RuleOps {
			r.Rule[op], r.Deny[op] = rules.Decide([]byte(p), op)
		}
		r.Above = regionOf(all, path.Dir(p))
		var err error
		if r.Place, err = look(p); err != nil {
			return nil, fmt.Errorf("looking at %s: %w", schemas.Text(p), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// regionOf is the region of a path: the last in order whose path is that one or above it.
func regionOf(all []*Region, p string) (found *Region) {
	for _, r := range all {
		if schemas.Holds(r.Path, p) {
			found = r
		}
	}
	return found
}

// differs is an operation about which the region and the one above it do not agree.
func (r *Region) differs() (op string, yes bool) {
	if r.Above == nil {
		return "", false
	}
	for _, op := range schemas.RuleOps {
		if r.Deny[op] != r.Above.Deny[op] {
			return op, true
		}
	}
	return "", false
}

// refuse is the error of a region that a mechanism cannot hold.
func (r *Region) refuse(rules *schemas.FileRules, op, format string, a ...any) error {
	return &RuleError{RuleName(rules, r.Rule[op], op), fmt.Sprintf("("+schemas.Text(r.Path)+") "+format, a...)}
}

// RuleName names a rule in a message.
func RuleName(rules *schemas.FileRules, number uint32, op string) string {
	for i := range rules.Rules {
		if r := &rules.Rules[i]; r.Number == number && !r.Automatic() {
			return "rule " + r.ID
		}
	}
	if op == schemas.HookExec {
		return "the default of exec"
	}
	return "the default of files"
}

// held reports whether the region is there to be held by a mechanism that works on what
// exists. A path behind a link has a twin without links (policy.ResolveFiles).
func (r *Region) held(rules *schemas.FileRules) (bool, error) {
	switch r.Place {
	case Absent:
		if op, yes := r.differs(); yes {
			return false, r.refuse(rules, op, "has a path that does not exist, and this mechanism holds only what is there when the command starts: make it, or remove the rule")
		}
		return false, nil
	case BehindLink:
		return false, nil
	}
	return true, nil
}

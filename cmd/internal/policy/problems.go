package policy

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems are listed; the last line reports that there are more.
const maxProblems = 100

// Problem is one thing that is wrong with a policy file.
type Problem struct {
	File         string
	Line, Column int    // from 1; columns count characters
	What         string // what is wrong
	Expected     string // what would be right; may be empty
	Type         string // what to type; may be empty
}

// String is the problem on one line.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.What)
	if p.Expected != "" {
		s += "; expected " + p.Expected
	}
	if p.Type != "" {
		s += "; type " + p.Type
	}
	return s
}

// Problems lists everything that is wrong with a policy file, in the order of the file.
type Problems struct {
	List []Problem
	Cut  bool // there were more
}

// Error is one line for each problem.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for _, x := range p.List {
		lines = append(lines, x.String())
	}
	if p.Cut {
		lines = append(lines, fmt.Sprintf("%s: more than %d problems", p.List[0].File, maxProblems))
	}
	return strings.Join(lines, "\n")
}

func (r *reader) problems() *Problems {
	list := slices.Clone(r.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	p := &Problems{List: list}
	if len(list) > maxProblems {
		p.List, p.Cut = list[:maxProblems], true
	}
	return p
}

// nearest is the candidate that was probably meant, or "".
func nearest(word string, candidates []string) string {
	best, at := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), c); d < at {
			best, at = c, d
		}
	}
	return best
}

// distance is the number of letters to add, drop or change; words over 64 bytes are
// not misspelt keys.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// quote shows a text of the file, in one short line.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return fmt.Sprintf("%q", s)
}

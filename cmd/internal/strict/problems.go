package strict

import (
	"fmt"
	"slices"
	"strings"
)

// MaxProblems are listed; the last line reports that there are more.
const MaxProblems = 100

// Problem is one thing that is wrong with a file.
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

// Problems lists everything that is wrong with a file, in the order of the file.
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
		lines = append(lines, fmt.Sprintf("%s: more than %d problems", p.List[0].File, MaxProblems))
	}
	return strings.Join(lines, "\n")
}

// Problems are those of the file so far, or nil.
func (r *Reader) Problems() *Problems {
	if len(r.list) == 0 {
		return nil
	}
	list := slices.Clone(r.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	p := &Problems{List: list}
	if len(list) > MaxProblems {
		p.List, p.Cut = list[:MaxProblems], true
	}
	return p
}

// Quote shows a text of the file, in one short line.
func Quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return fmt.Sprintf("%q", s)
}

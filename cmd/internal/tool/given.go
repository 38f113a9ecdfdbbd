package tool

import "github.com/urfave/cli/v2"

// Flags are the flags of a call, as the library has them.
type Flags struct {
	*cli.Context
	given map[string]bool // by all of their names; nil before the first question
}

// NewFlags makes the flags of a call of what the library has read.
func NewFlags(c *cli.Context) *Flags { return &Flags{Context: c} }

// IsSet reports whether a flag was given. The library's own way takes the names of all flags apart, by a pattern, at each question.
func (f *Flags) IsSet(name string) bool {
	if f.given == nil {
		f.given = map[string]bool{}
		for _, n := range f.LocalFlagNames() {
			f.given[n] = true
		}
	}
	return f.given[name]
}

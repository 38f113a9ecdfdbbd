package policy

import "fmt"

// doubts are what the rules say that they hardly mean.
func (p *Policy) doubts(file string) (list []string) {
	warn := func(r *rule, format string, a ...any) {
		list = append(list, fmt.Sprintf("%s:%d: rule %s: ", file, r.line, r.id)+fmt.Sprintf(format, a...))
	}
	for i := range p.rules {
		r := &p.rules[i]
		if r.open {
			warn(r, "only: false lets every other argument pass, also other names of files; also: [$.NAME] names those that may be there")
		}
	}
	return list
}

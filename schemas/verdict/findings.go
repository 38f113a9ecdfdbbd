package verdict

import (
	"bufio"
	"fmt"
	"io"
)

// maxShownMember is the length of a member's name in a finding, in characters.
const maxShownMember = 400

// WriteFindings writes what a report says against its archive, one finding a line, as every
// tool prints it. program is the tool that prints.
func WriteFindings(to io.Writer, program string, r *Report) error {
	w := bufio.NewWriter(to)
	name := Printable(r.Archive, maxShownCommand)
	for _, f := range r.Findings {
		f.Member = Printable(f.Member, maxShownMember)
		fmt.Fprintf(w, "%s: %s: %s\n", program, name, f)
	}
	if more := r.FindingCount - len(r.Findings); more > 0 {
		fmt.Fprintf(w, "%s: %s: %d more findings of these kinds\n", program, name, more)
	}
	if r.FindingCount > 0 && r.Valid {
		fmt.Fprintf(w, "%s: %s: valid, but not as demanded\n", program, name)
	}
	return w.Flush()
}

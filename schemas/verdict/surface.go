package verdict

import (
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// surfaceLines is how many values of the surface WriteSurface writes.
const surfaceLines = 10

// surfaceShown are the sets in the order in which people ask for them: paths come last, because
// they are many. word names one value.
var surfaceShown = [...]struct {
	set  int
	word string
}{
	{schemas.SetProcessExecs, "executed"},
	{schemas.SetNetworkEndpoints, "endpoint"},
	{schemas.SetMCPTools, "tool"},
	{schemas.SetPolicyDecisions, "decision"},
	{schemas.SetFilesystemPaths, "path"},
}

// WriteSurface writes the first values of the surface, at most ten lines of them: an even
// share of each set, where what a set does not need is for the others. first has the first
// values of each set.
func WriteSurface(w io.Writer, r *Report, first map[string][]string) {
	shares := surfaceShares(r.Record.Surface)
	for i, s := range surfaceShown {
		name := schemas.SurfaceSets[s.set]
		all, values := r.Record.Surface[name], first[name]
		if all > shares[i] {
			values = values[:min(len(values), int(shares[i])-1)] // the last line counts the others
		}
		for _, value := range values {
			fmt.Fprintf(w, "%-9s %s\n", s.word, Printable(value, maxShownEffect))
		}
		if more := all - uint64(len(values)); more > 0 {
			fmt.Fprintf(w, "%-9s … and %d more\n", s.word, more)
		}
	}
}

// surfaceShares deals the lines out, one at a time to each set that has more values.
func surfaceShares(counts map[string]uint64) (shares [len(surfaceShown)]uint64) {
	for left, dealt := surfaceLines, true; dealt; {
		dealt = false
		for i, s := range surfaceShown {
			if left > 0 && shares[i] < counts[schemas.SurfaceSets[s.set]] {
				shares[i]++
				left--
				dealt = true
			}
		}
	}
	return shares
}

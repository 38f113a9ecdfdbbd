package verdict

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// The text of a surface says how many values of a set it leaves out, and which sets are
// empty.
func TestSurfaceText(t *testing.T) {
	first, other := schemas.SurfaceSets[0], schemas.SurfaceSets[1]
	r := &Report{Record: &Record{Surface: map[string]uint64{first: 23}},
		Explanation: &Explanation{Surface: map[string][]string{first: {"/a\n", "/b"}, other: {}}}}
	var b strings.Builder
	writeSurface(&b, r)
	for _, want := range []string{"  23 " + setWords(first) + "s:\n", "    /a\\n\n    /b\n    … and 21 more\n", "  no " + setWords(other) + "s\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	b.Reset()
	r.Explanation.Surface = nil // of an older report
	if writeSurface(&b, r); b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
}

package verdict

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// At most ten lines, none for an empty set, and one that counts what is left out.
func TestSurfaceLines(t *testing.T) {
	many := make([]string, MaxSurfaceValues)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for _, c := range []struct {
		paths, endpoints, execs uint64
		lines                   int
	}{{0, 0, 0, 0}, {3, 1, 2, 6}, {4, 1, 4, 9}, {1 << 40, 1, 4, 10}, {1000, 1000, 1000, 10}} {
		r := &Report{Record: &Record{Surface: map[string]uint64{}}}
		first := map[string][]string{}
		for set, n := range map[int]uint64{schemas.SetFilesystemPaths: c.paths, schemas.SetNetworkEndpoints: c.endpoints, schemas.SetProcessExecs: c.execs} {
			name := schemas.SurfaceSets[set]
			r.Record.Surface[name], first[name] = n, many[:min(n, MaxSurfaceValues)]
		}
		var b strings.Builder
		WriteSurface(&b, r, first)
		if got := strings.Count(b.String(), "\n"); got != c.lines || strings.Contains(b.String(), "more") != (c.paths > 4) {
			t.Errorf("%+v: %d lines\n%s", c, got, b.String())
		}
	}
}

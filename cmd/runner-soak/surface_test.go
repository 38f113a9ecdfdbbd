package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/schemas"
)

// TestSurfaceFolds: what has another name in each run is one capability, and is in a run once.
func TestSurfaceFolds(t *testing.T) {
	var s seen
	for run := 1; run <= 2; run++ {
		v := surface{folds: fold.Builtin()}
		for _, value := range []string{fmt.Sprintf("/tmp/go-build%d/x", run), fmt.Sprintf("/tmp/go-build%d/x", run+10), fmt.Sprintf("/tmp/%08d", run), "/etc/passwd"} {
			v.take(0, []byte(value))
		}
		v.take(slices.Index(schemas.SurfaceSets[:], "mcp_tools"), []byte("/tmp/tmp.aaaaaa"))
		for _, e := range v.sorted() {
			s.add(run, e.set, e.value)
		}
	}
	d := s.drift([]Run{{Index: 1, Status: statusPass}, {Index: 2, Status: statusFail}})
	var got []string
	for _, c := range d.Capabilities {
		got = append(got, c.Value)
	}
	if want := []string{"/etc/passwd", "/tmp/<temp>", "/tmp/go-build<temp>/x", "/tmp/tmp.aaaaaa"}; d.Changing != 0 || !slices.Equal(got, want) {
		t.Errorf("%d change, %q", d.Changing, got)
	}
}

// TestSurfaceBounds: of more values than are kept the first ones are, and it is seen that there were more.
func TestSurfaceBounds(t *testing.T) {
	v := surface{folds: fold.Builtin()}
	for i := range 5 * maxSurface {
		v.take(0, fmt.Appendf(nil, "/v/%07d", (i*7919)%(5*maxSurface)))
	}
	list := v.sorted()
	if len(list) != maxSurface || list[maxSurface-1].value != fmt.Sprintf("/v/%07d", maxSurface-1) {
		t.Errorf("%d values, the last is %v", len(list), list[len(list)-1])
	}
	var s seen
	for _, e := range list {
		s.add(1, e.set, e.value)
	}
	if !s.drift([]Run{{Index: 1, Status: statusPass}}).Cut {
		t.Error("nothing says that values were left out")
	}
}

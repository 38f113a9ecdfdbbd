//go:build linux && (amd64 || arm64)

package bpf

import "testing"

// TestMissedUnmarked: what is skipped at io_uring matters only to a run that uses it, and a
// signal to every run.
func TestMissedUnmarked(t *testing.T) {
	for name, c := range map[string]struct {
		rings   uint64
		skipped map[string]uint64
		missed  uint64
	}{
		"others' rings":   {0, map[string]uint64{"submit_req": 4, "complete_cqe": 2, "exec": 3}, 0},
		"own rings":       {1, map[string]uint64{"submit_req": 4, "complete_cqe": 2, "exec": 3}, 6},
		"nothing skipped": {1, map[string]uint64{"submit_req": 0, "complete_cqe": 0, "sys_exit": 5}, 0},
		"no copies":       {1, nil, 0},
		"signals":         {0, map[string]uint64{"signal": 2, "submit_req": 1}, 2},
	} {
		st := Stats{rings: c.rings, SkippedByAll: c.skipped, Missed: map[string]uint64{}}
		st.missedUnmarked()
		if st.Lost != c.missed || st.Missed["submit_req"]+st.Missed["complete_cqe"]+st.Missed["signal"] != c.missed || len(st.Missed) > 2 {
			t.Errorf("%s: %d lost, %v", name, st.Lost, st.Missed)
		}
	}
}

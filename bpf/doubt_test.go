//go:build linux && (amd64 || arm64)

package bpf

import "testing"

// TestInDoubt: what marks cannot rule out is missed, but no more than all copies of a probe
// were skipped; and what is skipped at io_uring matters only to a run that has a ring.
func TestInDoubt(t *testing.T) {
	type doubts = struct{ enter, exit, both uint64 }
	for name, c := range map[string]struct {
		rings   uint64
		doubts  doubts
		skipped map[string]uint64
		missed  map[string]uint64
	}{
		"nothing skipped":                   {3, doubts{9, 9, 9}, map[string]uint64{"sys_enter": 0, "sys_exit": 0, "submit_req": 0}, nil},
		"no doubt":                          {0, doubts{}, map[string]uint64{"sys_enter": 7, "sys_exit": 7, "exec": 3}, nil},
		"entries skipped":                   {0, doubts{5, 9, 9}, map[string]uint64{"sys_enter": 2, "sys_exit": 0}, map[string]uint64{"sys_exit": 2}},
		"ends skipped":                      {0, doubts{5, 1, 9}, map[string]uint64{"sys_enter": 0, "sys_exit": 4}, map[string]uint64{"sys_exit": 1}},
		"both skipped":                      {0, doubts{0, 0, 9}, map[string]uint64{"sys_enter": 2, "sys_exit": 4}, map[string]uint64{"sys_exit": 2}},
		"others' rings":                     {0, doubts{}, map[string]uint64{"submit_req": 4, "complete_cqe": 2}, nil},
		"rings of the scope":                {1, doubts{}, map[string]uint64{"submit_req": 4, "complete_cqe": 2}, map[string]uint64{"submit_req": 4, "complete_cqe": 2}},
		"rings of the scope, no own copies": {1, doubts{}, nil, nil},
	} {
		st := Stats{rings: c.rings, doubts: c.doubts, SkippedByAll: c.skipped, Missed: map[string]uint64{}}
		st.inDoubt()
		var sum uint64
		for probe, n := range c.missed {
			sum += n
			if st.Missed[probe] != n {
				t.Errorf("%s: %s missed %d, want %d", name, probe, st.Missed[probe], n)
			}
		}
		if st.Lost != sum || len(st.Missed) != len(c.missed) {
			t.Errorf("%s: %d lost, %v", name, st.Lost, st.Missed)
		}
	}
}

package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestInterruptedCalls: the outcome of an interrupted call is that of the next record of its
// thread, if that is one, and nothing waits for longer.
func TestInterruptedCalls(t *testing.T) {
	const told, waits = true, true
	type rec struct {
		tid, old uint32
		op       string
		waits    bool
		told     bool
	}
	for _, c := range []struct {
		name     string
		recs     []rec
		out      []string // in the order in which they are written; "!" was told EINTR
		outcomes uint64
	}{
		{"told", []rec{{1, 0, "open", waits, false}, {2, 0, "creat", false, false}, {1, 0, "open", false, told}}, []string{"creat", "open!"}, 1},
		{"starts over", []rec{{1, 0, "open", waits, false}, {1, 0, "open", false, false}}, []string{"open", "open"}, 0},
		{"starts over, then told", []rec{{1, 0, "open", waits, false}, {1, 0, "open", waits, false}, {1, 0, "open", false, told}}, []string{"open", "open!"}, 1},
		{"of another operation", []rec{{1, 0, "open", waits, false}, {1, 0, "sendto", false, told}}, []string{"open"}, 1},
		{"too late", []rec{{1, 0, "open", waits, false}, {1, 0, "creat", false, false}, {1, 0, "open", false, told}}, []string{"open", "creat"}, 1},
		{"another thread's", []rec{{1, 0, "open", waits, false}, {2, 0, "open", false, told}}, []string{"open"}, 1},
		{"killed", []rec{{2, 0, "open", waits, false}, {1, 0, "open", waits, false}}, []string{"open", "open"}, 0},
		{"exec of another thread", []rec{{7, 0, "execve", waits, false}, {5, 7, "exec", false, false}}, []string{"execve", "exec"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out []string
			v := newEvents("run", newLines("run", newSpool(0)))
			for _, r := range c.recs {
				e := schemas.RawEvent{Op: r.op, PID: r.tid, TID: r.tid}
				if r.old != 0 {
					e.OldTID, e.Has = r.old, schemas.HasOldTID
				}
				testkit.Must(t, v.event(&e, bpf.Decoded{Interrupted: r.waits, EINTR: r.told}))
			}
			testkit.Must(t, v.settleAll())
			parser := schemas.NewRawParser("run")
			for line := range bytes.Lines(v.out.cur.b) {
				var e schemas.RawEvent
				testkit.Must(t, parser.Parse(bytes.TrimSpace(line), &e))
				out = append(out, e.Op+map[bool]string{true: "!"}[e.Has&schemas.HasRet != 0 && e.Ret == -4])
			}
			if !slices.Equal(out, c.out) || v.n.outcomes != c.outcomes || len(v.interrupted) != 0 {
				t.Errorf("written %v, %d outcomes", out, v.n.outcomes)
			}
		})
	}
}

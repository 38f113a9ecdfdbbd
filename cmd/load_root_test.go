//go:build linux

package cmd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// tally counts lines by marked file without holding the archive in memory.
func tally(t *testing.T, path, prefix string) (map[string]int, schemas.Health) {
	t.Helper()
	n := map[string]int{}
	var health schemas.Health
	value := []byte(`"value":"` + prefix)
	_, err := eachMember(path, func(name string, r io.Reader) error {
		switch name {
		case "observation-health.json":
			b, err := io.ReadAll(r)
			decode(t, b, &health)
			return err
		case "layers/kernel.ndjson":
			s := bufio.NewScanner(r)
			s.Buffer(nil, 1<<20)
			for s.Scan() {
				if i := bytes.Index(s.Bytes(), value); i >= 0 {
					rest := s.Bytes()[i+len(value):]
					n[string(rest[:bytes.IndexByte(rest, '"')])]++
				}
			}
			return s.Err()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, health
}

// TestLoad: four processes open 200,000 times each. The recorded opens and the counted
// drops add up to exactly this number.
func TestLoad(t *testing.T) {
	requireBPF(t)
	const processes, each = 4, 200_000
	dir := shortDir(t)
	m := measure(t, nil, tool("shapes"), "hammer", dir, fmt.Sprint(each), fmt.Sprint(processes))
	if m.code != 0 {
		t.Fatal(m.outcome)
	}
	n, health := tally(t, m.path, dir+"/M-hammer-")
	recorded := 0
	for _, c := range n {
		recorded += c
	}
	t.Logf("%d made, %d recorded, %d dropped", processes*each, recorded, health.RingbufDrops)
	accounted(t, processes*each-recorded, health)
	if health.RingbufDrops == 0 && health.KernelLayer != "complete" {
		t.Errorf("nothing was dropped, yet kernel_layer=%s: %q", health.KernelLayer, health.Notes)
	}
	if o := call(t, command(t, "runner-verify", m.path)); o.code != 0 {
		t.Error(o)
	}
}

// accounted: the opens that are not recorded are exactly the drops that the record counts
// for their operation, which nothing else in the workload uses.
func accounted(t *testing.T, lost int, health schemas.Health) {
	t.Helper()
	dropped := 0
	for _, note := range health.Notes {
		list, ok := strings.CutPrefix(note, "s2_drops: ")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(list) {
			if n, ok := strings.CutPrefix(f, "openat2="); ok {
				fmt.Sscan(n, &dropped)
			}
		}
	}
	if dropped != lost || lost > int(health.RingbufDrops) {
		t.Errorf("%d opens are not recorded; counted as dropped: %d of them, %d in all", lost, dropped, health.RingbufDrops)
	}
}

// TestTinyRing: a ring buffer that is too small loses events, and the record says how many.
func TestTinyRing(t *testing.T) {
	requireBPF(t)
	const processes, each = 4, 50_000
	dir := shortDir(t)
	keep := dir + "/keep"
	var m *measured
	var n map[string]int
	var health schemas.Health
	for range 4 {
		os.RemoveAll(keep)
		m = measure(t, []string{"--ring-size", "4096", "--keep", keep}, tool("shapes"), "hammer", dir, fmt.Sprint(each), fmt.Sprint(processes))
		if m.code != 0 {
			t.Fatal(m.outcome)
		}
		if n, health = tally(t, m.path, dir+"/M-hammer-"); health.CgroupCorrelation != schemas.CorrelationFailed {
			break
		}
		// Another program moved a task while records of forks were lost: it cannot be ruled out that it was one of ours.
		t.Logf("again: %q", health.Notes)
	}
	recorded := 0
	for _, c := range n {
		recorded += c
	}
	lost := processes*each - recorded
	t.Logf("%d made, %d recorded, %d dropped", processes*each, recorded, health.RingbufDrops)
	if health.RingbufDrops == 0 || health.KernelLayer != "partial_ringbuf_drops" {
		t.Fatalf("a ring of 4096 bytes held everything? kernel_layer=%s drops=%d", health.KernelLayer, health.RingbufDrops)
	}
	accounted(t, lost, health)
	if !strings.Contains(strings.Join(health.Notes, "\n"), fmt.Sprintf("dropped=%d", health.RingbufDrops)) {
		t.Errorf("no note names the cause and the count: %q", health.Notes)
	}
	if o := call(t, command(t, "runner-verify", m.path)); o.code != 0 {
		t.Errorf("a good record of a partial observation must verify: %v", o)
	}
	if o := call(t, command(t, "runner-verify", "--require", "kernel=complete", m.path)); o.code != 1 {
		t.Errorf("but not as complete: %v", o)
	}
}

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/layertest"
)

// with adds lines of further layers after the SDK lines of a stream.
func (j joined) with(lines ...string) joined {
	j.sdk = append(slices.Clone(j.sdk), lines...)
	return j
}

// counted sets a counter in the last stage health.
func (j joined) counted(counter string, n int) joined {
	j.stages = slices.Clone(j.stages)
	j.stages[2] = strings.Replace(j.stages[2], `"surface_entries":7`, fmt.Sprintf(`%q:%d,"surface_entries":7`, counter, n), 1)
	return j
}

var times = []string{
	`{"schema":"assay.runner.time.v0","run_id":"run_01","seq":0,"type":"anchor","clock":"CLOCK_MONOTONIC","wall_clock":"CLOCK_REALTIME","wall_ns":1,"finished_ns":2}`,
	`{"schema":"assay.runner.time.v0","run_id":"run_01","seq":1,"type":"line","layer":"kernel","line":0,"source":"kernel","ns":3}`,
}

// TestTimes: the layer times becomes a member. The summary also has the identity that
// the same run has without this layer and its note.
func TestTimes(t *testing.T) {
	scratch(t)
	_, plain, _ := call(layered().build(t), "-o", "-")
	_, _, identity := unpack(t, []byte(plain))
	j := layered().with(times...).counted("times", 2)
	j.health = []string{strings.Replace(j.health[0], `"]}`, `","s7_times: lines=1"]}`, 1)}
	code, out, stderr := call(j.build(t), "-v", "-o", "-")
	if code != 0 {
		t.Fatal(stderr)
	}
	_, content, own := unpack(t, []byte(out))
	if got := string(content[schemas.MemberTimes]); got != strings.Join(times, "\n")+"\n" {
		t.Errorf("the member is %q", got)
	}
	m := regexp.MustCompile(`identity=sha256:([0-9a-f]{64}) identity_without_times=sha256:([0-9a-f]{64}) `).FindStringSubmatch(stderr)
	if m == nil || m[1] != own || m[2] != identity || own == identity {
		t.Errorf("summary %q, expected %s and without times %s", stderr, own, identity)
	}
	for name, c := range map[string]struct {
		j    joined
		want string
	}{
		"times before the SDK lines": {func() joined {
			j := layered()
			j.policy = append(slices.Clone(j.policy), times...)
			return j.counted("times", 2)
		}(), " record after "},
		"a time with a wrong seq":      {layered().with(times[0], strings.Replace(times[1], `"seq":1`, `"seq":2`, 1)).counted("times", 2), "has seq 2, expected 1"},
		"a time not in canonical form": {layered().with(times[0], strings.Replace(times[1], `"layer":"kernel","line":0`, `"line":0,"layer":"kernel"`, 1)).counted("times", 2), "canonical"},
		"times that were lost":         {layered().with(times[0]).counted("times", 2), "counted 2 times, the stream has 1"},
	} {
		if code, _, stderr := call(c.j.build(t), "-o", "-"); code != 3 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %q, expected %q", name, code, stderr, c.want)
		}
	}
}

// TestAnyLayer: a row of the layer table is all that this stage needs of a layer.
func TestAnyLayer(t *testing.T) {
	layertest.Add(t)
	scratch(t)
	lines := []string{layertest.Line(testRun, 0, "a"), layertest.Line(testRun, 1, "b")}
	j := layered().with(lines...).counted(layertest.Counter, 2)
	code, out, stderr := call(j.build(t), "-o", "-")
	if code != 0 {
		t.Fatal(stderr)
	}
	names, content, _ := unpack(t, []byte(out))
	if string(content[layertest.Member]) != strings.Join(lines, "\n")+"\n" || !slices.Contains(names, layertest.Member) || len(names) != 9 || names[0] != bundle.ManifestName {
		t.Errorf("members %v, %q", names, content[layertest.Member])
	}
	if code, _, stderr := call(layered().with(lines[0], lines[0]).counted(layertest.Counter, 2).build(t), "-o", "-"); code != 3 || !strings.Contains(stderr, "has seq 0, expected 1") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Numbers that stand in the probes and in the loader are the same.
func TestNumbersOfTheProbes(t *testing.T) {
	header := func(name string) string {
		b, err := os.ReadFile(filepath.Join("probes", name))
		testkit.Must(t, err)
		return string(b)
	}
	number := func(text, pattern string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("nothing in the probes is like %s", pattern)
		}
		n, err := strconv.Atoi(m[1])
		testkit.Must(t, err)
		return n
	}
	record, request := header("record.h"), header("uringrequest.h")
	_, list, _ := strings.Cut(record, "enum scratch_index {")
	list, _, _ = strings.Cut(list, "SCRATCHES")
	before, _, _ := strings.Cut(list, "SCRATCH_ENTER")
	for what, n := range map[string][2]int{
		"scratch records":        {strings.Count(list, "SCRATCH_"), scratches},
		"slots of counters":      {number(record, `SLOTS = (\d+)`), slots},
		"copies of a probe":      {number(record, `PROBE_COPIES (\d+)`), probeCopies},
		"copies of a small one":  {number(record, `SMALL_COPIES (\d+)`), smallCopies},
		"records of many copies": {strings.Count(before, "SCRATCH_"), scratchesOfMany},
		"a request that is told": {1 << number(request, `STATE_TOLD = 1 << (\d+)`), stateTold},
		"one that is cancelled":  {1 << number(request, `STATE_CANCELLED = 1 << (\d+)`), stateCancelled},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d in the probes, %d in the loader", what, n[0], n[1])
		}
	}
	spec, err := objects.LoadUring()
	testkit.Must(t, err)
	if n := spec.Maps[objects.UringMapBlank].MaxEntries; n != 2*smallCopies {
		t.Errorf("memory for %d requests, expected %d", n, 2*smallCopies)
	}
}

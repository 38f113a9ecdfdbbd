package schemas

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The specification's table of event types is what SetOf and KindOf compute.
func TestEventTableIsTheSpecified(t *testing.T) {
	b, err := os.ReadFile("ARCHIVE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "<!-- table: event-types -->")
	table, _, _ := strings.Cut(rest, "<!-- end -->")
	want := map[uint32]string{}
	ids := regexp.MustCompile(`\d+(?:–\d+)?`)
	for line := range strings.Lines(table) {
		cols := strings.Split(line, "|")
		if len(cols) < 6 {
			continue
		}
		set := strings.TrimSpace(cols[5])
		for _, m := range ids.FindAllString(cols[1], -1) {
			lo, hi, span := strings.Cut(m, "–")
			a, _ := strconv.Atoi(lo)
			z := a
			if span {
				z, _ = strconv.Atoi(hi)
			}
			for ; a <= z; a++ {
				want[uint32(a)] = set
			}
		}
		if kind := regexp.MustCompile("`([a-z_0-9]+)`").FindStringSubmatch(cols[2]); kind != nil {
			if id, err := strconv.Atoi(strings.TrimSpace(cols[1])); err == nil && KindOf(uint32(id)) != kind[1] {
				t.Errorf("KindOf(%d) = %s, the specification says %s", id, KindOf(uint32(id)), kind[1])
			}
		}
	}
	if len(want) < 30 {
		t.Fatalf("read only %d event types from the table", len(want))
	}
	for id := range uint32(400) {
		set := "none"
		if i := SetOf(id); i >= 0 {
			set = SurfaceSets[i]
		}
		w, ok := want[id]
		if !ok {
			w = "none"
		}
		if set != w {
			t.Errorf("SetOf(%d) is %s, the specification says %s", id, set, w)
		}
	}
}

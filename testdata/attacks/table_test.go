//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The table of README.md is made from the results. No row is a lie that is not named as open, and each
// attack was tried somewhere.
func TestTable(t *testing.T) {
	r, runs, err := readResults("results")
	testkit.Must(t, err)
	tried := map[string]bool{}
	for kernel, lines := range r {
		for name, l := range lines {
			tried[name] = tried[name] || l.Result != isNotHere
			if l.bad() {
				t.Errorf("%s, %s: %s, %s", kernel, name, l.Result, l.Detail)
			}
		}
	}
	for _, a := range attacks() {
		if !tried[a.name] {
			t.Errorf("%s has no result: make attack", a.name)
		}
	}
	for kernel, d := range runs {
		if d.Unexplained > 0 {
			t.Errorf("%s: %d differences from strace without a rule", kernel, d.Unexplained)
		}
	}
	text := string(testkit.Read(t, "README.md"))
	again := put(t, put(t, text, "attacks", r.sums()+"\n"+r.table()), "random programs", runs.text())
	if again == text {
		return
	}
	if !testkit.Update() {
		t.Error("the tables are not those of the results: go test ./testdata/attacks -update")
		return
	}
	testkit.Write(t, "README.md", []byte(again))
}

// put puts a table into its place.
func put(t *testing.T, text, name, table string) string {
	begin, end := "<!-- table: "+name+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("README.md has no place for the table of " + name)
	}
	return before + begin + table + end + after
}

// The names of attacks are different, and each has what the table needs.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] || strings.Trim(a.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-") != "" || len(a.name) > 50 {
			t.Errorf("the name %q", a.name)
		}
		if seen[a.name] = true; a.class == "" || a.what == "" || a.run == nil || a.judge == nil || a.flags != nil && !a.alone {
			t.Errorf("%s is not a whole row", a.name)
		}
	}
}

// A line that is there replaces an older one of the same attack, wherever the console began it.
func TestMerge(t *testing.T) {
	file := t.TempDir() + "/1.2.ndjson"
	all := attacks()
	one := func(i int, result string) string {
		return `{"check":"attack","attack":"` + all[i].name + `","result":"` + result + "\"}\n"
	}
	testkit.Must(t, merge(file, strings.NewReader(one(1, isExact)+one(0, isLie))))
	testkit.Must(t, merge(file, strings.NewReader("booted "+one(0, isExact)+"a line\n")))
	if got, want := string(testkit.Read(t, file)), one(0, isExact)+one(1, isExact); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

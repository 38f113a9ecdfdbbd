package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

const sent = `{"check":"a","result":"ok"}` + "\n" + `{"check":"b","result":"told","detail":"3 of 5"}` + "\n"

const ended = `{"end":true,"lines":2,"release":"6.1.0-56","version":"#1 SMP"}` + "\n"

func TestCollect(t *testing.T) {
	f := &fetched{kernel: kernel{Name: "6.1", Image: pack{"p", "6.1.1-1", zeros}}}
	for name, c := range map[string]struct {
		o    outcome
		want string // in the detail of the check of booting; empty is ok
	}{
		"all is well":   {outcome{results: []byte(sent + ended)}, ""},
		"no end":        {outcome{results: []byte(sent)}, "did not finish"},
		"nothing":       {outcome{}, "did not finish"},
		"a line lost":   {outcome{results: []byte(sent[strings.Index(sent, "\n")+1:] + ended)}, "1 results arrived"},
		"damaged line":  {outcome{results: []byte(`{"check":"a","res` + "\n" + ended)}, "damaged"},
		"unknown word":  {outcome{results: []byte(`{"check":"a","result":"fine"}` + "\n" + ended)}, "damaged"},
		"after the end": {outcome{results: []byte(sent + ended + sent)}, "after the end"},
		"panic":         {outcome{results: []byte(sent + ended), console: []byte("x\n[ 1.0] Kernel panic - not syncing\ny")}, "Kernel panic"},
		"warning":       {outcome{results: []byte(sent + ended), console: []byte("[ 1.0] WARNING: CPU: 0 PID: 1\n")}, "WARNING"},
		"QEMU failed":   {outcome{results: []byte(sent + ended), err: errors.New("exit status 1")}, "exit status 1"},
	} {
		r := collect(f, c.o)
		boot := r.Checks[0]
		if boot.Check != bootCheck || (boot.Result == guest.OK) != (c.want == "") || !strings.Contains(boot.Detail, c.want) {
			t.Errorf("%s: %+v", name, boot)
		}
	}
	if r := collect(f, outcome{results: []byte(sent + ended)}); r.Release != "6.1.0-56" || len(r.Checks) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestDifferences(t *testing.T) {
	line := func(check string, r guest.Result, detail string) guest.Line {
		return guest.Line{Check: check, Result: r, Detail: detail}
	}
	want := document{Kernels: []report{{Kernel: "6.1", Checks: []guest.Line{line("a", guest.OK, "5 lines"),
		line("b", guest.Told, "3 of 5"), line("c", guest.Unavailable, "exit 4: no hook 17")}}}}
	for name, c := range map[string]struct {
		got  []guest.Line
		want int
	}{
		"the same":            {want.Kernels[0].Checks, 0},
		"other numbers":       {[]guest.Line{line("a", guest.OK, "6 lines"), line("b", guest.Told, "1 of 5"), line("c", guest.Unavailable, "exit 4: no hook 18")}, 0},
		"better than told":    {[]guest.Line{line("a", guest.OK, ""), line("b", guest.OK, ""), line("c", guest.Unavailable, "exit 4: no hook 1")}, 0},
		"worse":               {[]guest.Line{line("a", guest.Told, ""), line("b", guest.Failed, ""), line("c", guest.Unavailable, "exit 4: no hook 1")}, 2},
		"another refusal":     {[]guest.Line{line("a", guest.OK, ""), line("b", guest.OK, ""), line("c", guest.Unavailable, "exit 4: no BTF")}, 1},
		"available now":       {[]guest.Line{line("a", guest.OK, ""), line("b", guest.OK, ""), line("c", guest.OK, "")}, 1},
		"one did not run":     {want.Kernels[0].Checks[:2], 1},
		"one is new, one not": {append(want.Kernels[0].Checks[1:3:3], line("d", guest.OK, "")), 2},
	} {
		if d := differences(want, []report{{Kernel: "6.1", Checks: c.got}}, true); len(d) != c.want {
			t.Errorf("%s: %q", name, d)
		}
	}
	if d := differences(want, []report{{Kernel: "6.1", Checks: want.Kernels[0].Checks[:1]}}, false); len(d) != 0 {
		t.Errorf("a run that is not whole: %q", d)
	}
	if d := differences(want, []report{{Kernel: "9.9"}}, true); len(d) != 1 {
		t.Errorf("an unknown kernel: %q", d)
	}
}

func TestMerge(t *testing.T) {
	old := document{Kernels: []report{{Kernel: "6.12", Note: "old"}, {Kernel: "6.1", Note: "old"}, {Kernel: "gone"}}}
	d := merge(old, []report{{Kernel: "6.12", Note: "new"}}, []kernel{{Name: "6.1"}, {Name: "6.12"}, {Name: "7.3"}}, true)
	if len(d.Kernels) != 2 || d.Kernels[0].Kernel != "6.1" || d.Kernels[0].Note != "old" || d.Kernels[1].Note != "new" {
		t.Errorf("%+v", d.Kernels)
	}
	was := []guest.Line{{Check: "a", Result: guest.OK}, {Check: "b", Result: guest.OK}}
	old = document{Kernels: []report{{Kernel: "6.1", Checks: was}}}
	part := []report{{Kernel: "6.1", Checks: []guest.Line{{Check: "b", Result: guest.Told}, {Check: "c", Result: guest.OK}}}}
	if d := merge(old, part, []kernel{{Name: "6.1"}}, false); len(d.Kernels[0].Checks) != 3 || d.Kernels[0].Checks[1].Result != guest.Told {
		t.Errorf("%+v", d.Kernels)
	}
}

// TestTable: the table that a person reads, and the one in README.md.
func TestTable(t *testing.T) {
	reports := []report{
		{Kernel: "6.1", Stands: "Debian 12", Arch: "amd64", Version: "6.1.192-2", Checks: []guest.Line{
			{Check: bootCheck, Result: guest.OK}, {Check: probeCheck, Result: guest.OK, Detail: strings.Repeat("long ", 50)}}},
		{Kernel: "arm64-6.12", Stands: "Debian 13 on arm64", Arch: "arm64", Version: "6.12.117-1", Note: "without modules", Checks: []guest.Line{
			{Check: bootCheck, Result: guest.OK}, {Check: probeCheck, Result: guest.OK}, {Check: "check/execs", Result: guest.Told, Detail: "3 of 2000"}}},
		{Kernel: "5.10", Stands: "Debian 11", Arch: "amd64", Version: "5.10.262-1", Checks: []guest.Line{
			{Check: bootCheck, Result: guest.OK}, {Check: probeCheck, Result: guest.Unavailable, Detail: "runner-capture: error: cannot observe here: no bpf_loop | too old runner-capture: hint: use another"}}},
	}
	testkit.Golden(t, "testdata/table.txt", []byte(table(reports)))
	testkit.Golden(t, "testdata/readme.md", []byte(generated(document{Kernels: reports})))
}

// TestResults: the committed results are of the listed kernels, none failed, and README.md
// says what they say.
func TestResults(t *testing.T) {
	t.Chdir("../..")
	list, err := readList()
	testkit.Must(t, err)
	b, err := os.ReadFile(resultsFile)
	testkit.Must(t, err)
	d, err := parseDocument(b)
	testkit.Must(t, err)
	testkit.Golden(t, resultsFile, d.encode())
	have := map[string]bool{}
	for _, r := range d.Kernels {
		have[r.Kernel] = true
	}
	for _, k := range list {
		if !have[k.Name] {
			t.Errorf("%s has no result of %s", resultsFile, k.Name)
		}
	}
	for _, f := range failures(d.Kernels) {
		t.Errorf("committed as failed: %s", f)
	}
	readme, err := os.ReadFile(readmeFile)
	testkit.Must(t, err)
	text, err := withGenerated(string(readme), generated(d))
	testkit.Must(t, err)
	testkit.Golden(t, readmeFile, []byte(text))
}

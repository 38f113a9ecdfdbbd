package schemas

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// specified reads the table of ambiguities out of the specification, row by row.
func specified(t *testing.T) (kinds []AmbiguityKind) {
	text, err := os.ReadFile("DERIVATION.md")
	testkit.Must(t, err)
	_, table, ok := strings.Cut(string(text), "\n| code | status | stands for |\n|---|---|---|\n")
	if !ok {
		t.Fatal("the specification has no table of ambiguities")
	}
	quoted := regexp.MustCompile("`([^`]*)`")
	args := map[string]AmbiguityArg{"": ArgNone, "ID": ArgID, "PATH": ArgPath, "NAME": ArgName, "EFFECT": ArgEffect, "LINE:WHY": ArgLine}
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| ") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("%d cells: %s", len(cells), row)
		}
		_, list, _ := strings.Cut(cells[2], "WHY: ")
		var whys []string
		for _, m := range quoted.FindAllStringSubmatch(list, -1) {
			whys = append(whys, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
			code, arg, _ := strings.Cut(m[1], ":")
			a, ok := args[arg]
			if !ok {
				t.Fatalf("unknown argument %q: %s", arg, row)
			}
			k := AmbiguityKind{Code: code, Status: strings.TrimSpace(cells[1]), Arg: a}
			if k.Status == "note" {
				k.Status = CorrelationClean
			}
			if a == ArgLine {
				k.Whys = whys
			}
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// The table here and the one in the specification are the same, line by line.
func TestAmbiguitiesAreTheSpecified(t *testing.T) {
	want, have := specified(t), Ambiguities()
	for i, k := range want {
		if i >= len(have) {
			t.Errorf("%s: only in the specification", k.Code)
			continue
		}
		if g := have[i]; g.Code != k.Code || g.Status != k.Status || g.Arg != k.Arg || !slices.Equal(g.Whys, k.Whys) {
			t.Errorf("row %d is %+v, the specification says %+v", i, g, k)
		}
	}
	if len(want) < len(have) {
		t.Errorf("%d kinds, the specification has %d", len(have), len(want))
	}
	codes := map[string]bool{}
	for _, k := range have {
		if codes[k.Code] {
			t.Errorf("%s is there twice", k.Code)
		}
		codes[k.Code] = true
	}
}

func TestParseCode(t *testing.T) {
	for _, k := range Ambiguities() {
		good, bad := k.Code+":x\ny:z", []string{k.Code, k.Code + ":"}
		switch k.Arg {
		case ArgNone:
			good, bad = k.Code, []string{k.Code + ":", k.Code + ":x", " " + k.Code}
		case ArgLine:
			good = LineCode(k.Code, 17, k.Whys[0])
			bad = []string{k.Code, k.Code + ":17", k.Code + ":0:" + k.Whys[0], k.Code + ":017:" + k.Whys[0],
				k.Code + ":-1:" + k.Whys[0], k.Code + ":17:bad_luck", k.Code + ":18446744073709551616:" + k.Whys[0]}
		}
		a, err := ParseCode(good)
		if err != nil || a.Code != k.Code || k.Arg == ArgID && a.Value != "x\ny:z" || k.Arg == ArgLine && (a.Line != 17 || a.Why != k.Whys[0]) {
			t.Errorf("%q reads as %+v, %v", good, a, err)
		}
		for _, s := range bad {
			if _, err := ParseCode(s); err == nil {
				t.Errorf("%q is accepted", s)
			}
		}
	}
	if _, err := ParseCode("tool_call_teleported:tc_1"); err == nil || !strings.Contains(err.Error(), "unknown ambiguity code") {
		t.Errorf("unknown code: %v", err)
	}
}

func TestWorstOf(t *testing.T) {
	for want, codes := range map[string][]string{
		CorrelationClean:   nil,
		CorrelationPartial: {"sdk_log_flooded", "tool_calls_overlap:policy_log_flooded"},
		CorrelationFailed:  {"kernel_events_lost", "policy_log_invalid:3:bad_json", "sdk_log_empty"},
	} {
		if got := WorstOf(codes); got != want {
			t.Errorf("%v gives %s, expected %s", codes, got, want)
		}
	}
}

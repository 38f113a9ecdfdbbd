package schemas

import (
	"slices"
	"strings"
	"testing"
)

// Names are there once, in the order that the tables promise.
func TestTablesAreOrdered(t *testing.T) {
	seen := map[[2]string]bool{}
	once := func(table, name string) {
		if seen[[2]string{table, name}] {
			t.Errorf("%s has %s twice", table, name)
		}
		seen[[2]string{table, name}] = true
	}
	last := uint32(0)
	for _, e := range EventTypes {
		if e.ID <= last {
			t.Errorf("event %d follows %d", e.ID, last)
		}
		last = e.ID
		once("kinds", KindOf(e.ID))
		if e.Other != "" {
			once("kinds", e.Other)
		}
	}
	for _, c := range Counters {
		once("counters of "+c.Stage, c.Name)
	}
	for _, f := range Facts {
		once("facts of "+f.Stage, f.Name)
	}
	for _, n := range Notes {
		once("notes", n.Code)
	}
	for _, r := range Reasons {
		once("reasons", r.Code)
	}
	for _, f := range Filters {
		once("filters", f.ID)
	}
	keys := EnvKeys()
	for i, v := range Environment {
		if v.Name != keys[i] || i > 0 && keys[i-1] >= v.Name {
			t.Errorf("variable %d is %s, of EnvKeys %s", i, v.Name, keys[i])
		}
	}
}

// Every counter that says something has a meaning, and the loss note can name it.
func TestCountersSayWhatTheyCount(t *testing.T) {
	causes := map[string]bool{}
	for _, c := range Causes {
		causes[c.Name] = true
	}
	for _, c := range Counters {
		if c.Why == "" || c.Role == RoleLoss && (c.When != "" || causes[c.Name]) {
			t.Errorf("counter %s: %+v", c.Name, c)
		}
		if strings.HasSuffix(c.Name, ".") != (c.Each != "") {
			t.Errorf("counter %s: each is %q", c.Name, c.Each)
		}
	}
	if names := CountersOf(StageCapture, ""); len(names) != 20 || !slices.IsSorted(names) {
		t.Errorf("runner-capture always reports %d counters: %q", len(names), names)
	}
	if names := CountersOf(StageCapture, WhenEnforced); !slices.Equal(names, []string{CounterNetworkRules, CounterBlocked}) {
		t.Errorf("under network rules also %q", names)
	}
	if names := CountersOf(StageCapture, WhenFileRules); !slices.Equal(names, []string{CounterFileRules, CounterFileBlocked, CounterFileInserted}) {
		t.Errorf("under file rules also %q", names)
	}
}

func TestFacts(t *testing.T) {
	f, ok := LookupFact(StageCapture, FactEnd)
	if !ok {
		t.Fatal("no fact end")
	}
	for want, facts := range map[string]map[string]string{
		"":                                     {"end": "killed"},
		`runner-capture reports no fact "end"`: {},
		`runner-capture reports end="", expected one of empty, killed, signal`: {"end": ""},
	} {
		got := ""
		if err := f.Check(&StageHealth{Stage: StageCapture, Facts: facts}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: %q, expected %q", facts, got, want)
		}
	}
	for text, want := range map[string]uint64{"off": 0, "unavailable: no room": 0, RedundantOn(17): 17, RedundantOn(0): 0} {
		if got, err := ParseRedundant(text); got != want || err != nil {
			t.Errorf("redundant=%q has lost %d, expected %d: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", "on", "on: lost=", "on: lost=x", "17", "offline"} {
		if _, err := ParseRedundant(text); err == nil {
			t.Errorf("redundant=%q is accepted", text)
		}
	}
}

// Which reason goes with which decision, outcome and rule follows from its use.
func TestReasons(t *testing.T) {
	for _, r := range Reasons {
		family := r.Code[:2]
		decides := r.Use == ReasonAllows || r.Use == ReasonDenies
		if !slices.Contains([]string{"P_", "M_", "S_"}, family) || (family == "P_") != (r.Use != ReasonRefuses) || decides != (r.Decision() != "") || decides != (r.Outcomes() != nil) {
			t.Errorf("reason %+v: decision %q, outcomes %q", r, r.Decision(), r.Outcomes())
		}
		if found, ok := LookupReason(r.Code); !ok || *found != r {
			t.Errorf("LookupReason(%s) is %v", r.Code, found)
		}
		if !slices.Contains(ReasonsOf(r.Use), r.Code) {
			t.Errorf("%s is not among those of its use", r.Code)
		}
	}
	if _, ok := LookupReason("P_MAYBE"); ok {
		t.Error("an unknown reason is known")
	}
}

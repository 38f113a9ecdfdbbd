package schemas

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// randomNote returns values for a note and the result that Parse must return for them.
func randomNote(r *rand.Rand, n *Note) (values []any, want NoteValues) {
	hex := strings.Repeat(pick(r, "0", "a", "f"), 64)
	word := func() string { return pick(r, "0", "seen", "a,b", "open", "x=y", "é") }
	switch n.Shape {
	case NoteOfCounts:
		for range 1 + r.IntN(4) {
			v := NoteValue{pick(r, "openat", "openat2", "dropped", "x", "é"), pick(r, word(), strconv.FormatUint(randomUint(r), 10))}
			if _, there := want.Get(v.Key); !there {
				values, want = append(values, v), append(want, v)
			}
		}
		slices.SortFunc(want, func(a, b NoteValue) int { return strings.Compare(a.Key+"="+a.Value, b.Key+"="+b.Value) })
		return values, want
	case NoteOfTexts:
		for range 1 + r.IntN(4) {
			text := pick(r, "shared memory", "a: b", "x;y", "inherited descriptors (3)")
			values, want = append(values, text), append(want, NoteValue{Value: text})
		}
		return values, want
	}
	short := maybe(r)
	for _, f := range n.Fields {
		if f.Optional && short {
			break
		}
		var v any
		switch f.Form {
		case ValueCount:
			v = randomUint(r)
		case ValueWord:
			v = word()
		case ValueDigest:
			v = "sha256:" + hex
		case ValueHex:
			v = hex
		case ValueQuoted:
			v = pick(r, "", `.kind == "openat"`, `"`, `\`, "a dropped=3", "tab\t\x01", "é")
		case ValueText:
			v = pick(r, "kernel capture was not requested", "a: b=c; d")
		}
		text, ok := v.(string)
		if !ok {
			text = strconv.FormatUint(v.(uint64), 10)
		}
		values, want = append(values, v), append(want, NoteValue{f.Key, text})
	}
	return values, want
}

// Parse reads what Format writes, and Format writes what Parse accepts.
func TestNotesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for _, known := range Notes {
		form := *known
		n := &form
		n.Check = nil // the values are made up
		for range 300 {
			values, want := randomNote(r, n)
			note := n.Format(values...)
			got, err := n.Parse(note)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q reads as %q, expected %q: %v", note, got, want, err)
			}
			for range 5 {
				checkAgain(t, n, string(damage(r, []byte(note))))
			}
		}
	}
}

func checkAgain(t *testing.T, n *Note, note string) {
	t.Helper()
	got, err := n.Parse(note)
	if err != nil {
		return
	}
	again := make([]any, len(got))
	for i, v := range got {
		again[i] = v.Value
		if n.Shape == NoteOfCounts {
			again[i] = v
		}
	}
	if s := n.Format(again...); s != note {
		t.Fatalf("%q is accepted and written as %q", note, s)
	}
}

func FuzzNotes(f *testing.F) {
	for _, n := range Notes {
		f.Add(n.Code + ": a=1 b=2 c")
	}
	f.Fuzz(func(t *testing.T, note string) {
		for _, n := range Notes {
			checkAgain(t, n, note)
		}
		code, text, _ := CutNote(note)
		NoteRank(code)
		NoteWords(text)
	})
}

// The bytes of notes are part of the contract.
func TestNotesReadAsEver(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for want, got := range map[string]string{
		"contract_only_mode: kernel capture is not supported on macos":                                                                     NoteContractOnly.Format(ContractOnlyUnsupported + "macos"),
		"s2_kernel_capture: monitor_events=3 ringbuf_drops=0 network_protocol_coverage=absent network_endpoint_claim_scope=not_applicable": NoteKernel.Format(uint64(3), uint64(0), CoverageAbsent, ScopeNotApplicable),
		"s2_drops: openat2=1 openat=2":                                                       NoteDrops.Format(CountOf("openat", 2), CountOf("openat2", 1)),
		"s2_cgroup_escape: escapes=2 kernel_layer downgraded to absent":                      NoteEscape.Format(uint64(2)),
		"s2_survivors_killed: 4":                                                             NoteSurvivors.Format(uint64(4)),
		"s2_blind_spots: shared memory; inherited descriptors (0)":                           NoteBlind.Format("shared memory", "inherited descriptors (0)"),
		"s4_network_policy: rules=1 blocked=2 policy=" + digest:                              NoteNetwork.Format(uint64(1), uint64(2), digest),
		"s4_file_policy: rules=1 blocked=2 mechanism=lsm evidence=observed policy=" + digest: NoteFiles.Format(uint64(1), uint64(2), SourceLSM, EvidenceOf(SourceLSM), digest),
		"s4_policy_capture: decision_events=1":                                               NotePolicy.Format(uint64(1)),
		"s4_policy_capture: decision_events=1 sessions=2 refused=3":                          NotePolicy.Format(uint64(1), uint64(2), uint64(3)),
		"s6_windows: call=1 setup=2 idle=3 agent=4":                                          NoteWindows.Format(uint64(1), uint64(2), uint64(3), uint64(4)),
		"normalize_drop: program=\"a \\\"b\\\"\" sha256=" + digest[7:] + " dropped=1":        NoteDrop.Format(`a "b"`, digest[7:], uint64(1)),
	} {
		if got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
}

func TestNotesOfOtherForms(t *testing.T) {
	for _, c := range []struct {
		n    *Note
		note string
	}{
		{NoteSDK, "s5_sdk_capture: sdk_events=01 sdk_tool_calls=0"},
		{NoteSDK, "s5_sdk_capture: sdk_events=1  sdk_tool_calls=0"},
		{NoteSDK, "s5_sdk_capture: sdk_events=1 sdk_tool_calls=0 "},
		{NoteSDK, "s5_sdk_capture:sdk_events=1 sdk_tool_calls=0"},
		{NoteSDK, "s5_sdk_capture: sdk_events=18446744073709551616 sdk_tool_calls=0"},
		{NoteSDK, "s5_sdk_captured: sdk_events=1 sdk_tool_calls=0"},
		{NotePolicy, "s4_policy_capture: decision_events=1 sessions=1"},
		{NotePolicy, "s4_policy_capture: decision_events=1 refused=1"},
		{NoteNetwork, "s4_network_policy: rules=1 blocked=2 policy=sha256:0"},
		{NoteLoss, "s2_kernel_loss: b=1 a=1"},
		{NoteLoss, "s2_kernel_loss: a=1 a=2"},
		{NoteLoss, "s2_kernel_loss:"},
		{NoteEnd, "s2_capture_end: a signal"},
		{NoteLoss, "s2_kernel_loss: luck=1"},
		{NoteLoss, "s2_kernel_loss: dropped=0"},
		{NoteLoss, "s2_kernel_loss: dropped=01"},
		{NoteLoss, "s2_kernel_loss: lexical=1"},
		{NoteLoss, "s2_kernel_loss: canary_after=seen"},
		{NoteLoss, "s2_kernel_loss: hooks_missing=a,,b"},
		{NoteLoss, "s2_kernel_loss: interference=move,bpf"},
		{NoteLoss, "s2_kernel_loss: engines=podman,crun"},
		{NoteLoss, "s2_kernel_loss: engines=rocket"},
		{NoteDrops, "s2_drops: opened=1"},
		{NoteQuality, "s2_path_quality: dropped=1"},
		{NoteBlind, "s2_blind_spots: none"},
		{NoteBlind, "s2_blind_spots: inherited descriptors (01)"},
		{NoteConfined, "s3_confinement: seccomp; no_new_privs"},
		{NoteFiles, "s4_file_policy: rules=1 blocked=2 mechanism=lsm evidence=mixed policy=sha256:" + strings.Repeat("0a", 32)},
		{NoteDrop, `normalize_drop: program="" sha256=` + strings.Repeat("0a", 32) + " dropped=0"},
	} {
		if v, err := c.n.Parse(c.note); err == nil {
			t.Errorf("%q is accepted as %q", c.note, v)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a note with a value too few is written")
		}
	}()
	NoteWindows.Format(uint64(1))
}

// Notes have places in the table's order, all others come last.
func TestNoteRank(t *testing.T) {
	for i, n := range Notes {
		if got := NoteRank(n.Code); got != i {
			t.Errorf("%s has place %d, expected %d", n.Code, got, i)
		}
		if found, ok := LookupNote(n.Code); !ok || found != n {
			t.Errorf("LookupNote(%s) is %v", n.Code, found)
		}
	}
	if last := NoteRank("made_by_another"); last != len(Notes) {
		t.Errorf("the last place is %d", last)
	}
}

func TestNoteWords(t *testing.T) {
	got := NoteWords(" a=1 b a=2 c= d=x=y")
	if len(got) != 3 || got["a"] != "1" || got["c"] != "" || got["d"] != "x=y" {
		t.Errorf("got %q", got)
	}
}

package journal

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// whole is a journal of two transactions.
func whole(t testing.TB) []byte {
	t.Helper()
	mode := uint32(0o555)
	list := []Record{
		{Tx: "a", Step: StepBegin, Directory: &Directory{"/d\\xff", 1, 2}, Transitions: someDigest, Effects: someDigest, Names: 3},
		{Tx: "a", Step: StepOpened, Path: "x", Mode: &mode}, {Tx: "a", Step: StepChecked}, {Tx: "a", Step: StepSaved, Items: someDigest},
		{Tx: "a", Step: StepApplying}, {Tx: "a", Step: StepApplied, After: someDigest}, {Tx: "a", Step: StepPrepare, Key: "k"},
		{Tx: "b", Step: StepBegin, Directory: &Directory{"/e", 1, 3}, Transitions: someDigest}, {Tx: "b", Step: StepRefused, Conflicts: []Conflict{{"p", "why"}}, Count: 1},
		{Tx: "a", Step: StepReceipt, Key: "k", Receipt: []byte(`{"id":1}`)}, {Tx: "a", Step: StepCommitted}, {Tx: "a", Step: StepReverting},
		{Tx: "a", Step: StepEffectUndoing, Key: "k"}, {Tx: "a", Step: StepEffectLeft, Key: "k", Error: "no"}, {Tx: "a", Step: StepFailed, Left: []string{"k: no"}},
	}
	var b bytes.Buffer
	for i := range list {
		list[i].Schema, list[i].Seq, list[i].Time = Schema, uint64(i), "2001-02-03T04:05:06Z"
		line, err := schemas.Marshal(&list[i])
		testkit.Must(t, err)
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// TestRead: a line without its end is no line; any other damage is an error that names the line.
func TestRead(t *testing.T) {
	b := whole(t)
	l, err := read(bytes.NewReader(b), "j")
	if err != nil || len(l.records) != 15 || l.size != int64(len(b)) || l.txs["a"].step != StepFailed || l.txs["b"].step != StepRefused {
		t.Fatalf("%v %+v", err, l)
	}
	for n := range b { // cut anywhere
		if n%9 != 0 && b[n] != '\n' && b[max(0, n-1)] != '\n' {
			continue
		}
		l, err := read(bytes.NewReader(b[:n]), "j")
		if want := bytes.Count(b[:n], []byte("\n")); err != nil || len(l.records) != want || l.size != int64(bytes.LastIndexByte(b[:n], '\n')+1) {
			t.Fatalf("cut at %d: %v, %d lines, expected %d", n, err, len(l.records), want)
		}
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	for what, x := range map[string]struct {
		f    func(list [][]byte) [][]byte
		want string
	}{
		"a line is gone":  {func(l [][]byte) [][]byte { return append(l[:4:4], l[5:]...) }, "j:5: the line is damaged: seq is 5, expected 4"},
		"twice":           {func(l [][]byte) [][]byte { return append(l[:5:5], l[4:]...) }, "j:6: the line is damaged: seq is 4, expected 5"},
		"half a line":     {func(l [][]byte) [][]byte { return append(append(l[:2:2], []byte("{\"sche\n")), l[3:]...) }, "j:3: the line is damaged"},
		"an empty line":   {func(l [][]byte) [][]byte { return append(l[:1:1], []byte("\n")) }, "j:2: the line is damaged"},
		"zeros":           {func(l [][]byte) [][]byte { return append(l[:1:1], []byte("\x00\x00\n")) }, "j:2: the line is damaged"},
		"another schema":  {func(l [][]byte) [][]byte { return [][]byte{bytes.Replace(l[0], []byte("v0"), []byte("v1"), 1)} }, `j:1: the line is damaged: schema is "runner.gate_journal.v1"`},
		"an unknown step": {func(l [][]byte) [][]byte { return [][]byte{bytes.Replace(l[0], []byte("begin"), []byte("began"), 1)} }, `j:1: the line is damaged: step "began" is not known`},
		"an unknown key":  {func(l [][]byte) [][]byte { return [][]byte{bytes.Replace(l[0], []byte(`{`), []byte(`{"x":1,`), 1)} }, "j:1: the line is damaged"},
		"a wrong order": {func(l [][]byte) [][]byte {
			return [][]byte{l[0], bytes.Replace(l[7], []byte(`"seq":7,"tx":"b","step":"begin"`), []byte(`"seq":1,"tx":"a","step":"committed"`), 1)}
		}, "j:2: the line is damaged"},
		"a short digest": {func(l [][]byte) [][]byte {
			return [][]byte{bytes.Replace(l[0], []byte("sha256:01"), []byte("sha256:"), 1)}
		}, "is no digest"},
		"a long line": {func(l [][]byte) [][]byte { return [][]byte{bytes.Repeat([]byte(" "), maxLine+2)} }, "j:1: the line has more than"},
	} {
		_, err := read(bytes.NewReader(bytes.Join(x.f(lines), nil)), "j")
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, expected %q", what, err, x.want)
		}
	}
}

// TestSteps: each step can be reached, and only ends have nothing after them.
func TestSteps(t *testing.T) {
	reached := map[Step]bool{"": true}
	for _, to := range next {
		for _, s := range to {
			if _, known := next[s]; !known {
				t.Errorf("%s follows, but is not in the table", s)
			}
			reached[s] = true
		}
	}
	for s, to := range next {
		if !reached[s] || len(to) == 0 && s != StepReverted {
			t.Errorf("%s: reached %v, followed by %d", s, reached[s], len(to))
		}
	}
}

// FuzzRead: no bytes make the reader fail in another way than by an error, and what it read reads as the same again.
func FuzzRead(f *testing.F) {
	f.Add(whole(f))
	f.Add([]byte("{}\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := read(bytes.NewReader(b), "j")
		if err != nil {
			return
		}
		var again bytes.Buffer
		for i := range l.records {
			line, err := schemas.Marshal(&l.records[i])
			testkit.Must(t, err)
			again.Write(append(line, '\n'))
		}
		l2, err := read(bytes.NewReader(again.Bytes()), "j")
		if err != nil || !reflect.DeepEqual(l2.records, l.records) || l2.size != int64(again.Len()) {
			t.Fatalf("%v: %s", err, again.Bytes())
		}
	})
}

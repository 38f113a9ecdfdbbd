package cmd_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// line is a kernel line. The tests read archives with the standard library, not with the
// code that wrote them.
type line struct {
	Seq     uint64  `json:"seq"`
	Pid     int     `json:"pid"`
	Type    int     `json:"event_type"`
	Kind    string  `json:"kind"`
	Value   *string `json:"value"`
	Flags   *uint64 `json:"flags"`
	Mode    *uint64 `json:"mode"`
	Resolve uint64  `json:"resolve"`
	Ret     *int64  `json:"return_value"`
	Status  string  `json:"status"`
}

func (l line) String() string {
	b, _ := json.Marshal(l)
	return testkit.Clip(string(b))
}

type archive struct {
	members map[string][]byte
	tar     [sha256.Size]byte // digest of the uncompressed tar
	health  schemas.Health
	surface map[string]json.RawMessage
	lines   []line
}

// eachMember calls f for every member of a .tar.gz and returns the digest of the tar.
func eachMember(path string, f func(name string, r io.Reader) error) ([sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	z, err := gzip.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	in := io.TeeReader(z, h)
	tr := tar.NewReader(in)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return sum, err
		}
		if err := f(hdr.Name, tr); err != nil {
			return sum, fmt.Errorf("%s: %w", hdr.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// openArchive reads a whole archive after runner-verify has accepted it.
func openArchive(t *testing.T, path string) *archive {
	t.Helper()
	if o := call(t, command(t, "runner-verify", path)); o.code != 0 {
		t.Fatalf("runner-verify refuses %s: %v", path, o)
	}
	a := &archive{members: map[string][]byte{}}
	var err error
	a.tar, err = eachMember(path, func(name string, r io.Reader) error {
		b, err := io.ReadAll(r)
		a.members[name] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	decode(t, a.members["observation-health.json"], &a.health)
	decode(t, a.members["capability-surface.json"], &a.surface)
	for _, b := range bytes.Split(bytes.TrimSuffix(a.members["layers/kernel.ndjson"], []byte("\n")), []byte("\n")) {
		if len(b) == 0 {
			continue
		}
		var l line
		decode(t, b, &l)
		if l.Seq != uint64(len(a.lines)) {
			t.Fatalf("line %d has seq %d", len(a.lines), l.Seq)
		}
		a.lines = append(a.lines, l)
	}
	return a
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v in %.300s", err, b)
	}
}

// set is one set of the capability surface.
func (a *archive) set(t *testing.T, name string) []string {
	t.Helper()
	var s []string
	decode(t, a.surface[name], &s)
	return s
}

// complete fails unless the record claims to be complete.
func (a *archive) complete(t *testing.T) {
	t.Helper()
	if h := a.health; h.KernelLayer != "complete" || h.RingbufDrops != 0 || h.CgroupCorrelation != "clean" {
		t.Errorf("the record is not complete: kernel_layer=%s ringbuf_drops=%d cgroup_correlation=%s\n%s",
			h.KernelLayer, h.RingbufDrops, h.CgroupCorrelation, strings.Join(h.Notes, "\n"))
	}
}

// expected is one line that a workload printed: what the record must hold.
type expected struct {
	Op      string  `json:"op"`
	What    string  `json:"what"`
	Why     string  `json:"why"`
	Type    int     `json:"event_type"`
	Value   *string `json:"value"`
	Any     bool    `json:"any"`
	Suffix  bool    `json:"suffix"`
	Ret     *int64  `json:"ret"`
	Pid     int     `json:"pid"`
	Flags   *uint64 `json:"flags"`
	Mode    *uint64 `json:"mode"`
	Resolve *uint64 `json:"resolve"`
	Count   int     `json:"count"`
}

func (e expected) String() string {
	b, _ := json.Marshal(e)
	return testkit.Clip(string(b))
}

// madeBy parses a workload's output. It logs what the workload could not do on this
// machine as skipped.
func madeBy(t *testing.T, stdout string) []expected {
	t.Helper()
	var made []expected
	for text := range strings.Lines(stdout) {
		var e expected
		decode(t, []byte(text), &e)
		if e.Op == "skip" {
			testkit.Note(t, e.What, e.Why)
			continue
		}
		made = append(made, e)
	}
	if len(made) == 0 {
		t.Fatal("the workload printed nothing")
	}
	return made
}

func (e expected) matches(l line) bool {
	switch {
	case e.Pid != 0 && l.Pid != e.Pid, e.Ret != nil && (l.Ret == nil || *l.Ret != *e.Ret):
		return false
	case e.Flags != nil && (l.Flags == nil || *l.Flags != *e.Flags):
		return false
	case e.Mode != nil && (l.Mode == nil || *l.Mode != *e.Mode):
		return false
	case e.Resolve != nil && l.Resolve != *e.Resolve:
		return false
	case e.Any:
		return true
	case e.Value == nil || l.Value == nil:
		return e.Value == nil && l.Value == nil
	case e.Suffix:
		return strings.HasSuffix(*l.Value, *e.Value)
	}
	return *l.Value == *e.Value
}

// key is the index key of a line: there are hundreds of thousands of lines to match.
func key(typ int, value *string) string {
	if value == nil {
		return fmt.Sprint(typ)
	}
	return fmt.Sprint(typ, *value)
}

// compare checks that the record holds exactly the lines that the workload made.
func compare(t *testing.T, made []expected, lines []line) {
	t.Helper()
	index := map[string][]int{}
	byType := map[int][]int{}
	for i, l := range lines {
		index[key(l.Type, l.Value)] = append(index[key(l.Type, l.Value)], i)
		byType[l.Type] = append(byType[l.Type], i)
		checkStatus(t, l)
	}
	used := make([]bool, len(lines))
	missing := 0
	take := func(e expected) {
		candidates := index[key(e.Type, e.Value)]
		if e.Any || e.Suffix {
			candidates = byType[e.Type]
		}
		left := e.Count
		for _, i := range candidates {
			if left == 0 {
				return
			}
			if !used[i] && e.matches(lines[i]) {
				used[i] = true
				left--
			}
		}
		if left > 0 {
			if missing++; missing <= 10 {
				t.Errorf("missing %d of %d: %v%s", left, e.Count, e, near(e, lines, used))
			}
		}
	}
	for _, exact := range []bool{true, false} { // first those that match one line only
		for _, e := range made {
			if exact == (!e.Any && !e.Suffix && e.Pid != 0) {
				take(e)
			}
		}
	}
	surplus := 0
	for i, l := range lines {
		if !used[i] {
			if surplus++; surplus <= 10 {
				t.Errorf("recorded, but the workload did not do it: %v", l)
			}
		}
	}
	if missing+surplus > 0 {
		t.Errorf("%d kinds of lines are missing, %d lines are not expected, of %d", missing, surplus, len(lines))
	}
}

// near helps to read a failure: it is an unexpected line that is similar to the missing one.
func near(e expected, lines []line, used []bool) string {
	for i, l := range lines {
		if !used[i] && e.Value != nil && l.Value != nil && (*l.Value == *e.Value || l.Type == e.Type && strings.HasSuffix(*l.Value, (*e.Value)[strings.LastIndexByte(*e.Value, '/')+1:])) {
			return "\n    near: " + l.String()
		}
	}
	return ""
}

// checkStatus compares status with return_value. A pending connect has no status.
func checkStatus(t *testing.T, l line) {
	t.Helper()
	want := ""
	if l.Ret != nil {
		switch {
		case *l.Ret >= 0:
			want = "success"
		case *l.Ret != -115:
			want = "error"
		}
	}
	if l.Status != want {
		t.Errorf("status %q, expected %q: %v", l.Status, want, l)
	}
}

func drain(_ string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

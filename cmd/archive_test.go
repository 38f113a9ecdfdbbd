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
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// line is a kernel line. The tests read archives with the standard library, not with the
// code that wrote them.
type line = expect.Line

// expected is one line that a workload printed: what the record must hold.
type expected = expect.Event

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

// madeBy parses a workload's output. It logs what the workload could not do on this
// machine as skipped.
func madeBy(t *testing.T, stdout string) []expected {
	t.Helper()
	made, skips, err := expect.Parse(stdout)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range skips {
		testkit.Note(t, s.What, s.Why)
	}
	return made
}

// compare checks that the record holds exactly the lines that the workload made.
func compare(t *testing.T, made []expected, lines []line) {
	t.Helper()
	r := expect.Compare(made, lines)
	for _, p := range r.Problems(10) {
		t.Error(p)
	}
	if !r.Same() {
		t.Errorf("%d kinds of lines are missing, %d lines are not expected, of %d", len(r.Missing), len(r.Surplus), len(lines))
	}
}

func drain(_ string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

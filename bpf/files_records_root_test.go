//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// blockedRecords reads until the ring is empty.
func blockedRecords(t *testing.T, s *Session) (out []schemas.RawEvent) {
	t.Helper()
	var dec Decoder
	var rec ringbuf.Record
	for {
		s.Ring.SetDeadline(time.Now().Add(500 * time.Millisecond))
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var e schemas.RawEvent
		if _, err := dec.Decode(rec.RawSample, &e); err != nil {
			t.Fatal(err)
		}
		if e.Op == schemas.OpFileBlocked {
			e.Path = append([]byte(nil), e.Path...)
			out = append(out, e)
		}
	}
}

// A refusal has the path that the kernel resolved, also where the hook gives only an object.
func TestFilesRecords(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "secret/x", "on/")
	deny := fileRules("allow", "allow", fileRule(7, "deny", d+"/secret", schemas.FileOps[:]...))
	s, err := Attach(Options{Cgroup: p.dir, RingSize: 1 << 20, Files: deny})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer s.Close()
	calls := []struct {
		call
		hook, path string
	}{
		{call{Do: "read", To: "@/on/../secret/x"}, schemas.HookRead, d + "/secret/x"},
		{call{Do: "create", To: "@/secret/new"}, schemas.HookCreate, d + "/secret/new"},
		{call{Do: "times", To: "@/secret/x"}, schemas.HookWrite, d + "/secret/x"},
		{call{Do: "unlink", To: "@/secret/x"}, schemas.HookDelete, d + "/secret/x"},
		{call{Do: "link", Via: "@/secret/x", To: "@/on/x"}, schemas.HookMove, d + "/secret/x"},
		{call{Do: "bind", Via: "@/secret", Name: "@/on", To: "@/on/x"}, schemas.HookRead, d + "/on/x"},
	}
	for _, c := range calls {
		p.try(at(d, c.call))
	}
	got := blockedRecords(t, s)
	for i, e := range got {
		if i >= len(calls) || e.Hook != calls[i].hook || string(e.Path) != calls[i].path || e.Rule != 7 || e.Source != schemas.SourceLSM || e.Has&schemas.HasRet != 0 {
			t.Errorf("record %d: %s %s by %d from %s, marks %b", i, e.Hook, e.Path, e.Rule, e.Source, e.Marks)
		}
	}
	if len(got) != len(calls) {
		t.Errorf("%d records of %d refusals", len(got), len(calls))
	}
	if st, err := s.Stats(); err != nil || st.Seen != st.Emitted+st.Dropped || st.RecursionMisses != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// Refusals are counted also while the ring is full, and so are the records that are lost.
func TestFilesRingFull(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "secret/x")
	s, err := Attach(Options{Cgroup: p.dir, RingSize: os.Getpagesize(), Files: fileRules("allow", "allow", fileRule(1, "deny", d+"/secret", "read"))})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer s.Close()
	const n = 100
	for range n {
		if e := p.try(call{Do: "read", To: d + "/secret/x"}); e == 0 {
			t.Fatal("a refused file was opened")
		}
	}
	by, err := s.FileBlocked()
	if err != nil || by[1] != n {
		t.Errorf("%d of %d refusals counted, %v", by[1], n, err)
	}
	if st, err := s.Stats(); err != nil || st.DroppedByOp[schemas.OpFileBlocked] == 0 || st.Seen != st.Emitted+st.Dropped {
		t.Errorf("%+v, %v", st, err)
	}
}

// What is opened by a handle while the kernel has no name for it could be anything: it is
// refused where a rule denies something, counted as such, and recorded without a path.
func TestFilesUnresolved(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "secret/x")
	files, err := os.ReadDir(p.dir)
	testkit.Must(t, err)
	s, err := Attach(Options{Cgroup: p.dir, RingSize: 1 << 20, Files: fileRules("allow", "allow", fileRule(1, "deny", d+"/other", "write"), fileRule(2, "deny", d+"/secret", "read"))})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer s.Close()
	refused, last := uint64(0), syscall.Errno(0)
	for _, f := range files { // the kernel may keep the name of any of them
		if last = p.try(call{Do: "handle", Via: p.dir, Name: "cold", To: filepath.Join(p.dir, f.Name())}); last == syscall.EPERM {
			refused++
		}
		if refused == 2 {
			break
		}
	}
	by, err := s.FileBlocked()
	testkit.Must(t, err)
	n, err := s.FileUnresolved()
	testkit.Must(t, err)
	if refused == 0 || n != refused || by[2] != refused || len(by) != 1 {
		t.Errorf("%d refused, %d counted as not found, by rule %v; the last call: %v", refused, n, by, last)
	}
	got := blockedRecords(t, s)
	for _, e := range got {
		if strings.HasPrefix(string(e.Path), p.dir) || e.Rule != 2 {
			t.Errorf("%s by %d, marks %b", e.Path, e.Rule, e.Marks)
		}
	}
	if uint64(len(got)) != refused {
		t.Errorf("%d records of %d refusals", len(got), refused)
	}
}

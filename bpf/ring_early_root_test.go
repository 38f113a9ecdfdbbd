//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Each attempt to attach has a ring of its own, and one that nobody needs is closed.
func TestEarlyRing(t *testing.T) {
	opt := Options{RingSize: os.Getpagesize()}
	opt.Early = StartRing(opt.RingSize)
	first, err := opt.ring()
	if err != nil {
		testkit.Missing(t, "a ring", err)
	}
	defer first.Close()
	second, err := opt.ring()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a, errA := idsOf(first)
	b, errB := idsOf(second)
	if errA != nil || errB != nil || a.id == b.id {
		t.Errorf("rings %v and %v (%v, %v), expected two", a, b, errA, errB)
	}
	opt.Early.Close()
	if _, err := idsOf(first); err != nil {
		t.Errorf("a ring that was taken is closed: %v", err)
	}

	unused := StartRing(opt.RingSize)
	unused.Close()
	if m, _, there := unused.take(); m != nil || there {
		t.Error("a ring that was closed is handed out")
	}
	if _, err := (Options{RingSize: 2 * opt.RingSize, Early: StartRing(opt.RingSize)}).ring(); err == nil {
		t.Error("a ring of another size is handed out")
	}
	bad := Options{RingSize: 1, Early: StartRing(1)}
	if _, err := bad.ring(); err == nil {
		t.Error("a ring of one byte was made")
	}
}

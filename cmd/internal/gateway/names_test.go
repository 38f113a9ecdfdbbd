package gateway

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func ask(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	testkit.Must(t, err)
	return b
}

// TestNames: a name has one address, no two names have the same, and the address leads back to the name.
func TestNames(t *testing.T) {
	n := newNames()
	seen := map[netip.Addr]string{}
	for i := range 20_000 {
		name := fmt.Sprintf("host%d.test", i)
		var m dnsmessage.Message
		testkit.Must(t, m.Unpack(n.answer(ask(t, name+".", dnsmessage.TypeA))))
		if m.ID != 7 || !m.Response || len(m.Answers) != 1 {
			t.Fatalf("%+v", m)
		}
		a := netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
		if was := seen[a]; was != "" || !netip.MustParsePrefix("198.18.0.0/15").Contains(a) || n.host(a) != name {
			t.Fatalf("%s has %v, as %q; that is %q", name, a, was, n.host(a))
		}
		seen[a] = name
	}
	again := newNames()
	for _, name := range []string{"host3.test", "host1.test", "HOST3.test"} {
		again.answer(ask(t, name+".", dnsmessage.TypeA))
	}
	if a, b := n.by["host3.test"], again.by["host3.test"]; a != b || len(again.by) != 2 {
		t.Errorf("%v and %v: the address depends on what was asked for before", a, b)
	}
	for _, name := range []string{"\u212a.test", "k.test", "\xff.test", "\xfe.test"} { // names are bytes: a sign that is like a K is none
		again.answer(ask(t, name+".", dnsmessage.TypeA))
	}
	if len(again.by) != 6 {
		t.Errorf("%d names, expected 6: %q", len(again.by), slices.Collect(maps.Keys(again.by)))
	}
	var m dnsmessage.Message
	for name, kind := range map[string]dnsmessage.Type{"a.test.": dnsmessage.TypeAAAA, "b.test.": dnsmessage.TypeMX, ".": dnsmessage.TypeA} {
		testkit.Must(t, m.Unpack(n.answer(ask(t, name, kind))))
		if len(m.Answers) != 0 || m.RCode != dnsmessage.RCodeSuccess {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if a := n.answer(ask(t, "localhost.", dnsmessage.TypeA)); n.host(netip.MustParseAddr("127.0.0.1")) != "127.0.0.1" || a == nil {
		t.Error("localhost")
	}
}

// FuzzAnswer: whatever comes is answered by a message with the same id, or not at all.
func FuzzAnswer(f *testing.F) {
	f.Add(ask(f, "a.test.", dnsmessage.TypeA))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := newNames().answer(b)
		if out == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil || out[0] != b[0] || out[1] != b[1] || !m.Response {
			t.Errorf("%x: %v", out, err)
		}
	})
}

package gateway

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names gives each name an address of 198.18.0.0/15, which RFC 2544 keeps for tests, and finds the name of an address. The
// address follows from the name, whatever was asked for before, unless two names want the same one.
type names struct {
	mu    sync.Mutex
	by    map[string]netip.Addr
	of    map[netip.Addr]string
	asked map[question]string // with what was answered
	lost  uint64
}

type question struct{ name, kind string }

// addresses is how many names there can be.
const addresses = 1<<17 - 2

// maxAsked bounds what is recorded.
const maxAsked = 1 << 16

func newNames() *names {
	return &names{by: map[string]netip.Addr{}, of: map[netip.Addr]string{}, asked: map[question]string{}}
}

// address is the address of a name. ok is false if there are too many.
func (n *names) address(name string) (netip.Addr, bool) {
	if a, ok := n.by[name]; ok {
		return a, true
	}
	if len(n.by) >= addresses/2 {
		return netip.Addr{}, false
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	for at := h.Sum32() % addresses; ; at = (at + 1) % addresses {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 198<<24|18<<16+at+1)
		a := netip.AddrFrom4(b)
		if n.of[a] == "" {
			n.by[name], n.of[a] = a, name
			return a, true
		}
	}
}

// host is the name that an address was given for, or the address as text.
func (n *names) host(a netip.Addr) string {
	a = a.Unmap()
	n.mu.Lock()
	defer n.mu.Unlock()
	if name := n.of[a]; name != "" {
		return name
	}
	return a.String()
}

// answer answers one message, nil if it is none that is answered.
func (n *names) answer(message []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	h := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	if head.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		h.RCode = dnsmessage.RCodeNotImplemented
	}
	b := dnsmessage.NewBuilder(nil, h)
	b.EnableCompression()
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	if h.RCode == dnsmessage.RCodeSuccess {
		if a, ok := n.look(q); ok && b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, dnsmessage.AResource{A: a.As4()}) != nil {
			return nil
		}
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}

// look finds the answer of a question, and remembers both. Only IPv4 addresses are told.
func (n *names) look(q dnsmessage.Question) (a netip.Addr, ok bool) {
	name := lower(strings.TrimSuffix(q.Name.String(), "."))
	if name == "" {
		return a, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	said := ""
	if q.Type == dnsmessage.TypeA {
		if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761
			a, ok = netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
		} else {
			a, ok = n.address(name)
		}
		if ok {
			said = a.String()
		}
	}
	key := question{name, strings.TrimPrefix(q.Type.String(), "Type")}
	if _, known := n.asked[key]; !known && len(n.asked) >= maxAsked {
		n.lost++
	} else {
		n.asked[key] = said
	}
	return a, ok
}

// lower is a name in lower case. Only letters of ASCII have a case in names: other bytes are what they are.
func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

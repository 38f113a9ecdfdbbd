package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// The model in this file implements schemas/DERIVATION.md, "Correlation", in the
// simplest way: it keeps the whole run in memory and checks every line for each call.
// The tests compare it with the tool on random runs.

type modelLine struct {
	at    uint64
	proc  int
	verb  string
	value string
	fail  bool
}

type modelProc struct {
	parent, depth int
	pid           uint32
	space, own    uint32 // its number in a pid namespace of its own
	start, end    uint64
}

type modelCall struct {
	session    int
	id         string
	allow      bool
	start, end uint64 // end 0: not finished
	targets    []string
	cut        bool
	cancelled  bool
}

type modelSession struct {
	proxy, server uint32
	space         uint32 // in which these are numbers, 0 is the initial one
	at            uint64
	denies        []string
	reload        []string // what the file denies when it is read again; nil: it is not
	requests      []modelRequest
}

// spaceSaid is what the log has: of the initial namespace its number, or nothing.
func (s *modelSession) spaceSaid() uint32 {
	if s.space == 0 && s.at%2 == 0 {
		return schemas.InitialPIDNamespace
	}
	return s.space
}

// modelRequest is a request of the client; a denied one has no window.
type modelRequest struct {
	start, end uint64
	denied     bool
	targets    []string
}

type model struct {
	procs    []modelProc
	lines    []modelLine // in the order of processes
	sessions []modelSession
	calls    []modelCall
}

func (m *model) until(c *modelCall) uint64 {
	if c.end == 0 {
		return 1 << 62
	}
	return c.end
}

func (m *model) lived(p *modelProc, at uint64) bool {
	return p.start <= at && (p.end == 0 || at <= p.end)
}

// has reports whether a process has a number in a namespace.
func (p *modelProc) has(space, pid uint32) bool {
	if space == 0 {
		return p.pid == pid
	}
	return p.space == space && p.own == pid
}

// roots returns the processes that are a session's server.
func (m *model) roots(s int) (list []int) {
	for i := range m.procs {
		p, of := &m.procs[i], &m.sessions[s]
		if p.parent >= 0 && p.has(of.space, of.server) && m.procs[p.parent].has(of.space, of.proxy) && m.lived(p, of.at) {
			list = append(list, i)
		}
	}
	return list
}

func (m *model) above(i int) (list []int) {
	for ; i >= 0; i = m.procs[i].parent {
		list = append(list, i)
	}
	return list
}

// in reports whether a process is in a session's tree.
func (m *model) in(proc, s int) bool {
	return slices.ContainsFunc(m.roots(s), func(r int) bool { return slices.Contains(m.above(proc), r) })
}

func (m *model) known(s int) bool { return len(m.roots(s)) > 0 }

func (m *model) inAny(proc int) bool {
	for s := range m.sessions {
		if m.in(proc, s) {
			return true
		}
	}
	return false
}

// ofTree reports whether a line belongs to a session's tree, or to no known tree if the
// session's server is unknown.
func (m *model) ofTree(l *modelLine, s int) bool {
	if m.known(s) {
		return m.in(l.proc, s)
	}
	return !m.inAny(l.proc)
}

func (m *model) sameTree(a, b int) bool {
	if a == b || !m.known(a) && !m.known(b) {
		return true
	}
	return slices.ContainsFunc(m.roots(a), func(r int) bool { return slices.Contains(m.roots(b), r) })
}

func (m *model) overlaps(i int) bool {
	for j := range m.calls {
		a, b := &m.calls[i], &m.calls[j]
		if i != j && m.sameTree(a.session, b.session) && a.start <= m.until(b) && b.start <= m.until(a) {
			return true
		}
	}
	return false
}

func (m *model) repeated(i int) bool {
	for j := range m.calls {
		if i != j && m.calls[i].id == m.calls[j].id {
			return true
		}
	}
	return false
}

func within(c *modelCall, until, at uint64) bool { return c.start <= at && at <= until }

func (l *modelLine) effect() bool {
	return l.value != "" && !l.fail && !strings.HasSuffix(l.verb, "_blocked") && l.verb != "mount_source"
}

func (l *modelLine) text() string {
	verb := map[string]string{"script": "exec", "mount_source": "mount"}[l.verb]
	if verb == "" {
		verb = l.verb
	}
	if l.fail && !strings.HasSuffix(verb, "_blocked") {
		verb = "failed-" + verb
	}
	return verb + " " + l.value
}

// modelHost reports whether a call names a host with this port.
func modelHost(c *modelCall, port string) bool {
	return slices.ContainsFunc(c.targets, func(t string) bool {
		return strings.HasPrefix(t, "host") && strings.HasSuffix(t, ":"+port)
	})
}

// address returns the port that a line connects to, if it is one of an IP address.
func (l *modelLine) address() (port string, ok bool) {
	i := strings.LastIndexByte(l.value, ':')
	return l.value[i+1:], i >= 0 && l.verb == "connect" && !strings.HasPrefix(l.value, "host")
}

func modelMatches(c *modelCall, l *modelLine) bool { return modelDepth(c, l) >= 0 }

// modelDepth is how closely a call names the value of a line: the length of its longest
// target that is the value or a directory above it, or -1.
func modelDepth(c *modelCall, l *modelLine) int {
	depth := -1
	value := l.value
	if l.verb == "connect" {
		value = strings.Replace(value, "[::ffff:1.2.3.4]", "1.2.3.4", 1)
	}
	hasDotDot := slices.Contains(strings.Split(value, "/"), "..")
	for _, t := range c.targets {
		if t = strings.Replace(t, "[::ffff:1.2.3.4]", "1.2.3.4", 1); t == value || !hasDotDot && (strings.HasPrefix(value, t+"/") || t == "/" && value[0] == '/') {
			depth = max(depth, len(t))
		}
	}
	return depth
}

func (m *model) proxy(proc int) bool {
	p := &m.procs[proc]
	return slices.ContainsFunc(m.sessions, func(s modelSession) bool { return p.has(s.space, s.proxy) && m.lived(p, s.at) })
}

func (m *model) denied(d *modelCall, effects map[string]bool) (unsure bool) {
	for k := range m.lines {
		l := &m.lines[k]
		if !l.effect() || l.at <= d.end {
			continue
		}
		port, address := l.address()
		named, host := modelMatches(d, l), address && modelHost(d, port)
		if !named && !host {
			continue
		}
		excused, maybe := false, false
		for j := range m.calls {
			c := &m.calls[j]
			if c.allow && within(c, m.until(c), l.at) && m.ofTree(l, c.session) {
				excused = excused || named && modelDepth(c, l) >= modelDepth(d, l)
				maybe = maybe || modelMatches(c, l) || address && modelHost(c, port)
			}
		}
		if named && !excused {
			effects[l.text()] = true
		}
		unsure = unsure || host && !maybe
	}
	return unsure
}

// world makes the inputs of the tool from the model.
func (m *model) world(rnd *rand.Rand) world {
	var k, p strings.Builder
	number := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	for i, proc := range m.procs {
		fmt.Fprintf(&k, "%d %d %d-%s", proc.depth, proc.pid, proc.start, number(proc.end))
		if proc.space != 0 {
			fmt.Fprintf(&k, " %d:%d", proc.space, proc.own)
		}
		k.WriteString("\n")
		for _, l := range m.lines {
			if l.proc == i {
				fail := ""
				if l.fail {
					fail = "!"
				}
				fmt.Fprintf(&k, " %d %s%s %s\n", l.at, fail, l.verb, l.value)
			}
		}
	}
	// The lines of the proxies interleave in any order; each proxy keeps its own order.
	queues := make([][]string, len(m.sessions))
	for s, of := range m.sessions {
		queues[s] = append(queues[s], fmt.Sprintf("session %c %d %d %d @%d %s", 'A'+s, of.proxy, of.server, of.at, of.spaceSaid(), strings.Join(of.denies, " ")))
		if of.reload != nil {
			queues[s] = append(queues[s], fmt.Sprintf("reload %c %s", 'A'+s, strings.Join(of.reload, " ")))
		}
		for i, r := range of.requests {
			verb := "request"
			if r.denied {
				verb = "refuse-request"
			}
			queues[s] = append(queues[s], fmt.Sprintf("%s %c %d m%d %d-%d %s", verb, 'A'+s, i, i, r.start, r.end, strings.Join(r.targets, " ")))
		}
	}
	for i, c := range m.calls {
		verb, outcome, targets := "allow", " completed", strings.Join(c.targets, " ")
		if c.cancelled {
			outcome = " cancelled"
		}
		if c.end == 0 {
			outcome = ""
		}
		if !c.allow {
			verb, outcome = "deny", ""
		}
		if c.cut {
			targets += " …"
		}
		queues[c.session] = append(queues[c.session], fmt.Sprintf("%s %c %d %s tool %d-%s%s %s", verb, 'A'+c.session, i, c.id, c.start, number(c.end), outcome, targets))
	}
	for s := range m.sessions {
		queues[s] = append(queues[s], fmt.Sprintf("end %c", 'A'+s))
	}
	for left := true; left; {
		left = false
		for range 3 {
			s := rnd.IntN(len(queues))
			if len(queues[s]) > 0 {
				p.WriteString(queues[s][0] + "\n")
				queues[s] = queues[s][1:]
			}
		}
		for _, q := range queues {
			left = left || len(q) > 0
		}
	}
	return world{kernel: k.String(), policy: p.String()}
}

func TestAgainstTheModel(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	for seed := range uint64(n) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		m := randomModel(rnd)
		if len(m.calls) == 0 {
			continue
		}
		bindings, codes := m.say()
		w := m.world(rnd)
		j := w.run(t)
		list := j.all()
		list = slices.DeleteFunc(list, func(c string) bool {
			return c == schemas.AmbiguityNoKernelEvents
		})
		for _, note := range j.health.Notes {
			if counts, ok := strings.CutPrefix(note, "s6_windows: "); ok {
				list = append(list, "note "+counts)
			}
		}
		slices.Sort(list)
		if got := strings.Join(list, "\n"); got != codes || j.bindings() != bindings {
			t.Fatalf("seed %d\nkernel\n%spolicy\n%s\nbindings\n%s\nmodel\n%s\ncodes\n%s\nmodel\n%s", seed, w.kernel, w.policy, j.bindings(), bindings, got, codes)
		}
		// Another interleaving of the proxies' lines changes no byte.
		if again := m.world(rnd).run(t); string(again.out) != string(j.out) {
			t.Fatalf("seed %d: another order of the log's lines gives another stream\n%s\n%s", seed, j.out, again.out)
		}
	}
}

package main

import (
	"cmp"
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
	start, end    uint64
}

type modelCall struct {
	session    int
	id         string
	allow      bool
	start, end uint64 // end 0: not finished
	targets    []string
	cut        bool
}

type modelSession struct {
	proxy, server uint32
	at            uint64
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

// roots returns the processes that are a session's server.
func (m *model) roots(s int) (list []int) {
	for i := range m.procs {
		p, of := &m.procs[i], &m.sessions[s]
		if p.parent >= 0 && p.pid == of.server && m.procs[p.parent].pid == of.proxy && m.lived(p, of.at) {
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

func (m *model) own(i int) bool {
	return m.calls[i].end != 0 && !m.overlaps(i) && !m.repeated(i)
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

// say returns the expected bindings and codes in short form.
func (m *model) say() (bindings, codes string) {
	all := map[string]bool{}
	class := map[string]int{}
	for i := range m.lines {
		class[m.class(&m.lines[i], all)]++
	}
	all[fmt.Sprintf("note call=%d setup=%d idle=%d agent=%d", class["call"], class["setup"], class["idle"], class["agent"])] = true
	for s := range m.sessions {
		if !m.known(s) {
			all["tool_server_unknown:srv-"+string(rune('A'+s))] = true
		}
	}
	var out []string
	for i := range m.calls {
		out = append(out, m.bind(i, all))
	}
	m.execs(all)
	var list []string
	for code := range all {
		list = append(list, code)
	}
	slices.Sort(list)
	return strings.Join(out, "\n"), strings.Join(list, "\n")
}

func (m *model) class(l *modelLine, codes map[string]bool) string {
	call, idle, tree := false, false, false
	for s := range m.sessions {
		if !m.in(l.proc, s) {
			continue
		}
		tree = true
		inside, last := false, -1
		for i := range m.calls {
			c := &m.calls[i]
			if c.session != s {
				continue
			}
			inside = inside || within(c, m.until(c), l.at)
			if m.until(c) < l.at && (last < 0 || cmp.Or(cmp.Compare(m.calls[last].end, c.end), -strings.Compare(m.calls[last].id, c.id)) < 0) {
				last = i
			}
		}
		call = call || inside
		idle = idle || last >= 0
	}
	switch {
	case call:
		return "call"
	case idle:
		for s := range m.sessions {
			var ended []*modelCall
			for i := range m.calls {
				if c := &m.calls[i]; c.session == s && m.in(l.proc, s) && m.until(c) < l.at {
					ended = append(ended, c)
				}
			}
			if len(ended) > 0 {
				last := slices.MaxFunc(ended, func(a, b *modelCall) int { return cmp.Or(cmp.Compare(a.end, b.end), strings.Compare(b.id, a.id)) })
				codes["kernel_events_outside_tool_windows:"+last.id] = true
			}
		}
		return "idle"
	case tree, m.proxy(l.proc):
		return "setup"
	}
	return "agent"
}

func (m *model) proxy(proc int) bool {
	p := &m.procs[proc]
	return slices.ContainsFunc(m.sessions, func(s modelSession) bool { return s.proxy == p.pid && m.lived(p, s.at) })
}

func (m *model) execs(codes map[string]bool) {
	for i := range m.lines {
		l := &m.lines[i]
		if l.verb != "exec" && l.verb != "script" || l.fail || m.inAny(l.proc) || m.proxy(l.proc) {
			continue
		}
		ancestor := false
		for p := range m.procs {
			ancestor = ancestor || m.proxy(p) && slices.Contains(m.above(p), l.proc)
		}
		if !ancestor {
			codes["exec_without_tool_call:"+l.value] = true
		}
	}
}

func (m *model) bind(i int, codes map[string]bool) string {
	c := &m.calls[i]
	own, n := m.own(i), 0
	effects := map[string]bool{}
	matched, unmatched, unsure := false, false, false
	for k := range m.lines {
		l := &m.lines[k]
		if own && !within(c, c.end, l.at) || !m.ofTree(l, c.session) {
			continue
		}
		n++
		if own && c.allow && l.value != "" {
			effects[l.text()] = true
			matched = matched || l.effect()
			if l.effect() && !modelMatches(c, l) {
				_, address := l.address()
				maybe := address && slices.ContainsFunc(c.targets, func(t string) bool { return strings.HasPrefix(t, "host") })
				unsure, unmatched = unsure || maybe, unmatched || !maybe
			}
		}
	}
	if !c.allow {
		if m.denied(c, effects) {
			codes["tool_call_targets_unknown:"+c.id] = true
		}
		if len(effects) > 0 {
			codes["denied_call_with_kernel_effects:"+c.id] = true
		}
	}
	if m.overlaps(i) {
		codes["tool_calls_overlap:"+c.id] = true
	}
	if m.repeated(i) {
		codes["tool_call_id_repeated:"+c.id] = true
	}
	if c.end == 0 {
		codes["tool_call_not_finished:"+c.id] = true
	}
	if own && c.allow && n == 0 {
		codes["decision_without_kernel_events:"+c.id] = true
	}
	if own && c.allow && m.known(c.session) {
		switch {
		case matched && len(c.targets) == 0, unmatched && c.cut, unsure && !unmatched:
			codes["tool_call_targets_unknown:"+c.id] = true
		case unmatched:
			codes["tool_call_effects_outside_request:"+c.id] = true
		}
	}
	scope, window, verdict := "run", "run", "deny"
	if m.known(c.session) {
		scope = "tool_server"
	}
	if own {
		window = "own"
	}
	if c.allow {
		verdict = "allow"
	}
	var list []string
	for e := range effects {
		list = append(list, e)
	}
	slices.Sort(list)
	return fmt.Sprintf("%s %s %d %s %s [%s]", c.id, verdict, n, scope, window, strings.Join(list, ", "))
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
		fmt.Fprintf(&k, "%d %d %d-%s\n", proc.depth, proc.pid, proc.start, number(proc.end))
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
		queues[s] = append(queues[s], fmt.Sprintf("session %c %d %d %d", 'A'+s, of.proxy, of.server, of.at))
	}
	for i, c := range m.calls {
		verb, outcome, targets := "allow", " completed", strings.Join(c.targets, " ")
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
	n := 500
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
		list := slices.Clone(j.report.Ambiguities)
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

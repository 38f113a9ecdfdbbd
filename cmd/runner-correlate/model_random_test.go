package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomModel is small and crowded, so that calls, sessions and targets often coincide.
func randomModel(rnd *rand.Rand) *model {
	m := &model{}
	pid := func() uint32 { return uint32(10 + rnd.IntN(12)) }
	n := 3 + rnd.IntN(10)
	depth, path := 0, []int{}
	for i := range n {
		if i > 0 {
			depth = rnd.IntN(min(len(path), 4) + 1)
		}
		path = append(path[:min(depth, len(path))], i)
		depth = len(path) - 1
		p := modelProc{parent: -1, depth: depth, pid: pid(), start: uint64(1 + rnd.IntN(20))}
		if depth > 0 {
			p.parent = path[depth-1]
			p.space = m.procs[p.parent].space // most children are where their parent is
		}
		if rnd.IntN(6) == 0 {
			p.space = uint32(100 + rnd.IntN(2))
		}
		if p.space != 0 {
			p.own = pid()
		}
		if rnd.IntN(3) == 0 {
			p.end = p.start + uint64(rnd.IntN(60))
		}
		m.procs = append(m.procs, p)
	}
	paths := []string{"/", "/w", "/w/a", "/w/a/b", "/w/ab", "/w/a.t", "/x", "/w/l/../a", "/x/..", "/bin/t"}
	peers := []string{"1.2.3.4:5", "[::ffff:1.2.3.4]:5", "9.9.9.9:6"}
	names := slices.Concat(paths, peers, []string{"host:5", "host:6"}) // what an argument can be
	verbs := []string{"read", "write", "exec", "script", "connect", "unlink", "connect_blocked", "file_blocked", "mount_source", "uring"}
	for range rnd.IntN(40) {
		l := modelLine{at: uint64(1 + rnd.IntN(100)), proc: rnd.IntN(n), verb: verbs[rnd.IntN(len(verbs))], value: paths[rnd.IntN(len(paths))], fail: rnd.IntN(6) == 0}
		switch l.verb {
		case "uring":
			l.value = ""
		case "connect", "connect_blocked":
			l.value = peers[rnd.IntN(len(peers))]
		case "mount_source": // the second line of a mount
			first := l
			first.verb, first.value = "mount", paths[rnd.IntN(len(paths))]
			m.lines = append(m.lines, first)
		}
		m.lines = append(m.lines, l)
	}
	for range 1 + rnd.IntN(3) {
		s := modelSession{proxy: pid(), server: pid(), at: uint64(1 + rnd.IntN(40))}
		if p := &m.procs[rnd.IntN(n)]; p.parent >= 0 && rnd.IntN(4) > 0 {
			above := &m.procs[p.parent]
			if s.proxy, s.server = above.pid, p.pid; p.space != 0 && rnd.IntN(4) > 0 {
				s.proxy, s.server, s.space = above.own, p.own, p.space
			}
		}
		if rnd.IntN(10) == 0 {
			s.server = 0
		}
		for range rnd.IntN(3) / 2 {
			s.denies = append(s.denies, paths[rnd.IntN(len(paths))])
		}
		if rnd.IntN(6) == 0 {
			s.reload = append([]string{}, paths[rnd.IntN(len(paths))])
		}
		for range rnd.IntN(4) - 1 {
			r := modelRequest{start: uint64(10 + rnd.IntN(80)), denied: rnd.IntN(4) == 0}
			r.end = r.start + uint64(rnd.IntN(15))
			if rnd.IntN(2) == 0 {
				r.targets = []string{names[rnd.IntN(len(names))]}
			}
			s.requests = append(s.requests, r)
		}
		m.sessions = append(m.sessions, s)
	}
	for i := range rnd.IntN(6) {
		c := modelCall{session: rnd.IntN(len(m.sessions)), id: fmt.Sprintf("tc_%d", i), allow: rnd.IntN(3) > 0, start: uint64(10 + rnd.IntN(80))}
		c.end = c.start + uint64(rnd.IntN(25))
		if c.allow && rnd.IntN(12) == 0 {
			c.end = 0
		}
		if rnd.IntN(8) == 0 {
			c.id = "tc_0"
		}
		for range rnd.IntN(3) {
			if t := names[rnd.IntN(len(names))]; !slices.Contains(c.targets, t) {
				c.targets = append(c.targets, t)
			}
		}
		c.cut = rnd.IntN(8) == 0
		c.cancelled = c.allow && c.end != 0 && rnd.IntN(6) == 0
		m.calls = append(m.calls, c)
	}
	// The layer's order; ends of equal ids and starts make a difference too.
	slices.SortStableFunc(m.calls, func(a, b modelCall) int {
		return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), strings.Compare(verdictOf(a), verdictOf(b)),
			boolInt(b.cancelled)-boolInt(a.cancelled), cmp.Compare(a.session, b.session))
	})
	return m
}

func verdictOf(c modelCall) string {
	if c.allow {
		return "allow"
	}
	return "deny"
}

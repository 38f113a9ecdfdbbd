package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// What the model expects of the report: each line is looked at for each session and call.

// say returns the expected bindings and codes in short form.
func (m *model) say() (bindings, codes string) {
	all := map[string]bool{}
	class := map[string]int{}
	seen := make([]modelSeen, len(m.calls))
	for k := range m.lines {
		class[m.class(&m.lines[k], seen, all)]++
	}
	note := fmt.Sprintf("note call=%d setup=%d idle=%d agent=%d", class["call"], class["setup"], class["idle"], class["agent"])
	if class["request"] > 0 {
		note += fmt.Sprintf(" request=%d", class["request"])
	}
	all[note] = true
	for s := range m.sessions {
		if m.sessions[s].reload != nil {
			all["policy_session_reloaded:srv-"+string(rune('A'+s))] = true
		}
		if !m.known(s) {
			all[map[bool]string{true: "tool_server_elsewhere", false: "tool_server_unknown"}[m.sessions[s].server == 0]+":srv-"+string(rune('A'+s))] = true
		}
	}
	var out []string
	for i := range m.calls {
		out = append(out, m.bind(i, &seen[i], all))
	}
	m.execs(all)
	var list []string
	for code := range all {
		list = append(list, code)
	}
	slices.Sort(list)
	return strings.Join(out, "\n"), strings.Join(list, "\n")
}

// modelSeen is what was seen of a call of a known server.
type modelSeen struct {
	lines                             int
	effects                           map[string]bool
	effect, outside, maybeHost, mixed bool
}

// class returns the class of a line, and takes it in for the calls of its trees.
func (m *model) class(l *modelLine, seen []modelSeen, codes map[string]bool) string {
	var in, idle []int
	call, request := false, false
	for s := range m.sessions {
		if !m.in(l.proc, s) {
			continue
		}
		in = append(in, s)
		call = m.ofCalls(l, s, seen, codes) || call
		request = request || len(m.running(s, l.at)) > 0
		if m.lastEnded(s, l.at) >= 0 {
			idle = append(idle, s)
		}
	}
	for s := range m.sessions {
		if l.effect() && slices.Contains(in, s) {
			m.onDenied(l, s, in, codes)
		}
	}
	list := func(code string) {
		if l.effect() {
			codes[code+":"+l.text()] = true
		}
	}
	switch {
	case call:
		return "call"
	case request:
		for _, s := range in {
			if len(m.running(s, l.at)) > 0 && l.effect() {
				list("server_effect_in_requests")
				m.ofRequests(l, s, codes)
			}
		}
		return "request"
	case len(idle) > 0:
		list("server_effect_between_calls")
		for _, s := range idle {
			c := m.closest(l, s, l.at)
			if c < 0 || !m.calls[c].cancelled {
				codes["kernel_events_outside_tool_windows:"+m.calls[m.lastEnded(s, l.at)].id] = true
			}
		}
		return "idle"
	case len(in) > 0:
		list("server_effect_before_calls")
		return "setup"
	case m.proxy(l.proc):
		return "setup"
	}
	return "agent"
}

func (m *model) active(s int, at uint64) (list []int) {
	for i := range m.calls {
		if c := &m.calls[i]; c.session == s && within(c, m.until(c), at) {
			list = append(list, i)
		}
	}
	return list
}

// beside reports whether another call of the session runs at the same time.
func (m *model) beside(i int) bool {
	for j := range m.calls {
		a, b := &m.calls[i], &m.calls[j]
		if i != j && a.session == b.session && a.start <= m.until(b) && b.start <= m.until(a) {
			return true
		}
	}
	return false
}

func (m *model) lastEnded(s int, at uint64) int {
	last := -1
	for i := range m.calls {
		c := &m.calls[i]
		if c.session != s || m.until(c) >= at {
			continue
		}
		if last < 0 || cmp.Or(cmp.Compare(m.calls[last].end, c.end), -strings.Compare(m.calls[last].id, c.id)) < 0 {
			last = i
		}
	}
	return last
}

// closest returns the call that had ended before a time and names the line most closely.
func (m *model) closest(l *modelLine, s int, at uint64) int {
	best, depth := -1, -1
	for i := range m.calls {
		c := &m.calls[i]
		if c.session != s || !c.allow || c.end == 0 || c.end >= at || l.value == "" {
			continue
		}
		if d := modelDepth(c, l); d > depth || d >= 0 && d == depth && c.end >= m.calls[best].end {
			best, depth = i, d
		}
	}
	return best
}

// modelNear is modelDepth, and 0 for what is beside a target.
func modelNear(c *modelCall, l *modelLine) int {
	if l.value == "" {
		return -1
	}
	if d := modelDepth(c, l); d >= 0 {
		return d
	}
	if slices.Contains(strings.Split(l.value, "/"), "..") {
		return -1
	}
	for _, t := range c.targets {
		i := strings.LastIndex(t, "/")
		if i < 0 {
			continue
		}
		dir, name := t[:max(i, 1)], t[i+1:]
		draft := strings.HasPrefix(l.value, strings.TrimSuffix(dir, "/")+"/"+name+".") && name != "" && strings.Count(l.value, "/") == strings.Count(t, "/")
		if l.verb == "read" && l.value == dir || draft && (l.verb == "write" || l.verb == "unlink") {
			return 0
		}
	}
	return -1
}

// mayBeHost reports whether a line may be on a host that a call names.
func (l *modelLine) mayBeHost(targets []string) bool {
	_, address := l.address()
	return address && slices.ContainsFunc(targets, func(t string) bool { return strings.HasPrefix(t, "host") })
}

// ofCalls takes in a line of a session's tree for the calls that run, and reports whether any does.
func (m *model) ofCalls(l *modelLine, s int, seen []modelSeen, codes map[string]bool) bool {
	active := m.active(s, l.at)
	if len(active) == 0 {
		return false
	}
	if i := active[0]; !m.beside(i) && (m.repeated(i) || m.calls[i].end == 0) {
		return true
	}
	var allowed []int
	for _, i := range active {
		if m.calls[i].allow {
			allowed = append(allowed, i)
		}
	}
	one := -1
	switch {
	case len(active) == 1:
		one = active[0]
	case len(allowed) == 1:
		one = allowed[0]
	case len(allowed) > 1:
		best, tie := -1, true
		for _, i := range allowed {
			d := modelNear(&m.calls[i], l)
			if d < 0 && l.mayBeHost(m.calls[i].targets) {
				d = 0
			}
			if d > best {
				one, best, tie = i, d, false
			} else if d == best {
				tie = true
			}
		}
		if tie {
			one = -1
		}
	}
	if one >= 0 {
		m.ofCall(l, one, &seen[one], codes)
		return true
	}
	named := false
	for _, i := range active {
		c := &m.calls[i]
		seen[i].mixed = true
		named = named || c.allow && (len(c.targets) == 0 && !c.cut || modelNear(c, l) >= 0)
	}
	for _, i := range allowed {
		if l.effect() {
			seen[i].effect = true
			if !named {
				seen[i].unmatched(l, m.calls[i].targets)
			}
		}
	}
	return true
}

func (w *modelSeen) unmatched(l *modelLine, targets []string) {
	if !w.outside {
		w.maybeHost = w.maybeHost || l.mayBeHost(targets)
		w.outside = !l.mayBeHost(targets)
	}
}

// ofCall takes in a line of one call.
func (m *model) ofCall(l *modelLine, i int, w *modelSeen, codes map[string]bool) {
	c := &m.calls[i]
	w.lines++
	if !c.allow {
		return
	}
	if l.effect() {
		own, prior := modelNear(c, l), m.closest(l, c.session, c.start)
		if prior >= 0 && c.end != 0 {
			p := &m.calls[prior]
			deeper := modelDepth(p, l) > own
			switch {
			case own < 0:
				if !p.cancelled {
					codes["tool_call_effects_late:"+c.id], codes["tool_call_effects_late:"+p.id] = true, true
				}
				return
			case deeper && !p.cancelled:
				codes["tool_call_effects_shared:"+c.id], codes["tool_call_effects_shared:"+p.id] = true, true
			}
		}
		if w.effect = true; own < 0 {
			w.unmatched(l, c.targets)
		}
	}
	if l.value != "" {
		if w.effects == nil {
			w.effects = map[string]bool{}
		}
		w.effects[l.text()] = true
	}
}

func (m *model) running(s int, at uint64) (list []*modelRequest) {
	for i := range m.sessions[s].requests {
		if r := &m.sessions[s].requests[i]; !r.denied && r.start <= at && at <= r.end {
			list = append(list, r)
		}
	}
	return list
}

func (m *model) ofRequests(l *modelLine, s int, codes map[string]bool) {
	var first *modelRequest
	named := false
	number := 0
	for _, r := range m.running(s, l.at) {
		c := modelCall{targets: r.targets}
		if modelDepth(&c, l) >= 0 || l.mayBeHost(r.targets) {
			return
		}
		for _, t := range r.targets {
			named = named || !strings.HasPrefix(t, "host") || t != ""
		}
		if first == nil || cmp.Or(cmp.Compare(r.start, first.start), cmp.Compare(r.end, first.end)) < 0 {
			first = r
		}
	}
	for i := range m.sessions[s].requests {
		if &m.sessions[s].requests[i] == first {
			number = i
		}
	}
	if prior := m.closest(l, s, first.start); prior >= 0 {
		if !m.calls[prior].cancelled {
			codes["tool_call_effects_late:"+m.calls[prior].id] = true
		}
	} else if named {
		codes[fmt.Sprintf("request_effects_outside_request:m%d", number)] = true
	}
}

// onDenied: rules of a session, and its denied requests, name what its tree must not touch.
func (m *model) onDenied(l *modelLine, s int, in []int, codes map[string]bool) {
	of := &m.sessions[s]
	check := func(target string, since uint64) {
		c := modelCall{targets: []string{target}}
		depth := modelDepth(&c, l)
		if depth < 0 || l.at < since {
			return
		}
		for i := range m.calls {
			if a := &m.calls[i]; a.allow && slices.Contains(in, a.session) && within(a, m.until(a), l.at) && modelDepth(a, l) >= depth {
				return
			}
		}
		codes["effect_on_denied_target:"+strings.Replace(target, "[::ffff:1.2.3.4]", "1.2.3.4", 1)] = true
	}
	for _, t := range slices.Concat(of.denies, of.reload) {
		check(t, 0)
	}
	for _, r := range of.requests {
		if r.denied {
			for _, t := range r.targets {
				check(t, r.end)
			}
		}
	}
}

func (m *model) execs(codes map[string]bool) {
	first := m.sessions[0].at
	for _, s := range m.sessions {
		first = min(first, s.at)
	}
	for k := range m.lines {
		l := &m.lines[k]
		if l.verb != "exec" && l.verb != "script" || l.fail || m.inAny(l.proc) || m.proxy(l.proc) {
			continue
		}
		launched := uint64(0)
		for s := range m.sessions {
			if !slices.ContainsFunc(m.calls, func(c modelCall) bool { return c.session == s }) {
				continue
			}
			for p := range m.procs {
				of := &m.procs[p]
				if of.has(m.sessions[s].space, m.sessions[s].proxy) && m.lived(of, m.sessions[s].at) && p != l.proc && slices.Contains(m.above(p), l.proc) {
					launched = max(launched, m.sessions[s].at)
				}
			}
		}
		switch {
		case l.at >= first && l.at > launched:
			codes["exec_without_tool_call:"+l.value] = true
		case l.at < first && launched == 0:
			codes["exec_before_sessions:"+l.value] = true
		}
	}
}

// across reports whether the call runs at the same time as another of its tree, where the tree has
// calls of several sessions.
func (m *model) across(i int) bool {
	several := false
	for j := range m.calls {
		several = several || m.calls[j].session != m.calls[i].session && m.sameTree(m.calls[i].session, m.calls[j].session)
	}
	return several && m.overlaps(i)
}

func (m *model) bind(i int, w *modelSeen, codes map[string]bool) string {
	c := &m.calls[i]
	known := m.known(c.session)
	together := m.overlaps(i)
	if known {
		together = w.mixed || m.across(i)
	}
	own := c.end != 0 && !together && !m.repeated(i)
	n, effects := 0, map[string]bool{}
	for k := range m.lines {
		l := &m.lines[k]
		if !m.ofTree(l, c.session) || own && (known || !within(c, c.end, l.at)) {
			continue
		}
		n++
		if own && c.allow && l.value != "" {
			effects[l.text()] = true
		}
	}
	if own && known {
		n, effects = w.lines, w.effects
	}
	if !c.allow {
		effects = map[string]bool{}
		if m.denied(c, effects) || c.cut {
			codes["tool_call_targets_unknown:"+c.id] = true
		}
		if len(effects) > 0 {
			codes["denied_call_with_kernel_effects:"+c.id] = true
		}
		if len(c.targets) == 0 && !c.cut {
			codes["denied_call_not_watched:"+c.id] = true
		}
	}
	for code, is := range map[string]bool{"tool_calls_overlap": together, "tool_call_id_repeated": m.repeated(i), "tool_call_not_finished": c.end == 0,
		"decision_without_kernel_events": own && c.allow && n == 0, "tool_call_cancelled": c.cancelled} {
		if is {
			codes[code+":"+c.id] = true
		}
	}
	if c.allow && known && !m.repeated(i) && (own || together) {
		switch {
		case w.effect && len(c.targets) == 0 && !c.cut:
			codes["tool_call_names_nothing:"+c.id] = true
		case w.outside && c.cut, w.maybeHost && !w.outside:
			codes["tool_call_targets_unknown:"+c.id] = true
		case w.outside:
			codes["tool_call_effects_outside_request:"+c.id] = true
		}
	}
	scope, window, verdict := "run", "run", "deny"
	if known {
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

package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// policyLog is the decision log up to its first bad line.
type policyLog struct {
	sessions  []*session
	decisions []*decision
	refused   uint64
	logEnd
	room  layerRoom
	index *targetIndex // of what the calls name

	byHex    map[string]*session
	byCall   map[callKey]*decision
	requests map[callKey]*request  // allowed ones without an end
	last     map[attemptKey]uint64 // attempt
	interned map[string]string     // strings that many lines share
}

// session is one run of a policy proxy.
type session struct {
	number        int
	source, hex   string   // the tool whose session it is, and its random name
	name          string   // in text form
	policies      []string // digests: the first, and what it read again; the last decides
	ktime         uint64
	proxy, server uint32 // process ids
	space         uint32 // the pid namespace in which they are numbers; 0: the initial one, or nobody said it
	seq           uint64 // of the next line
	made          uint64 // decisions
	finished      bool
	cwd           bool // its first line names a directory, as in logs that say what a rule looked at
	windows       *windows
	denies        []uint32        // targets that rules that deny name, each once
	named         map[uint32]bool // those
	requests      []*request      // of the client, that are no tool calls
	busy          []busy          // when they ran, in order
	known         bool            // its server is in the process tree
	root          int             // sessions of one tree have the same root
	lines         uint64          // kernel lines of its tree
}

// decision is one decision, and what became of the call.
type decision struct {
	event      schemas.PolicyEvent // without its seq
	rawID      string              // as the client wrote it
	digest     string              // of its arguments, "" if it is not known
	sdkID      string              // of the SDK's call that was found by it
	session    *session            // nil for a decision of another proxy
	number     uint64              // of the call in its session
	start, end uint64
	timed      bool     // start is known
	ended      bool     // end is known
	named      []uint32 // the targets as the log has them, in its order
	targets    []uint32
	hosts      []uint32 // the targets that represent the hosts among them
	excuses    []uint32 // the targets, and hosts among them, that its rule looked at: a mention excuses nothing
	cut        bool     // there were more targets
	repeated   bool     // its id names another call too

	received, endReceived uint64 // when its lines of the log were read; 0 is unknown
	observed
}

func (d *decision) allowed() bool { return d.event.Decision == schemas.DecisionAllow }
func (d *decision) denied() bool  { return d.event.Decision == schemas.DecisionDeny }

// cancelled reports whether the client cancelled the call: its server may go on.
func (d *decision) cancelled() bool { return d.event.Outcome == schemas.OutcomeCancelled }

type callKey struct {
	session     *session
	call, start uint64
}

type attemptKey struct {
	session *session
	call    uint64
}

func newPolicyLog(runID string) *policyLog {
	return &policyLog{room: layerRoom{runID: runID}, index: newTargetIndex(), byHex: map[string]*session{}, byCall: map[callKey]*decision{}, requests: map[callKey]*request{}, last: map[attemptKey]uint64{}, interned: map[string]string{}}
}

func (p *policyLog) present() bool { return len(p.sessions)+len(p.decisions) > 0 }
func (p *policyLog) count() uint64 { return uint64(len(p.decisions)) }

func (p *policyLog) stamp(line uint64) stamp {
	d := p.decisions[line]
	return stamp{received: d.received, endReceived: d.endReceived, ended: d.ended, hasTimes: d.timed, start: d.start, end: d.end}
}

func (p *policyLog) note() []any {
	if len(p.sessions) == 0 {
		return []any{p.count()}
	}
	return []any{p.count(), uint64(len(p.sessions)), p.refused}
}

// filesNotes are the notes about the policy files of the sessions.
func (p *policyLog) filesNotes() (list []string) {
	digests := map[string]bool{}
	for _, s := range p.sessions {
		for _, digest := range s.policies {
			digests[digest] = true
		}
	}
	switch n := uint64(len(digests)); n {
	case 0:
	case 1:
		list = append(list, schemas.NoteToolPolicy.Format(n, p.sessions[0].policies[0]))
	default:
		list = append(list, schemas.NoteToolPolicy.Format(n))
	}
	if n := uint64(len(p.ofProcesses())); n > 0 {
		list = append(list, schemas.NoteProcessAPI.Format(n))
	}
	return list
}

func (p *policyLog) each(f func(line []byte) error) error {
	for i, d := range p.decisions {
		e := d.event
		e.Targets, e.TargetsCut = p.index.texts(d.named), d.cut
		e.Schema, e.RunID, e.Seq, e.SourceEventType = schemas.SchemaPolicyEvent, p.room.runID, uint64(i), schemas.LogDecision
		if d.sdkID != "" {
			e.ArgumentsDigest = d.digest
		}
		line, err := schemas.Marshal(e)
		if err == nil {
			err = f(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// line takes in one line. The layer ends at the first bad one.
func (p *policyLog) line(l logLine) {
	if p.bad.line > 0 || p.room.full || len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	if why := p.take(l); why != "" {
		p.bad = problem{l.number, why}
	}
}

func (p *policyLog) take(l logLine) (why string) {
	line := l.text
	if slices.ContainsFunc(sourceMarks[:], func(mark []byte) bool { return bytes.Contains(line, mark) }) {
		if d, err := schemas.ParseDecisionLine(line); err == nil {
			return p.proxyLine(d, l.received)
		}
	}
	v, ok := object(line)
	source, _ := v["source"].(string)
	switch kind, _ := v["type"].(string); {
	case !ok:
		return schemas.WhyJSON
	case !schemas.IsLogSource(source):
		return p.foreign(v, l.received)
	case !schemas.IsLogType(kind):
		return schemas.WhyType
	}
	return schemas.WhyField
}

// sourceMarks are what a line of ours contains.
var sourceMarks = [...][]byte{[]byte(`"` + schemas.LogSource + `"`), []byte(`"` + schemas.LogSourceProc + `"`)}

// object decodes a JSON object. It returns no keys for any other JSON value.
func object(line []byte) (map[string]any, bool) {
	var v any
	if err := schemas.Unmarshal(line, &v); err != nil {
		return nil, false
	}
	m, _ := v.(map[string]any)
	return m, true
}

// foreign takes in a decision of another proxy.
func (p *policyLog) foreign(v map[string]any, received uint64) (why string) {
	if v["type"] != schemas.LogDecision {
		return schemas.WhyType
	}
	data, _ := v["data"].(map[string]any)
	text := func(m map[string]any, key string) string {
		s, _ := m[key].(string)
		return p.intern(schemas.Text(strings.TrimSpace(s)))
	}
	id, _ := data["tool_call_id"].(string)
	d := &decision{rawID: strings.TrimSpace(id), received: received}
	d.event = schemas.PolicyEvent{Source: text(v, "source"), ToolCallID: schemas.Text(d.rawID), Tool: text(data, "tool"), Decision: text(data, "decision"),
		Outcome: text(data, "outcome"), ReasonCode: text(data, "reason_code"), RuleID: text(data, "rule_id")}
	if e := &d.event; e.Source == "" || e.ToolCallID == "" || e.Tool == "" || e.Decision == "" {
		return schemas.WhyField
	}
	p.add(d)
	return ""
}

// add puts a decision into the layer, if it has room for one more.
func (p *policyLog) add(d *decision) {
	e := d.event
	e.Targets, e.TargetsCut, e.ArgumentsDigest = p.index.texts(d.named), d.cut, d.digest // which it may have
	if p.room.take(e) {
		p.decisions = append(p.decisions, d)
	}
}

// proxyLine takes in a line of runner-policy or runner-proc.
func (p *policyLog) proxyLine(d *schemas.DecisionLine, received uint64) (why string) {
	s := p.byHex[d.Session]
	if d.Started != nil {
		return p.started(s, d.Started, d.Source)
	}
	switch {
	case s == nil || d.Seq != s.seq:
		return schemas.WhySeq
	case s.finished, s.source != d.Source:
		return schemas.WhyConflict
	}
	s.seq++
	switch {
	case d.Decision != nil:
		return p.decided(s, d.Decision, received)
	case d.Finished != nil:
		return p.ended(s, d.Finished, received)
	case d.Ended != nil:
		if s.finished = true; d.Ended.Decisions != s.made {
			return schemas.WhyConflict
		}
	case d.Refused != nil:
		p.refused++
	case d.Reloaded != nil:
		s.policies = append(s.policies, p.intern(d.Reloaded.PolicyDigest))
		s.deny(p.index, d.Reloaded.Denies)
	case d.Request != nil && !s.decides(d.Request.PolicyDigest), d.Roots != nil && !s.decides(d.Roots.PolicyDigest):
		return schemas.WhyConflict
	case d.Request != nil:
		return p.requested(s, d.Request)
	case d.RequestFinished != nil:
		return p.requestEnded(s, d.RequestFinished)
	}
	return ""
}

func (p *policyLog) started(s *session, d *schemas.SessionStarted, source string) string {
	switch {
	case s != nil:
		return schemas.WhyConflict
	case d.Seq != 0:
		return schemas.WhySeq
	}
	s = &session{number: len(p.sessions), source: p.intern(source), hex: d.Session, name: schemas.Text(d.Name), policies: []string{p.intern(d.PolicyDigest)}, ktime: d.KtimeNS, proxy: d.ProxyPID, server: d.ServerPID, seq: 1, cwd: d.Cwd != "", named: map[uint32]bool{}}
	if d.PIDNS != schemas.InitialPIDNamespace {
		s.space = d.PIDNS
	}
	s.root = s.number
	s.deny(p.index, d.Denies)
	p.sessions = append(p.sessions, s)
	p.byHex[d.Session] = s
	return ""
}

// deny takes in what rules that deny name. What a file named before it was read again stays:
// an effect on it has no time within the session at which the rule surely no longer held.
func (s *session) deny(index *targetIndex, list []string) {
	for _, target := range list {
		if n := index.number(schemas.TargetEndpoint(target)); !s.named[n] {
			s.named[n], s.denies = true, append(s.denies, n)
		}
	}
}

// decides reports whether the session decides by the file with this digest.
func (s *session) decides(digest string) bool { return s.policies[len(s.policies)-1] == digest }

func (p *policyLog) decided(s *session, d *schemas.ToolDecision, received uint64) string {
	at, attempts := callKey{s, d.Call, d.StartNS}, attemptKey{s, d.Call}
	switch {
	case d.Decision == schemas.DecisionDeny && d.EndNS < d.StartNS:
		return schemas.WhyField
	case p.byCall[at] != nil || p.last[attempts] >= d.Attempt || !s.decides(d.PolicyDigest):
		return schemas.WhyConflict
	}
	n := &decision{rawID: d.ToolCallID, session: s, number: d.Call, start: d.StartNS, end: d.EndNS, timed: true,
		ended: d.Decision == schemas.DecisionDeny, cut: d.TargetsCut, received: received, endReceived: received}
	n.digest = d.ArgumentsDigest
	n.event = schemas.PolicyEvent{Source: s.source, ToolCallID: schemas.Text(d.ToolCallID), Tool: p.intern(schemas.Text(d.Tool)),
		Decision: p.intern(d.Decision), ToolCallIDSource: p.intern(schemas.Text(d.ToolCallIDSource)), Outcome: p.intern(d.Outcome),
		ReasonCode: p.intern(d.ReasonCode), RuleID: p.intern(d.RuleID), PolicyDigest: p.intern(d.PolicyDigest), WouldDeny: p.intern(d.WouldDeny)}
	if d.Attempt > 1 {
		n.event.Attempt = d.Attempt
	}
	for _, target := range d.Targets {
		p.index.name(n, target)
	}
	slices.Sort(n.targets)
	if n.excuses = slices.Concat(n.targets, n.hosts); d.Checked != nil || d.ArgumentsDigest != "" || s.cwd { // older logs do not say it
		var looked decision
		for _, target := range d.Checked {
			p.index.name(&looked, target)
		}
		n.excuses = slices.Concat(looked.targets, looked.hosts)
	}
	p.byCall[at], p.last[attempts] = n, d.Attempt
	p.add(n)
	s.made++
	return ""
}

func (p *policyLog) ended(s *session, f *schemas.CallFinished, received uint64) string {
	d := p.byCall[callKey{s, f.Call, f.StartNS}]
	switch {
	case d == nil || d.ended || d.rawID != f.ToolCallID:
		return schemas.WhyConflict
	case f.EndNS < f.StartNS:
		return schemas.WhyField
	}
	d.end, d.ended, d.event.Outcome = f.EndNS, true, p.intern(f.Outcome)
	d.endReceived = received
	return ""
}

// intern returns one shared copy of a string that many lines have.
func (p *policyLog) intern(s string) string {
	if w, ok := p.interned[s]; ok {
		return w
	}
	if len(p.interned) < 1<<12 {
		p.interned[s] = s
	}
	return s
}

func (p *policyLog) close(f logFacts) {
	p.facts, p.bad = f, p.bad.unlessCut(f)
	p.nameProcesses()
	p.facts.stopped = p.facts.stopped || p.room.full
	p.sort()
	p.plan()
}

// sort puts the decisions into the order of the layer. That order must not depend on
// how the writes of several proxies interleave.
func (p *policyLog) sort() {
	slices.SortStableFunc(p.decisions, func(a, b *decision) int {
		switch {
		case !a.timed || !b.timed:
			return cmp.Compare(boolInt(!a.timed), boolInt(!b.timed))
		default:
			return cmp.Or(
				cmp.Compare(a.event.ToolCallID, b.event.ToolCallID), cmp.Compare(a.start, b.start),
				cmp.Compare(a.end, b.end), cmp.Compare(a.event.Tool, b.event.Tool), cmp.Compare(a.event.Decision, b.event.Decision),
				cmp.Compare(a.event.Outcome, b.event.Outcome), cmp.Compare(a.event.ReasonCode, b.event.ReasonCode),
				cmp.Compare(a.event.RuleID, b.event.RuleID), cmp.Compare(a.event.PolicyDigest, b.event.PolicyDigest),
				cmp.Compare(a.event.Attempt, b.event.Attempt), cmp.Compare(a.session.name, b.session.name), cmp.Compare(a.session.server, b.session.server), cmp.Compare(a.session.space, b.session.space),
				slices.Compare(p.index.texts(a.named), p.index.texts(b.named)), cmp.Compare(boolInt(a.cut), boolInt(b.cut)))
		}
	})
	p.byCall, p.requests, p.last, p.interned = nil, nil, nil, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

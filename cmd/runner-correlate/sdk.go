package main

import (
	"bytes"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"

	"github.com/runner-evidence/runner/schemas"
)

// sdkLog is what the agent's SDK reported, up to the first bad line. The agent itself
// wrote it, so it only adds codes and changes nothing else.
type sdkLog struct {
	logEnd
	layerText
	runID    string
	calls    map[string]*sdkCall
	room     schemas.CallRoom
	finished bool // run_finished or run_failed
}

// sdkCall is what was reported of one tool call id.
type sdkCall struct {
	started, completed int
	tool               string              // in text form, from the first event
	digest             string              // of its arguments, from the first event that has one
	joined             *decision           // found by it
	others             map[string]struct{} // other names, from later events
}

func newSDKLog(runID string) *sdkLog { return &sdkLog{runID: runID, calls: map[string]*sdkCall{}} }

// line takes in one line. The layer ends at the first bad one.
func (s *sdkLog) line(l logLine) {
	if s.bad.line > 0 || s.full || len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	if why := s.take(l.text, l.received); why != "" {
		s.bad = problem{l.number, why}
	}
}

func (s *sdkLog) close(f logFacts) {
	s.facts, s.bad = f, s.bad.unlessCut(f)
	s.facts.stopped = s.facts.stopped || s.full
}

func (s *sdkLog) take(line []byte, received uint64) (why string) {
	v, ok := object(line)
	if !ok {
		return schemas.WhyJSON
	}
	// In v large numbers lose digits, and a float looks like an integer.
	var seq struct {
		Seq *uint64 `json:"seq"`
	}
	wrong := json.Unmarshal(line, &seq) != nil || seq.Seq == nil || *seq.Seq != s.n
	kind, _ := v["event_type"].(string)
	kind = strings.TrimSpace(kind)
	switch {
	case !equalsText(v["schema"], schemas.SchemaSDKEvent):
		return schemas.WhySchema
	case !equalsText(v["run_id"], s.runID):
		return schemas.WhyRunID
	case wrong:
		return schemas.WhySeq
	}
	switch kind {
	case schemas.SDKCallStarted, schemas.SDKCallCompleted, schemas.SDKRunFinished, schemas.SDKRunFailed:
	default:
		return schemas.WhyEventType
	}
	// A blank field, or one that is not a string, counts as missing.
	field := func(key string) *string {
		if t, _ := v[key].(string); strings.TrimSpace(t) != "" {
			t = strings.TrimSpace(t)
			return &t
		}
		return nil
	}
	source, id, tool := field("source"), field("tool_call_id"), field("tool")
	e := schemas.SDKEvent{Schema: schemas.SchemaSDKEvent, RunID: s.runID, Seq: s.n, EventType: kind,
		SDKName: text(field("sdk_name")), SDKVersion: text(field("sdk_version")), ToolCallID: text(id), Tool: text(tool)}
	aboutCall := strings.HasPrefix(kind, "tool_call_")
	if source == nil || aboutCall && (id == nil || tool == nil) {
		return schemas.WhyField
	}
	e.Source = schemas.Text(*source)
	if digest := field("arguments_digest"); aboutCall && digest != nil && schemas.ValidDigest(*digest) {
		e.ArgumentsDigest = *digest
	}
	b, err := schemas.Marshal(e)
	if err != nil {
		return schemas.WhyField
	}
	if aboutCall && s.calls[*id] == nil && !s.room.Take(*e.ToolCallID, *e.Tool) {
		s.full = true
	}
	if s.full || !s.add(b, received, schemas.MaxLogLayer) {
		return ""
	}
	if !aboutCall {
		s.finished = true
		return ""
	}
	c := s.calls[*id]
	if c == nil {
		c = &sdkCall{tool: schemas.Text(*tool)}
		s.calls[*id] = c
	}
	if c.digest == "" {
		c.digest = e.ArgumentsDigest
	}
	if kind == schemas.SDKCallStarted {
		c.started++
	} else {
		c.completed++
	}
	if name := schemas.Text(*tool); name != c.tool {
		if c.others == nil {
			c.others = map[string]struct{}{}
		}
		c.others[name] = struct{}{}
	}
	return ""
}

// equalsText reports whether a value is this string, apart from space around it.
func equalsText(v any, want string) bool {
	s, ok := v.(string)
	return ok && strings.TrimSpace(s) == want
}

// text is a string in the form that it has in a layer.
func text(s *string) *string {
	if s == nil {
		return nil
	}
	t := schemas.Text(*s)
	return &t
}

func (s *sdkLog) present() bool { return s.n > 0 }
func (s *sdkLog) note() []any   { return []any{s.n, uint64(len(s.calls))} }

// compare adds the codes of the SDK layer: those of its own lines, and those of the
// comparison with the decisions.
func (s *sdkLog) compare(c codes, p *policyLog) {
	if s.n > 0 && !s.finished {
		c.add(schemas.AmbiguitySDKRunNotFinished)
	}
	decided := s.decided(p)
	for rawID, call := range s.calls {
		id := schemas.Text(rawID)
		if call.completed == 0 {
			c.addFor(notCompleted(decided[rawID]), id)
		}
		if call.started == 0 {
			c.addFor(schemas.AmbiguitySDKNotStarted, id)
		}
		if call.started > 1 || call.completed > 1 {
			c.addFor(schemas.AmbiguitySDKRepeated, id)
		}
	}
	if s.n == 0 || p == nil || !p.present() {
		return
	}
	for _, d := range p.decisions {
		if s.calls[d.rawID] == nil && d.sdkID == "" {
			c.addFor(schemas.AmbiguityNotInSDK, d.event.ToolCallID)
		}
	}
	names := s.names(decided)
	for id, call := range s.calls {
		decisions, name := decided[id], schemas.Text(id)
		if len(decisions) == 0 {
			c.addFor(schemas.AmbiguitySDKUnbound, name)
			continue
		}
		if call.completed > 0 && !slices.ContainsFunc(decisions, func(d *decision) bool { return !d.denied() }) {
			c.addFor(schemas.AmbiguitySDKCompletedDenied, name)
		}
		if code := names.compare(call, decisions); code != "" {
			c.addFor(code, name)
		}
	}
}

// notCompleted is the code of a call that started and did not complete: the decisions may say why.
func notCompleted(decisions []*decision) string {
	for _, d := range decisions {
		if !slices.Contains(schemas.FailedOutcomes, d.event.Outcome) {
			return schemas.AmbiguitySDKNotCompleted
		}
	}
	if len(decisions) == 0 {
		return schemas.AmbiguitySDKNotCompleted
	}
	return schemas.NoteSDKFailed
}

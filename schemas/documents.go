package schemas

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The parsers in this file check one line or document on its own: types, known and
// required keys, closed sets, forms of digests and ids. runner-verify checks whether
// documents agree with each other. The parsers accept the optional keys that other
// implementations write.

// decode decodes strictly into v, a pointer to a struct, and checks that every
// required key is there.
func decode(b []byte, v any) error {
	if err := Unmarshal(b, v); err != nil {
		return err
	}
	var tree any
	if err := Unmarshal(b, &tree); err != nil {
		return err
	}
	return complete(tree, reflect.TypeOf(v).Elem(), "")
}

// head checks schema and run_id, the first two keys of every line and document.
func head(got, want, runID string) error {
	if got != want {
		return fmt.Errorf("schema is %.100q, expected %q", got, want)
	}
	if !validRunIDChars(runID) {
		return fmt.Errorf("run_id is %.100q, expected letters, digits, _ and -", runID)
	}
	return nil
}

// pipeHead is head for records that are only in pipes: the runner's own ids are short.
func pipeHead(got, want, runID string) error {
	if err := head(got, want, runID); err != nil {
		return err
	}
	if !ValidRunID(runID) {
		return fmt.Errorf("run_id has %d characters, at most 128", len(runID))
	}
	return nil
}

// validRunIDChars is the rule for archives, which has no limit of the length.
func validRunIDChars(s string) bool {
	for len(s) > 128 {
		if !ValidRunID(s[:128]) {
			return false
		}
		s = s[128:]
	}
	return ValidRunID(s)
}

// oneOf checks a closed set. An absent optional key reads "".
func oneOf(key, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return fmt.Errorf("%s is %.100q, expected one of %s", key, got, strings.Join(want, ", "))
}

// first returns the first error that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func notEmpty(key, v string) error {
	if v == "" {
		return fmt.Errorf("%s is empty", key)
	}
	return nil
}

// ParseHealth parses observation-health.json.
func ParseHealth(b []byte) (*Health, error) {
	h := new(Health)
	if err := decode(b, h); err != nil {
		return nil, fmt.Errorf("observation health: %w", err)
	}
	err := first(
		head(h.Schema, SchemaHealth, h.RunID),
		notEmpty("platform", h.Platform),
		oneOf("kernel_layer", h.KernelLayer, LayerComplete, LayerPartial, LayerAbsent),
		oneOf("policy_layer", h.PolicyLayer, LayerPresent, LayerAbsent),
		oneOf("sdk_layer", h.SDKLayer, LayerPresent, LayerSelfReported, LayerAbsent),
		oneOf("cgroup_correlation", h.CgroupCorrelation, CorrelationClean, CorrelationPartial, CorrelationFailed),
	)
	// What other implementations may leave out must be right where it is present.
	for _, o := range []struct {
		key, got string
		want     []string
	}{
		{"capture_origin", h.CaptureOrigin, []string{"third_party", "unsupported"}},
		{KeyNetworkCoverage, h.NetworkCoverage, []string{CoverageUnknown, CoverageAbsent, CoverageConnect, CoverageDatagram, CoverageBoth}},
		{KeyEndpointScope, h.EndpointScope, []string{ScopeUnknown, ScopeNotApplicable, ScopeDiagnostic, "peer_set"}},
	} {
		if o.got != "" {
			err = first(err, oneOf(o.key, o.got, o.want...))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("observation health: %w", err)
	}
	return h, nil
}

// ParseReport parses correlation-report.json. ReadReport is for a long one.
func ParseReport(b []byte) (*Report, error) {
	r := new(Report)
	err := decode(b, r)
	if err == nil {
		err = first(head(r.Schema, SchemaReport, r.RunID),
			oneOf("status", r.Status, CorrelationClean, CorrelationPartial, CorrelationFailed))
	}
	if err != nil {
		return nil, fmt.Errorf("correlation report: %w", err)
	}
	for i := range r.Bindings {
		if err := r.Bindings[i].check(); err != nil {
			return nil, fmt.Errorf("correlation report: binding %d: %w", i, err)
		}
	}
	return r, nil
}

// ParseSurface parses capability-surface.json. Its sets are sorted and unique.
func ParseSurface(b []byte) (*Surface, error) {
	s, err := surfaceForm(b)
	if err != nil {
		return nil, err
	}
	for i, set := range s.Sets() {
		for j := 1; j < len(set); j++ {
			if set[j-1] >= set[j] {
				return nil, fmt.Errorf("capability surface: %s is not sorted and unique at %.100q", SurfaceSets[i], set[j])
			}
		}
	}
	return s, nil
}

// surfaceForm parses a surface whose values may be in any order.
func surfaceForm(b []byte) (*Surface, error) {
	s := new(Surface)
	err := decode(b, s)
	if err == nil {
		err = head(s.Schema, SchemaSurface, s.RunID)
	}
	if err != nil {
		return nil, fmt.Errorf("capability surface: %w", err)
	}
	return s, nil
}

// CheckSurface says what in a small surface breaks its JSON Schema, which knows no order: nil if nothing does.
func CheckSurface(b []byte) error {
	s, err := surfaceForm(b)
	if err != nil {
		return err
	}
	for i, set := range s.Sets() {
		seen := map[string]bool{}
		for _, v := range set {
			if seen[v] {
				return fmt.Errorf("capability surface: %s has %.100q twice", SurfaceSets[i], v)
			}
			seen[v] = true
		}
	}
	return nil
}

// ParseManifest parses manifest.json.
func ParseManifest(b []byte) (*Manifest, error) {
	m := new(Manifest)
	err := decode(b, m)
	if err == nil {
		err = head(m.Schema, SchemaManifest, m.RunID)
	}
	if err == nil && m.Packs != nil {
		err = m.Packs.check()
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Files)) {
		f := m.Files[key]
		switch {
		case key == "" || f.Path != key:
			err = fmt.Errorf("path is %.100q, expected the key", f.Path)
		case !ValidDigest(f.SHA256):
			err = fmt.Errorf("sha256 is %.100q, expected sha256: and 64 lower-case hex digits", f.SHA256)
		case f.Bytes < 0:
			err = fmt.Errorf("bytes is %d, expected a length", f.Bytes)
		default:
			continue
		}
		return nil, fmt.Errorf("manifest: entry %.100q: %w", key, err)
	}
	return m, nil
}

// ValidDigest reports whether s is sha256: and 64 lower-case hex digits.
func ValidDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, digestPrefix)
	for i := range len(hex) {
		if unhex(hex[i]) < 0 {
			return false
		}
	}
	return ok && len(hex) == 64
}

// Event is one line of events.ndjson: one of the two is set.
type Event struct {
	Started  *RunStarted
	Finished *RunFinished
}

// ParseEvent parses one line of events.ndjson.
func ParseEvent(line []byte) (Event, error) {
	var ev Event
	var tree map[string]any
	err := Unmarshal(line, &tree)
	if err == nil && tree["type"] == TypeRunFinished {
		f := new(RunFinished)
		ev.Finished = f
		if err = decode(line, f); err == nil {
			err = eventHead(f.Schema, f.RunID, f.Type, TypeRunFinished, f.Seq, 1)
		}
	} else if err == nil {
		s := new(RunStarted)
		ev.Started = s
		if err = decode(line, s); err == nil {
			err = eventHead(s.Schema, s.RunID, s.Type, TypeRunStarted, s.Seq, 0)
		}
	}
	if err != nil {
		return Event{}, fmt.Errorf("run event: %w", err)
	}
	return ev, nil
}

func eventHead(schema, runID, got, want string, seq, wantSeq uint64) error {
	if err := first(head(schema, SchemaEvent, runID), oneOf("type", got, want)); err != nil {
		return err
	}
	if seq != wantSeq {
		return fmt.Errorf("seq of %s is %d, expected %d", got, seq, wantSeq)
	}
	return nil
}

// ParseControl parses one control line.
func ParseControl(line []byte) (*Control, error) {
	c := new(Control)
	err := Unmarshal(line, c)
	if err == nil {
		switch c.Op {
		case ControlStarted:
			err = first(decode(line, new(controlStarted)), CheckConfined(c.Confined))
		case ControlFinished:
			err = decode(line, new(controlFinished))
		default:
			err = oneOf("op", c.Op, ControlStarted, ControlFinished)
		}
	}
	if err == nil && c.Schema != SchemaControl {
		err = fmt.Errorf("schema is %.100q, expected %q", c.Schema, SchemaControl)
	}
	if err != nil {
		return nil, fmt.Errorf("control line: %w", err)
	}
	return c, nil
}

// ParseStageHealth parses one stage health line.
func ParseStageHealth(line []byte) (*StageHealth, error) {
	h := new(StageHealth)
	err := decode(line, h)
	if err == nil {
		err = first(pipeHead(h.Schema, SchemaStageHealth, h.RunID), notEmpty("stage", h.Stage))
	}
	for _, rule := range slices.Sorted(maps.Keys(h.Filtered)) {
		if h.Filtered[rule] == 0 && err == nil {
			err = fmt.Errorf("filtered.%s is 0, expected no zeros", rule)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stage health: %w", err)
	}
	return h, nil
}

// ParseSurfaceEntry parses one surface entry line.
func ParseSurfaceEntry(line []byte) (*SurfaceEntry, error) {
	e := new(SurfaceEntry)
	err := decode(line, e)
	if err == nil {
		err = first(pipeHead(e.Schema, SchemaSurfaceEntry, e.RunID),
			oneOf("set", e.Set, SurfaceSets[:]...), notEmpty("value", e.Value))
	}
	if err != nil {
		return nil, fmt.Errorf("surface entry: %w", err)
	}
	return e, nil
}

// ParsePolicyEvent parses one line of layers/policy.ndjson. The decision is not
// a closed set: proxies write their own.
func ParsePolicyEvent(line []byte) (*PolicyEvent, error) {
	e := new(PolicyEvent)
	err := decode(line, e)
	if err == nil {
		err = first(head(e.Schema, SchemaPolicyEvent, e.RunID),
			oneOf("source_event_type", e.SourceEventType, LogDecision),
			notEmpty("source", e.Source), notEmpty("tool_call_id", e.ToolCallID),
			notEmpty("tool", e.Tool), notEmpty("decision", e.Decision))
	}
	if err == nil && e.PolicyDigest != "" && !ValidDigest(e.PolicyDigest) {
		err = fmt.Errorf("policy_digest is %.100q, expected sha256: and 64 lower-case hex digits", e.PolicyDigest)
	}
	if err == nil && e.Attempt == 1 {
		err = errors.New("attempt is 1, which is left out")
	}
	if err == nil && len(e.Targets) > MaxTargets {
		err = fmt.Errorf("%d targets, at most %d", len(e.Targets), MaxTargets)
	}
	if err == nil && slices.Contains(e.Targets, "") {
		err = errors.New("a target is empty")
	}
	if err == nil {
		err = optionalDigest("arguments_digest", e.ArgumentsDigest)
	}
	if err != nil {
		return nil, fmt.Errorf("policy event: %w", err)
	}
	return e, nil
}

// ParseSDKEvent parses one line of layers/sdk.ndjson.
func ParseSDKEvent(line []byte) (*SDKEvent, error) {
	e := new(SDKEvent)
	err := decode(line, e)
	if err == nil {
		err = first(head(e.Schema, SchemaSDKEvent, e.RunID),
			oneOf("event_type", e.EventType, SDKEventTypes[:]...),
			notEmpty("source", e.Source))
	}
	if err == nil && strings.HasPrefix(e.EventType, "tool_call_") &&
		(e.ToolCallID == nil || *e.ToolCallID == "" || e.Tool == nil || *e.Tool == "") {
		err = fmt.Errorf("%s without tool_call_id and tool", e.EventType)
	}
	if err == nil {
		err = optionalDigest("arguments_digest", e.ArgumentsDigest)
	}
	if err == nil && e.ArgumentsDigest != "" && !strings.HasPrefix(e.EventType, "tool_call_") {
		err = fmt.Errorf("%s with arguments_digest", e.EventType)
	}
	if err != nil {
		return nil, fmt.Errorf("sdk event: %w", err)
	}
	return e, nil
}

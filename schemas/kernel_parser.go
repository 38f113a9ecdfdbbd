package schemas

import (
	"math"
	"math/bits"
)

// KernelParser parses kernel lines of one run. It is strict (known keys only,
// each at most once, canonical integers, nothing after the object, the rules of
// the published line schema), but accepts keys in any order, because archives of
// other implementations are read with it. Not safe for concurrent use.
type KernelParser struct {
	s      scanner
	runID  string
	prefix []byte // the beginning of a canonical line
	keys   *fastKeys
	kind   string // the last one that had to be copied
	timed  bool   // whether the last key may be ktime_ns
	time   KernelTime

	canonical bool // the last line has the one form
	details   [detailsSlots]details
	again     again
}

// KernelTime is when the event of a line of kernel.normalized happened.
type KernelTime struct {
	NS uint64 // CLOCK_MONOTONIC
	At int    // where the key begins, its comma included; 0 when the line has none
}

// Without is the part of a line before the time: with a brace after it, it is
// the line as it enters the archive.
func (t KernelTime) Without(line []byte) []byte { return line[:t.At] }

// NewKernelParser makes a parser for the lines of one run.
func NewKernelParser(runID string) *KernelParser {
	return &KernelParser{runID: runID, keys: theFastKeys(), prefix: []byte(`{"schema":"` + SchemaKernelEvent + `","run_id":"` + runID + `"`)}
}

var (
	accessModes = words(AccessModes[:]...)
	statuses    = words(StatusSuccess, StatusError, StatusUnproven)
	doubts      = words(DoubtChanged)
)

// Keys of a kernel line, as bits of the set already seen.
const (
	seenSchema = 1 << iota
	seenRunID
	seenSeq
	seenPID
	seenEventType
	seenKind
	seenValue
	seenDestination
	seenAccess
	seenOperations
	seenStatus
	seenDoubt
	seenNumbers // and up: KernelHas shifted by its place

	seenRequired = seenSchema | seenRunID | seenSeq | seenPID | seenEventType | seenKind | seenValue
)

// requiredKeys are the keys of every kernel line, by the place of their bit.
var requiredKeys = [...]string{"schema", "run_id", "seq", "pid", "event_type", "kind", "value"}

// Canonical reports whether the last line that Parse read has the one form that AppendJSON writes.
// If it does not report it, the line may have that form, too.
func (p *KernelParser) Canonical() bool { return p.canonical }

// Parse reads one line, given without LF, into e. Names alias the line or the
// parser's buffer: they are valid until the line changes or the next Parse.
// After an error e is not to be used. The error is a *LineError.
func (p *KernelParser) Parse(line []byte, e *KernelEvent) error {
	p.timed = false
	return p.read(line, e)
}

// ParseTimed is Parse for a line that may have the key ktime_ns, as its last.
func (p *KernelParser) ParseTimed(line []byte, e *KernelEvent) (KernelTime, error) {
	p.timed = true
	err := p.read(line, e)
	return p.time, err
}

func (p *KernelParser) read(line []byte, e *KernelEvent) error {
	*e = KernelEvent{}
	p.time, p.canonical = KernelTime{}, false
	p.s.reset(line)
	if p.fast(e) {
		p.canonical = !p.s.odd && !p.timed
		return nil
	}
	return p.strict(line, e)
}

// strict reads a line from its beginning, in whatever order its keys are.
func (p *KernelParser) strict(line []byte, e *KernelEvent) error {
	*e = KernelEvent{}
	p.time = KernelTime{}
	p.s.reset(line)
	if p.parse(e) {
		return nil
	}
	return p.s.err
}

func (p *KernelParser) parse(e *KernelEvent) bool {
	s := &p.s
	if !s.lit("{") {
		return false
	}
	seen := uint(0)
	var kind []byte
	for first := true; first || s.more(); first = false {
		at := s.i
		if p.time.At > 0 {
			return s.fail("ktime_ns must be the last key")
		}
		key, ok := s.key()
		if !ok {
			return false
		}
		var bit uint
		var has KernelHas
		switch string(key) {
		case "schema":
			bit, ok = seenSchema, s.lit(`"`+SchemaKernelEvent+`"`)
		case "run_id":
			bit, ok = seenRunID, p.checkRunID()
		case "seq":
			bit = seenSeq
			e.Seq, ok = s.uint(math.MaxUint64)
		case "pid":
			bit = seenPID
			e.PID, ok = s.uint32()
		case "event_type":
			bit = seenEventType
			e.EventType, ok = s.uint32()
		case "kind":
			bit = seenKind
			kind, ok = s.str()
		case "value":
			bit = seenValue
			e.Value, ok = s.stringOrNull()
		case "cgroup_id":
			has = KernelHasCgroupID
			e.CgroupID, ok = s.uint(math.MaxUint64)
		case "network_destination":
			bit = seenDestination
			e.Destination, ok = s.str()
		case "network_port":
			has = KernelHasPort
			var v uint64
			v, ok = s.uint(math.MaxUint16)
			e.Port = uint16(v)
		case "rule_id":
			has = KernelHasRuleID
			e.RuleID, ok = s.uint32()
		case "flags":
			has = KernelHasFlags
			e.Flags, ok = s.uint(math.MaxUint64)
		case "mode":
			has = KernelHasMode
			e.Mode, ok = s.uint(math.MaxUint64)
		case "resolve":
			has = KernelHasResolve
			if e.Resolve, ok = s.uint(math.MaxUint64); ok && e.Resolve == 0 {
				ok = s.fail("resolve must be at least 1 where it is present")
			}
		case "return_value":
			has = KernelHasReturn
			e.ReturnValue, ok = s.int(math.MinInt64, math.MaxInt64)
		case "access_mode":
			bit = seenAccess
			e.AccessMode, ok = s.word(accessModes)
		case "operation_flags":
			bit = seenOperations
			e.Operations, ok = s.operations()
		case "status":
			bit = seenStatus
			e.Status, ok = s.word(statuses)
		case "doubt":
			bit = seenDoubt
			e.Doubt, ok = s.word(doubts)
		case "connect_result":
			has = KernelHasConnectResult
			e.ConnectResult, ok = s.int(-MaxErrno, 0)
		default:
			if p.timed && string(key) == "ktime_ns" && at > 1 {
				p.time.At = at - 1
				p.time.NS, ok = s.uint(math.MaxUint64)
				break
			}
			s.i = at
			return s.fail("unknown key %.60q", key)
		}
		if !ok {
			return false
		}
		e.Has |= has
		bit |= uint(has) * seenNumbers
		if seen&bit != 0 {
			s.i = at
			return s.fail("key %q is repeated", key)
		}
		seen |= bit
	}
	if s.err != nil {
		return false
	}
	if seen&seenRequired != seenRequired {
		return s.fail("key %s is missing", requiredKeys[bits.TrailingZeros(seenRequired&^seen)])
	}
	if e.Status != "" && e.Status != StatusUnproven && e.Has&KernelHasReturn == 0 {
		return s.fail("status without return_value")
	}
	if e.Status == StatusUnproven && e.Has&KernelHasReturn != 0 {
		return s.fail("status unproven with return_value")
	}
	if e.Has&KernelHasConnectResult != 0 && !e.Pending() {
		return s.fail("connect_result on a line that is no connect with return_value %d, or with 0 and no status", ConnectInProgress)
	}
	return p.setKind(e, kind)
}

func (p *KernelParser) checkRunID() bool {
	s := &p.s
	at := s.i
	id, ok := s.str()
	if ok && string(id) != p.runID {
		s.i = at
		ok = s.fail("run_id %.140q, expected %q", id, p.runID)
		s.err.Class = ErrRunID
	}
	return ok
}

// setKind checks that kind is a name of the event type and interns it.
func (p *KernelParser) setKind(e *KernelEvent, kind []byte) bool {
	if e.EventType < uint32(len(kinds)) {
		if k := p.keys.kinds[e.EventType]; string(kind) == k {
			e.Kind = k
			return true
		}
		if k := otherKinds[e.EventType]; k != "" && string(kind) == k {
			e.Kind = k
			return true
		}
	} else {
		if p.kind != string(kind) {
			p.kind = string(kind)
		}
		if p.kind == KindOf(e.EventType) {
			e.Kind = p.kind
			return true
		}
	}
	return p.s.fail("kind %.60q does not go with event_type %d, expected %q", kind, e.EventType, KindOf(e.EventType))
}

func (s *scanner) stringOrNull() ([]byte, bool) {
	if s.i < len(s.b) && s.b[s.i] == 'n' {
		return nil, s.lit("null")
	}
	return s.str()
}

// operations reads an array of unique hints, in any order.
func (s *scanner) operations() (OperationFlags, bool) {
	if !s.lit("[") {
		return 0, false
	}
	if s.i < len(s.b) && s.b[s.i] == ']' {
		s.i++
		return 0, true
	}
	var all OperationFlags
	for {
		at := s.i
		w, ok := s.str()
		if !ok {
			return 0, false
		}
		var o OperationFlags
		for i, name := range operationNames {
			if string(w) == name {
				o = 1 << i
			}
		}
		if o == 0 || all&o != 0 {
			s.i = at
			return 0, s.fail("operation flag %.60q is unknown or repeated", w)
		}
		all |= o
		if s.i < len(s.b) && s.b[s.i] == ',' {
			s.i++
			continue
		}
		return all, s.lit("]")
	}
}

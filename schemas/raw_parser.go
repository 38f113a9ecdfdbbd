package schemas

import (
	"math"
	"sync"
)

// RawParser parses raw event lines of one run. It is strict: known keys only,
// each at most once, in canonical order, canonical integers, nothing after the
// object. Not safe for concurrent use.
type RawParser struct {
	s      scanner
	prefix string
	op     string // the last operation: often the next one is the same
}

// NewRawParser makes a parser for the lines of one run.
func NewRawParser(runID string) *RawParser {
	return &RawParser{prefix: `{"schema":"` + SchemaRawEvent + `","run_id":"` + runID + `","seq":`}
}

var (
	rawOps       = words(RawOps[:]...)
	rawSources   = words(RawSources[:]...)
	rawHooks     = words(RawHooks[:]...)
	rawFileTypes = words(RawFileTypes[:]...)
	rawMarks     = sync.OnceValue(func() map[string]Marks {
		m := make(map[string]Marks, len(markNames))
		for i, name := range markNames {
			m[name] = 1 << i
		}
		return m
	})
)

// Parse reads one line, given without LF, into e. Names alias the line or the
// parser's buffer: they are valid until the line changes or the next Parse.
// After an error e is not to be used. The error is a *LineError.
func (p *RawParser) Parse(line []byte, e *RawEvent) error {
	return p.read(line, e, true)
}

// read is Parse. If usual is false, the strict parser alone reads the line.
func (p *RawParser) read(line []byte, e *RawEvent, usual bool) error {
	*e = RawEvent{}
	s := &p.s
	s.reset(line)
	if len(line) < len(p.prefix) || string(line[:len(p.prefix)]) != p.prefix {
		return p.prefixError()
	}
	s.i = len(p.prefix)
	next := 0
	if !usual || !p.usualStart(e) {
		if !p.required(e) {
			return s.err
		}
	}
	if usual {
		next = p.usual(e)
	}
	if p.optional(e, next) {
		return nil
	}
	return s.err
}

// required reads the keys that every event has.
func (p *RawParser) required(e *RawEvent) (ok bool) {
	s := &p.s
	if e.Seq, ok = s.uint(math.MaxUint64); !ok || !s.lit(`,"op":`) {
		return false
	}
	if n := len(p.op); n > 0 && len(s.b)-s.i > n+2 && s.b[s.i] == '"' && s.b[s.i+n+1] == '"' && string(s.b[s.i+1:s.i+n+1]) == p.op {
		e.Op = p.op
		s.i += n + 2
	} else if e.Op, ok = s.word(rawOps); ok {
		p.op = e.Op
	} else {
		return false
	}
	if !s.lit(`,"ktime_ns":`) {
		return false
	}
	if e.KtimeNS, ok = s.uint(math.MaxUint64); !ok || !s.lit(`,"cgroup_id":`) {
		return false
	}
	if e.CgroupID, ok = s.uint(math.MaxUint64); !ok || !s.lit(`,"pid":`) {
		return false
	}
	if e.PID, ok = s.uint32(); !ok || !s.lit(`,"tid":`) {
		return false
	}
	if e.TID, ok = s.uint32(); !ok || !s.lit(`,"cpu":`) {
		return false
	}
	if e.CPU, ok = s.uint32(); !ok || !s.lit(`,"cpu_seq":`) {
		return false
	}
	e.CPUSeq, ok = s.uint(math.MaxUint64)
	return ok
}

// rawKey is one optional key of a raw event: its name, and how its value is read.
type rawKey struct {
	name string
	read func(s *scanner, e *RawEvent) bool
}

// rawOptional are the optional keys of a raw event, in canonical order.
var rawOptional = [...]rawKey{
	{"probe", func(s *scanner, e *RawEvent) bool {
		n, ok := s.uint(math.MaxUint8)
		e.Has |= HasProbe
		e.Probe = uint8(n)
		return ok
	}},
	{"ret", func(s *scanner, e *RawEvent) (ok bool) {
		e.Has |= HasRet
		e.Ret, ok = s.int(math.MinInt64, math.MaxInt64)
		return ok
	}},
	{"flags", func(s *scanner, e *RawEvent) bool { return s.has(&e.Has, HasFlags, &e.Flags) }},
	{"mode", func(s *scanner, e *RawEvent) bool { return s.has(&e.Has, HasMode, &e.Mode) }},
	{"resolve", func(s *scanner, e *RawEvent) bool { return s.has(&e.Has, HasResolve, &e.Resolve) }},
	{"path", func(s *scanner, e *RawEvent) bool { return s.name(&e.Path) }},
	{"user_path", func(s *scanner, e *RawEvent) bool { return s.name(&e.UserPath) }},
	{"base", func(s *scanner, e *RawEvent) bool { return s.name(&e.Base) }},
	{"path2", func(s *scanner, e *RawEvent) bool { return s.name(&e.Path2) }},
	{"user_path2", func(s *scanner, e *RawEvent) bool { return s.name(&e.UserPath2) }},
	{"base2", func(s *scanner, e *RawEvent) bool { return s.name(&e.Base2) }},
	{"interp", func(s *scanner, e *RawEvent) bool { return s.name(&e.Interp) }},
	{"old_tid", func(s *scanner, e *RawEvent) bool { return s.has32(&e.Has, HasOldTID, &e.OldTID) }},
	{"child_pid", func(s *scanner, e *RawEvent) (ok bool) {
		if !s.has32(&e.Has, HasChild, &e.ChildPID) || !s.lit(`,"child_tid":`) {
			return false
		}
		e.ChildTID, ok = s.uint32()
		return ok
	}},
	{"family", func(s *scanner, e *RawEvent) bool { return s.has32(&e.Has, HasFamily, &e.Family) }},
	{"addr", func(s *scanner, e *RawEvent) bool { return s.name(&e.Addr) }},
	{"socket", func(s *scanner, e *RawEvent) bool { return s.has(&e.Has, HasSocket, &e.Socket) }},
	{"source", func(s *scanner, e *RawEvent) (ok bool) { e.Source, ok = s.word(rawSources); return ok }},
	{"rule", func(s *scanner, e *RawEvent) bool { return s.has32(&e.Has, HasRule, &e.Rule) }},
	{"hook", func(s *scanner, e *RawEvent) (ok bool) { e.Hook, ok = s.word(rawHooks); return ok }},
	{"exit_code", func(s *scanner, e *RawEvent) (ok bool) {
		e.Has |= HasExitCode
		e.ExitCode, ok = s.int(math.MinInt64, math.MaxInt64)
		return ok
	}},
	{"dst_cgroup_id", func(s *scanner, e *RawEvent) bool { return s.has(&e.Has, HasDstCgroup, &e.DstCgroupID) }},
	{"file_type", func(s *scanner, e *RawEvent) (ok bool) { e.FileType, ok = s.word(rawFileTypes); return ok }},
	{"uid", func(s *scanner, e *RawEvent) (ok bool) {
		if !s.has32(&e.Has, HasContext, &e.UID) || !s.lit(`,"gid":`) {
			return false
		}
		if e.GID, ok = s.uint32(); !ok || !s.lit(`,"mount_ns":`) {
			return false
		}
		e.MountNS, ok = s.uint32()
		return ok
	}},
	{"root", func(s *scanner, e *RawEvent) bool { return s.name(&e.Root) }},
	{"ns_pid", func(s *scanner, e *RawEvent) (ok bool) {
		if !s.has32(&e.Has, HasNSPID, &e.NSPID) || !s.lit(`,"pid_ns":`) {
			return false
		}
		e.PIDNS, ok = s.uint32()
		return ok
	}},
	{"arguments", func(s *scanner, e *RawEvent) (ok bool) { e.Arguments, ok = s.arguments(); return ok }},
	{"marks", func(s *scanner, e *RawEvent) (ok bool) { e.Marks, ok = s.marks(); return ok }},
}

// optional reads the optional keys, from the one at a place of the table on. Each key is searched only after
// the previous one in the table, so that repeated and misplaced keys are refused.
func (p *RawParser) optional(e *RawEvent, next int) bool {
	s := &p.s
	for s.more() {
		at := s.i
		key, ok := s.key()
		if !ok {
			return false
		}
		for next < len(rawOptional) && rawOptional[next].name != string(key) {
			next++
		}
		if next == len(rawOptional) {
			s.i = at
			return s.misplaced(key)
		}
		if !rawOptional[next].read(s, e) {
			return false
		}
		next++
	}
	return s.err == nil
}

// misplaced reports why a key is not valid after the previous one.
func (s *scanner) misplaced(key []byte) bool {
	for i := range rawOptional {
		if rawOptional[i].name == string(key) {
			return s.fail("key %q is repeated or out of order", key)
		}
	}
	return s.fail("unknown key %.60q", key)
}

func (s *scanner) has(all *RawHas, bit RawHas, v *uint64) (ok bool) {
	*all |= bit
	*v, ok = s.uint(math.MaxUint64)
	return ok
}

func (s *scanner) has32(all *RawHas, bit RawHas, v *uint32) (ok bool) {
	*all |= bit
	*v, ok = s.uint32()
	return ok
}

func (s *scanner) name(v *[]byte) (ok bool) {
	*v, ok = s.text()
	return ok
}

// marks reads a non-empty array of marks in ascending order.
func (s *scanner) marks() (Marks, bool) {
	if !s.lit("[") {
		return 0, false
	}
	var all Marks
	for {
		at := s.i
		w, ok := s.str()
		if !ok {
			return 0, false
		}
		m, ok := rawMarks()[string(w)]
		if !ok || m <= all {
			s.i = at
			return 0, s.fail("mark %.60q is unknown, repeated or out of order", w)
		}
		all |= m
		if s.i < len(s.b) && s.b[s.i] == ',' {
			s.i++
			continue
		}
		return all, s.lit("]")
	}
}

// prefixError reports why the beginning of a line is not that of a raw event.
func (p *RawParser) prefixError() error {
	s := &p.s
	if !s.lit(`{"schema":"` + SchemaRawEvent + `","run_id":`) {
		return s.err
	}
	if _, ok := s.str(); !ok {
		return s.err
	}
	end := len(p.prefix) - len(`,"seq":`)
	if s.i == end && string(s.b[:end]) == p.prefix[:end] {
		s.lit(`,"seq":`)
		return s.err
	}
	s.fail("run_id is not the one of this run")
	s.err.Class = ErrRunID
	return s.err
}

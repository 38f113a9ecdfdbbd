package schemas

import "math"

// RawParser parses raw event lines of one run. It is strict: known keys only,
// each at most once, in canonical order, canonical integers, nothing behind the
// object. Not safe for concurrent use.
type RawParser struct {
	s      scanner
	prefix string
	op     string // the last one: events come in bunches
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
	rawMarks     = func() map[string]Marks {
		m := make(map[string]Marks, len(markNames))
		for i, name := range markNames {
			m[name] = 1 << i
		}
		return m
	}()
)

// Parse reads one line, given without LF, into e. Names alias the line or the
// parser's buffer: they are valid until the line changes or the next Parse.
// After an error e is not to be used. The error is a *LineError.
func (p *RawParser) Parse(line []byte, e *RawEvent) error {
	*e = RawEvent{}
	s := &p.s
	s.reset(line)
	if len(line) < len(p.prefix) || string(line[:len(p.prefix)]) != p.prefix {
		return p.prefixError()
	}
	s.i = len(p.prefix)
	if p.required(e) && p.optional(e) {
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

// optional reads the rest. The rank of a key is its place in the canonical
// order, so one comparison refuses both a repeated and a misplaced key.
func (p *RawParser) optional(e *RawEvent) bool {
	s := &p.s
	last := 0
	for s.more() {
		at := s.i
		key, ok := s.key()
		if !ok {
			return false
		}
		rank := 0
		switch string(key) {
		case "ret":
			rank, e.Has = 1, e.Has|HasRet
			e.Ret, ok = s.int(math.MinInt64, math.MaxInt64)
		case "flags":
			rank, e.Has = 2, e.Has|HasFlags
			e.Flags, ok = s.uint(math.MaxUint64)
		case "mode":
			rank, e.Has = 3, e.Has|HasMode
			e.Mode, ok = s.uint(math.MaxUint64)
		case "resolve":
			rank, e.Has = 4, e.Has|HasResolve
			e.Resolve, ok = s.uint(math.MaxUint64)
		case "path":
			rank = 5
			e.Path, ok = s.text()
		case "user_path":
			rank = 6
			e.UserPath, ok = s.text()
		case "base":
			rank = 7
			e.Base, ok = s.text()
		case "user_path2":
			rank = 8
			e.UserPath2, ok = s.text()
		case "base2":
			rank = 9
			e.Base2, ok = s.text()
		case "interp":
			rank = 10
			e.Interp, ok = s.text()
		case "old_tid":
			rank, e.Has = 11, e.Has|HasOldTID
			e.OldTID, ok = s.uint32()
		case "child_pid":
			rank, e.Has = 12, e.Has|HasChild
			if e.ChildPID, ok = s.uint32(); ok && s.lit(`,"child_tid":`) {
				e.ChildTID, ok = s.uint32()
			} else {
				ok = false
			}
		case "family":
			rank, e.Has = 13, e.Has|HasFamily
			e.Family, ok = s.uint32()
		case "addr":
			rank = 14
			e.Addr, ok = s.text()
		case "source":
			rank = 15
			e.Source, ok = s.word(rawSources)
		case "rule":
			rank, e.Has = 16, e.Has|HasRule
			e.Rule, ok = s.uint32()
		case "hook":
			rank = 17
			e.Hook, ok = s.word(rawHooks)
		case "exit_code":
			rank, e.Has = 18, e.Has|HasExitCode
			e.ExitCode, ok = s.int(math.MinInt64, math.MaxInt64)
		case "dst_cgroup_id":
			rank, e.Has = 19, e.Has|HasDstCgroup
			e.DstCgroupID, ok = s.uint(math.MaxUint64)
		case "file_type":
			rank = 20
			e.FileType, ok = s.word(rawFileTypes)
		case "marks":
			rank = 21
			e.Marks, ok = s.marks()
		default:
			s.i = at
			return s.fail("unknown key %.60q", key)
		}
		if !ok {
			return false
		}
		if rank <= last {
			s.i = at
			return s.fail("key %q is repeated or out of order", key)
		}
		last = rank
	}
	return s.err == nil
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
		m, ok := rawMarks[string(w)]
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

// prefixError finds out why a line does not begin as every raw event does.
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

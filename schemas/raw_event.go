package schemas

import (
	"math"
	"strconv"
)

// RawEvent is one thing that the kernel reported: runner.raw_event.v0.
//
// Names are in text form (README.md, section 2), not yet JSON-escaped; a nil
// name means that the key is absent. Has says which optional numbers are there.
type RawEvent struct {
	Seq      uint64
	Op       string // one of RawOps
	KtimeNS  uint64 // CLOCK_MONOTONIC
	CgroupID uint64
	PID, TID uint32
	CPU      uint32
	CPUSeq   uint64

	Has     RawHas
	Ret     int64  // HasRet
	Flags   uint64 // HasFlags
	Mode    uint64 // HasMode
	Resolve uint64 // HasResolve

	Path, UserPath, Base []byte
	UserPath2, Base2     []byte
	Interp               []byte

	OldTID             uint32 // HasOldTID
	ChildPID, ChildTID uint32 // HasChild: both or none
	Family             uint32 // HasFamily
	Addr               []byte
	Source             string // "" is absent
	ExitCode           int64  // HasExitCode: wait status
	DstCgroupID        uint64 // HasDstCgroup
	FileType           string // "" is absent
	Marks              Marks
}

// RawHas says which optional numbers a raw event carries.
type RawHas uint16

// The optional numbers of a raw event.
const (
	HasRet RawHas = 1 << iota
	HasFlags
	HasMode
	HasResolve
	HasOldTID
	HasChild
	HasFamily
	HasExitCode
	HasDstCgroup
)

// Marks are the truth flags of a raw event.
type Marks uint32

// The marks, in their canonical order.
const (
	MarkAddrFault Marks = 1 << iota
	MarkChroot
	MarkCompat32
	MarkDeleted
	MarkDetached
	MarkDisconnected
	MarkFDRace
	MarkIOUring
	MarkPathFault
	MarkPathTruncated
	MarkUnnamed
	MarkUserFault
	MarkUserTruncated
)

var markNames = [...]string{
	"addr_fault", "chroot", "compat32", "deleted", "detached", "disconnected", "fd_race",
	"io_uring", "path_fault", "path_truncated", "unnamed", "user_fault", "user_truncated",
}

// RawOps are all operations of raw events, in the order of the specification.
var RawOps = [...]string{
	"open", "creat", "openat", "openat2", "open_by_handle_at", "io_uring_openat", "io_uring_openat2",
	"exec", "execve", "execveat",
	"connect", "sendto", "sendmsg", "sendmmsg", "bind", "listen",
	"unlink", "rmdir", "rename", "link", "symlink", "mkdir", "truncate", "ftruncate",
	"chmod", "chown", "mknod", "mount", "umount", "move_mount", "pivot_root",
	"io_uring_other", "fork", "exit", "move",
}

// RawSources and RawFileTypes are the closed sets of those two keys.
var (
	RawSources   = [...]string{"syscall", "cgroup", "io_uring"}
	RawFileTypes = [...]string{"chr", "blk", "fifo", "sock", "anon"}
)

// AppendJSON appends the event's line, without LF, in canonical form.
func (e *RawEvent) AppendJSON(dst []byte, runID string) []byte {
	dst = append(dst, `{"schema":"`+SchemaRawEvent+`","run_id":"`...)
	dst = append(dst, runID...)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"op":"`...)
	dst = append(dst, e.Op...)
	dst = append(dst, `","ktime_ns":`...)
	dst = strconv.AppendUint(dst, e.KtimeNS, 10)
	dst = append(dst, `,"cgroup_id":`...)
	dst = strconv.AppendUint(dst, e.CgroupID, 10)
	dst = append(dst, `,"pid":`...)
	dst = strconv.AppendUint(dst, uint64(e.PID), 10)
	dst = append(dst, `,"tid":`...)
	dst = strconv.AppendUint(dst, uint64(e.TID), 10)
	dst = append(dst, `,"cpu":`...)
	dst = strconv.AppendUint(dst, uint64(e.CPU), 10)
	dst = append(dst, `,"cpu_seq":`...)
	dst = strconv.AppendUint(dst, e.CPUSeq, 10)
	if e.Has&HasRet != 0 {
		dst = append(dst, `,"ret":`...)
		dst = strconv.AppendInt(dst, e.Ret, 10)
	}
	dst = appendUint(dst, e.Has&HasFlags != 0, `,"flags":`, e.Flags)
	dst = appendUint(dst, e.Has&HasMode != 0, `,"mode":`, e.Mode)
	dst = appendUint(dst, e.Has&HasResolve != 0, `,"resolve":`, e.Resolve)
	dst = appendName(dst, `,"path":`, e.Path)
	dst = appendName(dst, `,"user_path":`, e.UserPath)
	dst = appendName(dst, `,"base":`, e.Base)
	dst = appendName(dst, `,"user_path2":`, e.UserPath2)
	dst = appendName(dst, `,"base2":`, e.Base2)
	dst = appendName(dst, `,"interp":`, e.Interp)
	dst = appendUint(dst, e.Has&HasOldTID != 0, `,"old_tid":`, uint64(e.OldTID))
	dst = appendUint(dst, e.Has&HasChild != 0, `,"child_pid":`, uint64(e.ChildPID))
	dst = appendUint(dst, e.Has&HasChild != 0, `,"child_tid":`, uint64(e.ChildTID))
	dst = appendUint(dst, e.Has&HasFamily != 0, `,"family":`, uint64(e.Family))
	dst = appendName(dst, `,"addr":`, e.Addr)
	dst = appendWord(dst, `,"source":"`, e.Source)
	if e.Has&HasExitCode != 0 {
		dst = append(dst, `,"exit_code":`...)
		dst = strconv.AppendInt(dst, e.ExitCode, 10)
	}
	dst = appendUint(dst, e.Has&HasDstCgroup != 0, `,"dst_cgroup_id":`, e.DstCgroupID)
	dst = appendWord(dst, `,"file_type":"`, e.FileType)
	if e.Marks != 0 {
		dst = append(dst, `,"marks":[`...)
		sep := `"`
		for i, name := range markNames {
			if e.Marks&(1<<i) != 0 {
				dst = append(append(append(dst, sep...), name...), '"')
				sep = `,"`
			}
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendUint(dst []byte, has bool, key string, v uint64) []byte {
	if !has {
		return dst
	}
	return strconv.AppendUint(append(dst, key...), v, 10)
}

func appendName(dst []byte, key string, v []byte) []byte {
	if v == nil {
		return dst
	}
	return AppendQuote(append(dst, key...), v)
}

// appendWord appends a word that needs no escape; key ends with the quote.
func appendWord(dst []byte, key, v string) []byte {
	if v == "" {
		return dst
	}
	return append(append(append(dst, key...), v...), '"')
}

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
		case "exit_code":
			rank, e.Has = 16, e.Has|HasExitCode
			e.ExitCode, ok = s.int(math.MinInt64, math.MaxInt64)
		case "dst_cgroup_id":
			rank, e.Has = 17, e.Has|HasDstCgroup
			e.DstCgroupID, ok = s.uint(math.MaxUint64)
		case "file_type":
			rank = 18
			e.FileType, ok = s.word(rawFileTypes)
		case "marks":
			rank = 19
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

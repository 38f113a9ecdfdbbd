package schemas

import (
	"math"
	"unicode/utf8"
)

// This file reads the keys that nearly all raw events have, without the tables that the strict parser needs. It
// stops before the first key that is not there, or not in its usual form. The strict parser goes on from there,
// so this changes no result: FuzzRawParser compares the two.

// usualStart reads the keys that every event has. If it returns false, the strict parser begins again.
func (p *RawParser) usualStart(e *RawEvent) bool {
	b := p.s.b
	seq, i := digits(b, p.s.i)
	if i == p.s.i || len(b)-i < len(opKey) || string(b[i:i+len(opKey)]) != opKey {
		return false
	}
	i += len(opKey)
	if p.op == "" || !hasAt(b, i, p.op) {
		return false
	}
	i += len(p.op)
	if len(b)-i < len(ktimeKey) || string(b[i:i+len(ktimeKey)]) != ktimeKey {
		return false
	}
	at := i + len(ktimeKey)
	e.Seq, e.Op = seq, p.op
	if e.KtimeNS, i = digits(b, at); i == at {
		return false
	}
	var ok bool
	if len(b)-i < len(cgroupKey) || string(b[i:i+len(cgroupKey)]) != cgroupKey {
		return false
	}
	at = i + len(cgroupKey)
	if e.CgroupID, i = digits(b, at); i == at {
		return false
	}
	if e.PID, i, ok = usual32(b, i, pidKey); !ok {
		return false
	}
	if e.TID, i, ok = usual32(b, i, tidKey); !ok {
		return false
	}
	if e.CPU, i, ok = usual32(b, i, cpuKey); !ok {
		return false
	}
	if len(b)-i < len(cpuSeqKey) || string(b[i:i+len(cpuSeqKey)]) != cpuSeqKey {
		return false
	}
	at = i + len(cpuSeqKey)
	if e.CPUSeq, i = digits(b, at); i == at || !ends(b, i) {
		return false
	}
	p.s.i = i
	return true
}

const (
	opKey     = `,"op":"`
	ktimeKey  = `","ktime_ns":`
	cgroupKey = `,"cgroup_id":`
	tidKey    = `,"tid":`
	cpuKey    = `,"cpu":`
	cpuSeqKey = `,"cpu_seq":`
	probeKey  = `,"probe":`
	retKey    = `,"ret":`
	pathKey   = `,"path":`
	userKey   = `,"user_path":`
	baseKey   = `,"base":`
)

// usual32 reads a key of 7 bytes and the number after it.
func usual32(b []byte, i int, key string) (v uint32, end int, ok bool) {
	const size = len(pidKey)
	if len(b)-i < size || string(b[i:i+size]) != key {
		return 0, i, false
	}
	i += size
	n, end := digits(b, i)
	return uint32(n), end, end > i && n <= math.MaxUint32
}

// ends reports whether the object goes on or ends at b[i:].
func ends(b []byte, i int) bool { return i < len(b) && (b[i] == ',' || b[i] == '}') }

// The places of keys in rawOptional.
const (
	atFlags   = 2
	atMode    = 3
	afterBase = 8
)

// usual reads the first of the optional keys, as far as they are what an open has. It returns the place in
// rawOptional of the first key that can follow.
func (p *RawParser) usual(e *RawEvent) (next int) {
	b, i := p.s.b, p.s.i
	if hasAt(b, i, probeKey) {
		n, end := digits(b, i+len(probeKey))
		if end == i+len(probeKey) || n > math.MaxUint8 || !ends(b, end) {
			return next
		}
		e.Has, e.Probe = e.Has|HasProbe, uint8(n)
		p.s.i, next = end, 1
		i = end
	}
	if !hasAt(b, i, retKey) {
		return next
	}
	at := i + len(retKey)
	negative := at < len(b) && b[at] == '-'
	if negative {
		at++
	}
	n, end := digits(b, at)
	if end == at || n > math.MaxInt64 || negative && n == 0 || !ends(b, end) {
		return next
	}
	e.Has, e.Ret = e.Has|HasRet, int64(n)
	if negative {
		e.Ret = -e.Ret
	}
	p.s.i, next = end, atFlags
	i = end
	if hasAt(b, i, flagsKey) {
		if n, end = digits(b, i+len(flagsKey)); end == i+len(flagsKey) || !ends(b, end) {
			return next
		}
		e.Has, e.Flags = e.Has|HasFlags, n
		p.s.i, next = end, atMode
		i = end
	}
	if hasAt(b, i, modeKey) {
		if n, end = digits(b, i+len(modeKey)); end == i+len(modeKey) || !ends(b, end) {
			return next
		}
		e.Has, e.Mode = e.Has|HasMode, n
		p.s.i, next = end, atMode+1
		i = end
	}
	return p.usualNames(e, next)
}

// usualNames goes on with the names that are written without escapes.
func (p *RawParser) usualNames(e *RawEvent, next int) int {
	s := &p.s
	for place := afterBase - 3; place < afterBase; place++ {
		key, to := pathKey, &e.Path
		switch place {
		case afterBase - 2:
			key, to = userKey, &e.UserPath
		case afterBase - 1:
			key, to = baseKey, &e.Base
		}
		if !hasAt(s.b, s.i, key) {
			continue
		}
		v, ok := plain(s.b, s.i+len(key))
		if !ok {
			return next
		}
		*to = v
		s.i += len(key) + len(v) + 2
		next = place + 1
		if s.i < len(s.b) && s.b[s.i] == '}' {
			break
		}
	}
	return next
}

// plain reads a string at b[i:] that has no escape.
func plain(b []byte, i int) ([]byte, bool) {
	if i >= len(b) || b[i] != '"' {
		return nil, false
	}
	i++
	end, high := unescaped(b, i)
	if end >= len(b) || b[end] != '"' || high && !utf8.Valid(b[i:end]) {
		return nil, false
	}
	return b[i:end:end], true
}

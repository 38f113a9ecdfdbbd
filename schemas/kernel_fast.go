package schemas

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
)

// This file is a fast parser for lines as this runner writes them: keys in the canonical
// order, and each value in the form that follows from the values before it. The strict
// parser reads all other lines, so the fast one changes no result. It is several times as
// fast: BenchmarkKernelLine compares the two.

// fastKeys are the texts that the fast parser looks for. They are made when the first parser is: a tool that reads no line does not
// wait for them.
type fastKeys struct {
	kinds      [len(kinds)]string                                   // by type
	value      [len(kinds)]string                                   // between event_type and the value itself, by type
	access     [len(AccessModes)]string                             // the key access_mode, by flags & O_ACCMODE
	operations [1 << len(operationNames)]string                     // the key operation_flags, by its hints; without any it is absent
	openEnds   [len(AccessModes) << len(operationNames) << 1]string // after the return value of an open, by access, hints and whether it failed
}

var theFastKeys = sync.OnceValue(func() *fastKeys {
	k := &fastKeys{}
	for i := range k.kinds {
		k.kinds[i] = KindOf(uint32(i))
		k.value[i] = `,"kind":"` + k.kinds[i] + `","value":`
	}
	for i, mode := range AccessModes {
		k.access[i] = `,"access_mode":"` + mode + `"`
	}
	for i := 1; i < len(k.operations); i++ {
		k.operations[i] = string(AppendOperationFlags([]byte(`,"operation_flags":`), OperationFlags(i)))
	}
	for i := range k.openEnds {
		end := successKey
		if i>>6 == 1 {
			end = errorKey
		}
		k.openEnds[i] = k.access[i&3] + k.operations[i>>2&15] + end
	}
	return k
})

const (
	successKey  = `,"status":"` + StatusSuccess + `"`
	errorKey    = `,"status":"` + StatusError + `"`
	unprovenKey = `,"status":"` + StatusUnproven + `"`
	doubtKey    = `,"doubt":"` + DoubtChanged + `"`
	timeKey     = `,"ktime_ns":`

	connectResultKey = `,"connect_result":`
)

// hasAt reports whether text is at b[i:].
func hasAt(b []byte, i int, text string) bool {
	return len(b)-i >= len(text) && string(b[i:i+len(text)]) == text
}

// digits reads a canonical decimal of at most 19 digits at b[i:] and returns where
// it ends, i itself when there is none.
func digits(b []byte, i int) (v uint64, end int) {
	end = i
	if i+8 <= len(b) {
		if b[i+1]-'0' > 9 {
			// One digit, or none.
			if v = uint64(b[i] - '0'); v > 9 {
				return 0, i
			}
			return v, i + 1
		}
		x := binary.LittleEndian.Uint64(b[i:]) ^ '0'*everyByte // now a digit is its value
		other := (x + 0x76*everyByte | x) & highBits           // a sum has a carry only above the first byte that is none
		if other != 0 {
			n := bits.TrailingZeros64(other) &^ 7
			if n == 0 || x&0xff == 0 {
				return 0, i
			}
			return eight(x << (64 - n)), i + n/8
		}
		v, end = eight(x), i+8
	}
	for ; end < len(b) && b[end]-'0' <= 9; end++ {
		v = v*10 + uint64(b[end]-'0')
	}
	if end-i > 19 || end > i+1 && b[i] == '0' {
		return 0, i
	}
	return v, end
}

// eight is the number that eight digits are, the first of them in the lowest byte.
func eight(x uint64) uint64 {
	const pairs = 0x000000ff000000ff
	x = x*10 + x>>8
	return (x&pairs*(100+1000000<<32) + x>>16&pairs*(1+10000<<32)) >> 32
}

// number skips text and the number after it. If they are not there, it returns false and
// i is unchanged.
func number(b []byte, i *int, text string, limit uint64) (uint64, bool) {
	if !hasAt(b, *i, text) {
		return 0, false
	}
	v, end := digits(b, *i+len(text))
	if end == *i+len(text) || v > limit {
		return 0, false
	}
	*i = end
	return v, true
}

// The keys that nearly all lines have. The compiler inlines a comparison with a constant.
const (
	seqKey    = `,"seq":`
	pidKey    = `,"pid":`
	typeKey   = `,"event_type":`
	flagsKey  = `,"flags":`
	modeKey   = `,"mode":`
	returnKey = `,"return_value":`
)

// fast reads a line in the canonical form. It returns false for any other line, valid or
// not; then the content of e is undefined.
func (p *KernelParser) fast(e *KernelEvent) bool {
	s := &p.s
	b := s.b
	if !bytes.HasPrefix(b, p.prefix) {
		return false
	}
	i := len(p.prefix)
	if len(b)-i < len(seqKey) || string(b[i:i+len(seqKey)]) != seqKey {
		return false
	}
	n, end := digits(b, i+len(seqKey))
	if end == i+len(seqKey) {
		return false
	}
	e.Seq, i = n, end
	if p.again.like(b[i:]) && p.again.is(b[i:], e) {
		return true
	}
	rest := i
	if len(b)-i < len(pidKey) || string(b[i:i+len(pidKey)]) != pidKey {
		return false
	}
	if n, end = digits(b, i+len(pidKey)); end == i+len(pidKey) || n > math.MaxUint32 {
		return false
	}
	e.PID, i = uint32(n), end
	if len(b)-i < len(typeKey) || string(b[i:i+len(typeKey)]) != typeKey {
		return false
	}
	if n, end = digits(b, i+len(typeKey)); end == i+len(typeKey) || n >= uint64(len(kinds)) || !hasAt(b, end, p.keys.value[n]) {
		return false
	}
	e.EventType, e.Kind = uint32(n), p.keys.kinds[n]
	i = end + len(p.keys.value[n])
	from := i + 1
	if hasAt(b, i, "null") {
		i += len("null")
	} else {
		var ok bool
		s.i = i
		if e.Value, ok = s.str(); !ok {
			return false
		}
		i = s.i
	}
	to := i - 1
	if len(b)-i <= len(flagsKey) || string(b[i:i+len(flagsKey)]) != flagsKey {
		if i = p.fastNetwork(e, i); i < 0 {
			return false
		}
	}
	if !p.fastDetails(e, i) {
		return false
	}
	// What is kept must be in the line as it is, and the same another time.
	if to-from == len(e.Value) && e.Value != nil && e.Destination == nil && p.time.At == 0 {
		p.again.note(b[rest:], from-rest, to-rest, e)
	} else {
		p.again.forget()
	}
	return true
}

// fastOpen reads the keys from flags on.
func (p *KernelParser) fastOpen(e *KernelEvent, i int) bool {
	b := p.s.b
	if len(b)-i > len(flagsKey) && string(b[i:i+len(flagsKey)]) == flagsKey {
		if n, end := digits(b, i+len(flagsKey)); end > i+len(flagsKey) {
			e.Flags, i = n, end
			e.Has |= KernelHasFlags
		}
	}
	if len(b)-i > len(modeKey) && string(b[i:i+len(modeKey)]) == modeKey {
		if n, end := digits(b, i+len(modeKey)); end > i+len(modeKey) {
			e.Mode, i = n, end
			e.Has |= KernelHasMode
		}
	}
	// The next key is resolve or return_value, if any.
	if len(b)-i > 5 && b[i+4] == 's' {
		if n, ok := number(b, &i, `,"resolve":`, math.MaxUint64); ok && n > 0 {
			e.Resolve, e.Has = n, e.Has|KernelHasResolve
		} else {
			return false
		}
	}
	return p.fastOutcome(e, i)
}

// fastNetwork reads the keys between value and flags, which few lines have, and
// returns where they end, a negative number after a fault.
func (p *KernelParser) fastNetwork(e *KernelEvent, i int) int {
	b := p.s.b
	if len(b)-i > 3 && b[i+2] == 'r' && b[i+3] == 'e' {
		return i
	}
	if n, ok := number(b, &i, `,"cgroup_id":`, math.MaxUint64); ok {
		e.CgroupID, e.Has = n, e.Has|KernelHasCgroupID
	}
	const key = `,"network_destination":`
	if hasAt(b, i, key) {
		p.s.i = i + len(key)
		var ok bool
		if e.Destination, ok = p.s.str(); !ok {
			return -1
		}
		i = p.s.i
	}
	if n, ok := number(b, &i, `,"network_port":`, math.MaxUint16); ok {
		e.Port, e.Has = uint16(n), e.Has|KernelHasPort
	}
	if n, ok := number(b, &i, `,"rule_id":`, math.MaxUint32); ok {
		e.RuleID, e.Has = uint32(n), e.Has|KernelHasRuleID
	}
	return i
}

// fastOutcome reads the keys from return_value on.
func (p *KernelParser) fastOutcome(e *KernelEvent, i int) bool {
	b := p.s.b
	if len(b)-i > len(returnKey) && string(b[i:i+len(returnKey)]) == returnKey {
		at := i + len(returnKey)
		if at < len(b) && b[at] == '-' {
			at++
		}
		if at == len(b) {
			return false
		}
		n, end := digits(b, at)
		negative := b[at-1] == '-'
		if end == at || n > math.MaxInt64 || negative && n == 0 {
			return false
		}
		e.ReturnValue = int64(n)
		if negative {
			e.ReturnValue = -e.ReturnValue
		}
		e.Has |= KernelHasReturn
		i = end
	}
	if e.Has&(KernelHasFlags|KernelHasReturn) == KernelHasFlags|KernelHasReturn {
		o := OperationsOf(e.Flags)
		at, status := int(e.Flags&3)|int(o)<<2, StatusSuccess
		if e.ReturnValue < 0 {
			at, status = at|1<<6, StatusError
		}
		if key := p.keys.openEnds[at]; hasAt(b, i, key) {
			e.AccessMode, e.Operations, e.Status = AccessMode(e.Flags), o, status
			return p.fastEnd(e, i+len(key))
		}
	}
	if e.Has&KernelHasFlags != 0 {
		if key := p.keys.access[e.Flags&3]; hasAt(b, i, key) {
			e.AccessMode = AccessMode(e.Flags)
			i += len(key)
		}
		if o := OperationsOf(e.Flags); o != 0 && hasAt(b, i, p.keys.operations[o]) {
			e.Operations = o
			i += len(p.keys.operations[o])
		}
	}
	if e.Has&KernelHasReturn == 0 {
		if hasAt(b, i, unprovenKey) {
			e.Status = StatusUnproven
			i += len(unprovenKey)
		}
	} else {
		switch {
		case e.ReturnValue >= 0 && hasAt(b, i, successKey):
			e.Status = StatusSuccess
			i += len(successKey)
		case e.ReturnValue < 0 && hasAt(b, i, errorKey):
			e.Status = StatusError
			i += len(errorKey)
		}
	}
	return p.fastEnd(e, i)
}

// fastEnd reads the doubt and the time, if there may be some, and the end of the line.
func (p *KernelParser) fastEnd(e *KernelEvent, i int) bool {
	b := p.s.b
	if len(b)-i > len(doubtKey) && string(b[i:i+len(doubtKey)]) == doubtKey {
		e.Doubt = DoubtChanged
		i += len(doubtKey)
	}
	if e.EventType == EventConnect && hasAt(b, i, connectResultKey) {
		return false // few lines have it
	}
	if p.timed {
		if len(b)-i > len(timeKey) && string(b[i:i+len(timeKey)]) == timeKey {
			if n, end := digits(b, i+len(timeKey)); end > i+len(timeKey) {
				p.time = KernelTime{NS: n, At: i}
				i = end
			}
		}
	}
	return i+1 == len(b) && b[i] == '}'
}

package proc

import (
	"fmt"
	"slices"
)

// Code says why there is no response.
type Code uint32

// Codes of results without a response.
const (
	PolicyDenied   Code = 1
	InvalidRequest Code = 2
	SpawnFailed    Code = 3
	Timeout        Code = 4
	OutputLimit    Code = 5
)

// Codes are all codes with their names and what they mean.
var Codes = [...]struct {
	Code  Code
	Name  string
	Means string
}{
	{PolicyDenied, "POLICY_DENIED", "the policy does not allow it; nothing was looked at"},
	{InvalidRequest, "INVALID_REQUEST", "the request or its limits are not as they must be"},
	{SpawnFailed, "SPAWN_FAILED", "the program or the directory is not there, or cannot be used"},
	{Timeout, "TIMEOUT", "it was still running when its time was over, and was killed"},
	{OutputLimit, "OUTPUT_LIMIT", "it wrote more than a limit, and was killed"},
}

func (c Code) String() string {
	for _, x := range Codes {
		if x.Code == c {
			return x.Name
		}
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// Widths of a result without a response, in bytes. Both are read.
const (
	WideErr   = 9 // with a reserved word, 0
	NarrowErr = 5
)

const (
	tagErr = 0
	tagOK  = 1
)

// Result is ResultBytesV1: a code, or a response.
type Result struct {
	Code  Code   // 0: there is a response
	Flags uint32 // reserved
	Response
}

// Response is what a program did: ProcRespV1.
type Response struct {
	ExitCode       uint32 // its exit code, or 128 and the number of the signal that ended it
	RespFlags      uint32 // reserved: 0
	Stdout, Stderr []byte
}

// ParseResult reads a result, with a code of either width.
func ParseResult(b []byte) (*Result, error) {
	s, r := &Result{}, &reader{b: b}
	switch tag := r.byte("its tag"); {
	case r.err != nil:
	case tag == tagErr:
		if s.Code = Code(r.u32("its code")); len(r.b) > 0 {
			s.Flags = r.u32("its flags")
		}
		if r.err == nil && s.Code == 0 {
			r.fail("code 0, which is none")
		}
	case tag == tagOK:
		if v := r.byte("its version"); r.err == nil && v != version {
			r.fail("version %d, expected %d", v, version)
		}
		s.ExitCode, s.RespFlags = r.u32("its exit code"), r.u32("its flags")
		s.Stdout, s.Stderr = r.text("standard output"), r.text("standard error")
	default:
		r.fail("tag %d, expected %d or %d", tag, tagErr, tagOK)
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return s, nil
}

// Append adds the encoding of a result. width is that of one without a response.
func (s *Result) Append(b []byte, width int) []byte {
	b = slices.Grow(b, 32+len(s.Stdout)+len(s.Stderr))
	if s.Code != 0 {
		if b = u32s(append(b, tagErr), uint32(s.Code)); width == WideErr {
			b = u32s(b, s.Flags)
		}
		return b
	}
	for _, part := range s.Parts(width) {
		b = append(b, part...)
	}
	return b
}

// Parts are the encoding in pieces, of which the large ones are not copied.
func (s *Result) Parts(width int) [][]byte {
	if s.Code != 0 {
		return [][]byte{s.Append(nil, width)}
	}
	head := u32s([]byte{tagOK, version}, s.ExitCode, s.RespFlags, uint32(len(s.Stdout)))
	return [][]byte{head, s.Stdout, u32s(nil, uint32(len(s.Stderr))), s.Stderr}
}

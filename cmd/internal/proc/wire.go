package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// version is the first byte of a request, its limits and a response.
const version = 1

// Bounds of a request (schemas/PROC.md, "Request").
const (
	MaxArgs = 128 // texts of argv
	MaxEnv  = 256 // variables
)

// CapsSize is the length of the limits.
const CapsSize = 17

// Request is what to run: ProcReqV1.
type Request struct {
	Argv  [][]byte // the first is the path of the program: no shell, no search in PATH
	Env   []Var    // the whole environment: nothing is inherited
	Cwd   []byte   // empty: as the caller's
	Stdin []byte
}

// Var is one variable of the environment.
type Var struct{ Key, Value []byte }

// Caps are the limits of one run: ProcCapsV1. Sizes are in bytes.
type Caps struct {
	MaxStdout, MaxStderr uint32
	TimeoutMS            uint32 // 0 is none
	MaxTotal             uint32 // of both outputs; 0 is the sum of both
}

// Total is the limit of both outputs together, in bytes.
func (c *Caps) Total() uint64 {
	if c.MaxTotal == 0 {
		return min(uint64(c.MaxStdout)+uint64(c.MaxStderr), 1<<32-1)
	}
	return uint64(c.MaxTotal)
}

// reader reads fields one after the other. After the first fault it reads nothing more.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

// short fails where more bytes could be what is missing.
func (r *reader) short(format string, a ...any) {
	if r.err == nil {
		r.err = cutError(fmt.Sprintf(format, a...))
	}
}

// cutError is the error of bytes that end too early.
type cutError string

func (e cutError) Error() string { return string(e) }

// IsCut reports whether an error of this package's parsers says only that the bytes end too early, so that what they begin can be valid.
func IsCut(err error) bool {
	var cut cutError
	return errors.As(err, &cut)
}

// MaxInput is how many bytes of an input are read at most: more than the largest standard input that a policy can allow.
const MaxInput = 512 << 20

func (r *reader) byte(what string) byte {
	if r.err != nil || len(r.b) == 0 {
		r.short("it ends before %s", what)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) u32(what string) uint32 {
	if r.err != nil || len(r.b) < 4 {
		r.short("it ends in %s", what)
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// text reads a length and that many bytes, which stay those of the input.
func (r *reader) text(what string) []byte {
	n := r.u32("the length of " + what)
	switch {
	case r.err != nil:
		return nil
	case uint64(n) <= uint64(len(r.b)):
	case n > MaxInput:
		r.fail("%s has %d bytes, which are not there, or more than the %d that are read", what, n, MaxInput)
		return nil
	default:
		r.short("%s has %d bytes, and %d are left", what, n, len(r.b))
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) count(what string, least, most uint32) int {
	n := r.u32("the number of " + what)
	if r.err == nil && (n < least || n > most) {
		r.fail("%d %s, expected %d to %d", n, what, least, most)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("something follows its end") // how much is not said: a reader can have only a part of it
	}
	return r.err
}

// ParseRequest reads a request. Its texts share the bytes that were read.
func ParseRequest(b []byte) (*Request, error) {
	q, r := &Request{}, &reader{b: b}
	if v := r.byte("its version"); r.err == nil && v != version {
		r.fail("version %d, expected %d", v, version)
	}
	if f := r.byte("its flags"); r.err == nil && f != 0 {
		r.fail("flags 0x%02x, expected none", f)
	}
	for i := range r.count("arguments", 1, MaxArgs) {
		a := r.text(fmt.Sprintf("argument %d", i))
		if r.err == nil && i == 0 && len(a) == 0 {
			r.fail("the path of the program is empty")
		}
		q.Argv = append(q.Argv, r.whole(a, "argument"))
	}
	for range r.count("variables", 0, MaxEnv) {
		v := Var{Key: r.text("the name of a variable")}
		v.Value = r.whole(r.text("the value of a variable"), "value")
		if r.err == nil && (len(v.Key) == 0 || has(v.Key, '=')) {
			r.fail("a variable's name is empty or has =")
		}
		r.whole(v.Key, "name")
		q.Env = append(q.Env, v)
	}
	q.Cwd = r.whole(r.text("the directory"), "directory")
	q.Stdin = r.text("standard input")
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return q, nil
}

// whole refuses a text that the kernel would take for a shorter one.
func (r *reader) whole(b []byte, what string) []byte {
	if r.err == nil && has(b, 0) {
		r.fail("a 0 byte in %s", what)
	}
	return b
}

func has(b []byte, c byte) bool {
	for _, x := range b {
		if x == c {
			return true
		}
	}
	return false
}

// Append adds the encoding of a request.
func (q *Request) Append(b []byte) []byte {
	b = append(b, version, 0)
	b = u32(b, len(q.Argv))
	for _, a := range q.Argv {
		b = text(b, a)
	}
	b = u32(b, len(q.Env))
	for _, v := range q.Env {
		b = text(text(b, v.Key), v.Value)
	}
	return text(text(b, q.Cwd), q.Stdin)
}

func u32(b []byte, n int) []byte     { return binary.LittleEndian.AppendUint32(b, uint32(n)) }
func text(b []byte, s []byte) []byte { return append(u32(b, len(s)), s...) }
func u32s(b []byte, v ...uint32) []byte {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// ParseCaps reads limits: exactly CapsSize bytes.
func ParseCaps(b []byte) (*Caps, error) {
	switch {
	case len(b) < CapsSize:
		return nil, fmt.Errorf("limits: %w", cutError(fmt.Sprintf("%d bytes, expected %d", len(b), CapsSize)))
	case len(b) > CapsSize:
		return nil, fmt.Errorf("limits: more than %d bytes, expected %d", CapsSize, CapsSize)
	}
	if b[0] != version {
		return nil, fmt.Errorf("limits: version %d, expected %d", b[0], version)
	}
	n := func(i int) uint32 { return binary.LittleEndian.Uint32(b[1+4*i:]) }
	return &Caps{n(0), n(1), n(2), n(3)}, nil
}

// Append adds the encoding of limits.
func (c *Caps) Append(b []byte) []byte {
	return u32s(append(b, version), c.MaxStdout, c.MaxStderr, c.TimeoutMS, c.MaxTotal)
}

// errFrame means that something is no frame of a request and its limits.
var errFrame = errors.New("not a frame: expected u32 length, request, u32 length, limits")

// ParseFrame takes a frame apart: u32 length, request, u32 length, limits.
func ParseFrame(b []byte) (request, caps []byte, err error) {
	r := &reader{b: b}
	request, caps = r.text("the request"), r.text("the limits")
	if err := r.end(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	return request, caps, nil
}

// AppendFrame adds a frame.
func AppendFrame(b, request, caps []byte) []byte { return text(text(b, request), caps) }

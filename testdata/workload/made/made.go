// Package made prints what a workload did: one JSON line for each kernel line that a
// faithful record must hold. The workload writes the expectation, never the program
// under test.
package made

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// Event is one expected kernel line.
type Event = expect.Event

var out = json.NewEncoder(os.Stdout)

// Option completes an event.
type Option func(*Event)

// Flags sets the expected flags and mode of an open.
func Flags(flags, mode uint64) Option {
	return func(e *Event) { e.Flags, e.Mode = &flags, &mode }
}

// Resolve sets the expected openat2 resolve flags.
func Resolve(r uint64) Option { return func(e *Event) { e.Resolve = &r } }

// Rule sets the number of the rule that refused.
func Rule(n uint32) Option { return func(e *Event) { e.Rule = &n } }

// By says which process acted; 0 leaves the process unchecked.
func By(pid int) Option { return func(e *Event) { e.Pid = pid } }

// Times says that n equal lines are expected.
func Times(n int) Option { return func(e *Event) { e.Count = n } }

// NoRet leaves the return value unchecked.
func NoRet() Option { return func(e *Event) { e.Ret = nil } }

// AnyValue leaves the value unchecked.
func AnyValue() Option { return func(e *Event) { e.Any = true } }

// Null expects a line without a value.
func Null() Option { return func(e *Event) { e.Value = nil } }

// Tail expects a value that ends in the given one: the path is longer than the
// record can hold.
func Tail() Option { return func(e *Event) { e.Suffix = true } }

// Line prints one expected line of this process. value is raw bytes.
func Line(op string, typ int, value string, ret int64, opts ...Option) {
	text := schemas.Text(value)
	e := Event{Op: op, Type: typ, Value: &text, Ret: &ret, Pid: os.Getpid(), Count: 1}
	for _, o := range opts {
		o(&e)
	}
	print(e)
}

// absent are the errors of what a kernel does not have, or does not let this user do.
var absent = []error{syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.EOPNOTSUPP, syscall.ENODEV, syscall.EINVAL, syscall.EAFNOSUPPORT,
	syscall.EADDRNOTAVAIL, syscall.ESTALE}

// Skipped says that something could not be made here, and why. With an error that something
// which is there has, the workload fails.
func Skipped(what string, why error) {
	if !slices.ContainsFunc(absent, func(e error) bool { return errors.Is(why, e) }) {
		os.Stderr.WriteString(what + ": " + why.Error() + "\n")
		os.Exit(1)
	}
	print(expect.Skip{Op: expect.OpSkip, What: what, Why: why.Error()})
}

func print(v any) {
	if err := out.Encode(v); err != nil {
		os.Exit(74)
	}
}

// Call makes one system call and returns its result as the kernel gave it:
// a negative errno on failure.
func Call(nr uintptr, a ...uintptr) int64 {
	var b [6]uintptr
	copy(b[:], a)
	r, _, errno := syscall.Syscall6(nr, b[0], b[1], b[2], b[3], b[4], b[5])
	if errno != 0 {
		return -int64(errno)
	}
	return int64(int(r))
}

// Str returns the address of s as a C string. The memory is never freed: a
// workload is short.
func Str(s string) uintptr {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	keep = append(keep, p)
	return uintptr(unsafe.Pointer(p))
}

var keep []*byte

// Ret turns an error of a wrapper into the kernel's return value.
func Ret(err error) int64 {
	if err == nil {
		return 0
	}
	if errno, ok := err.(syscall.Errno); ok {
		return -int64(errno)
	}
	return -1
}

// Must stops the workload if something that it needs failed: a workload that did half
// of its work must not look complete.
func Must(what string, ret int64) int64 {
	if ret < 0 {
		os.Stderr.WriteString(what + ": " + syscall.Errno(-ret).Error() + "\n")
		os.Exit(1)
	}
	return ret
}

package tool

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// The errors that several tools have in common, each with one wording.

// BadValue is the error of a flag whose value it does not take; want says what it takes.
func BadValue(flag, value, want string) error {
	return Usagef("--%s %q: expected %s", flag, value, want)
}

// Missing is the error of a call without an operand or flag that it needs; hint is a whole
// call.
func Missing(what, hint string) error {
	return &Error{Code: ExitUsage, Err: errors.New(what + " is missing"), Hints: []string{hint}, missing: true}
}

// CannotRead is the error for an input that could not be read.
func CannotRead(name string, err error) error {
	return Failf(ExitIO, "cannot read %s: %w", shown(name), cause(err))
}

// One is the only operand of a call that needs exactly one; hint is a whole call.
func (e *Env) One(what, hint string) (string, error) {
	switch {
	case len(e.Args) == 0:
		return "", Missing(what, hint)
	case len(e.Args) > 1:
		return "", Fail(ExitUsage, fmt.Errorf("unexpected operand %q: expected one, %s", e.Args[1], what), hint)
	}
	return e.Args[0], nil
}

// CannotWrite is the error for an output that could not be written.
func CannotWrite(name string, err error) error {
	return Fail(ExitIO, fmt.Errorf("cannot write %s: %w", shown(name), cause(err)), PlaceHints(name, err)...)
}

// ErrDirectory is a directory where a file is expected.
var ErrDirectory = errors.New("it is a directory, expected the name of a file")

// PlaceHints are what to type where an output cannot be made at a place: its directory is missing, or it is
// a directory itself. There are none if the error has another reason: an output can be a directory, too.
func PlaceHints(name string, err error) []string {
	switch dir := filepath.Dir(name); {
	case errors.Is(err, ErrDirectory), errors.Is(err, syscall.EISDIR):
		return []string{"name a file in it: " + ShellWord(filepath.Join(name, "NAME"))}
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return []string{"make its directory: mkdir -p " + ShellWord(dir)}
		}
	}
	return nil
}

// maxShown is how many characters of a name a message has.
const maxShown = 4096

// shown is a name in a message: it is on one line, whatever it is made of.
func shown(name string) string {
	if name == "" {
		return "(empty name)"
	}
	return verdict.Printable(name, maxShown)
}

// cause is the reason of a file error, without the operation and the name.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// NoOperands refuses operands.
func (e *Env) NoOperands() error {
	if len(e.Args) > 0 {
		return Usagef("unexpected operand %q", e.Args[0])
	}
	return nil
}

// NotEmpty refuses flags that were given the empty string where a name is expected.
func (e *Env) NotEmpty(flags ...string) error {
	for _, name := range flags {
		if e.Flag.IsSet(name) && e.Flag.String(name) == "" {
			return BadValue(name, "", "a name")
		}
	}
	return nil
}

// Word is the value of a flag that takes one of a few words.
func (e *Env) Word(flag string, words ...string) (string, error) {
	v := e.Flag.String(flag)
	return v, OneOf(flag, v, words...)
}

// OneOf refuses a value that is none of a few words, and says which one was probably meant.
func OneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	n := len(words) - 1
	err := BadValue(flag, value, strings.Join(words[:n], ", ")+" or "+words[n])
	if near := nearest.Word(value, words); near != "" {
		return Fail(ExitUsage, err, "did you mean --"+flag+" "+near+"?")
	}
	return err
}

// Duration is the value of a flag that takes a time of 0 or more.
func (e *Env) Duration(flag string) (time.Duration, error) {
	d := e.Flag.Duration(flag)
	if d < 0 {
		return 0, BadValue(flag, d.String(), "a duration of 0 or more")
	}
	return d, nil
}

// Size is the value of a flag that takes a number of bytes from least to most: digits, and
// K, M or G for powers of 1024.
func (e *Env) Size(flag string, least, most uint64) (uint64, error) {
	s := e.Flag.String(flag)
	n, ok := ParseSize(s)
	if !ok || n < least || n > most {
		return 0, BadValue(flag, s, fmt.Sprintf("a number of bytes from %s to %s, such as 4096, 64K or 16M", sizeText(least), sizeText(most)))
	}
	return n, nil
}

// RingSize is Size for the kernel's ring, which has a power of two, at least a page
// (bpf_ringbuf_alloc).
func (e *Env) RingSize(flag string) (uint64, error) {
	s := e.Flag.String(flag)
	n, ok := ParseSize(s)
	if !ok || n < 4<<10 || n > 1<<30 || bits.OnesCount64(n) != 1 {
		return 0, BadValue(flag, s, "a power of two from 4K to 1G")
	}
	return n, nil
}

var units = []struct {
	letter string
	shift  uint
}{{"G", 30}, {"M", 20}, {"K", 10}, {"", 0}}

// ParseSize reads a number of bytes as flags take it: digits, and K, M or G for powers of 1024.
func ParseSize(s string) (uint64, bool) {
	digits, shift := s, uint(0)
	for _, u := range units {
		if d, ok := strings.CutSuffix(strings.ToUpper(s), u.letter); ok {
			digits, shift = d, u.shift
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n << shift, err == nil && n <= MaxSize>>shift
}

// MaxSize is the largest size that a flag takes.
const MaxSize = 1 << 62

func sizeText(n uint64) string {
	for _, u := range units {
		if n>>u.shift<<u.shift == n && n != 0 {
			return strconv.FormatUint(n>>u.shift, 10) + u.letter
		}
	}
	return "0"
}

// RunID is the value of --run-id, or "" if it was not given.
func (e *Env) RunID() (string, error) {
	id := e.Flag.String("run-id")
	if e.Flag.IsSet("run-id") && !schemas.ValidRunID(id) {
		return "", BadValue("run-id", id, "1 to 128 of A-Z a-z 0-9 _ -")
	}
	return id, nil
}

// NewRunID is a name that no other run has: 128 random bits.
func NewRunID() string {
	var b [16]byte
	rand.Read(b[:])
	return "run_" + hex.EncodeToString(b[:])
}

package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Fixtures is a folder of results that were recorded: a file for each request and its limits, named by their digest,
// that holds the bytes of the result.
type Fixtures string

// ErrMiss means that there is no recording. Nothing is run instead.
var ErrMiss = errors.New("there is no recording of this request")

// maxFixture is the most that is read of a recording, in bytes.
const maxFixture = 1 << 30

// Key is the name of a recording: the SHA-256 of the request and its limits, one after the other, in hex.
func Key(request, caps []byte) string {
	h := sha256.New()
	h.Write(request)
	h.Write(caps)
	return hex.EncodeToString(h.Sum(nil))
}

func (f Fixtures) path(request, caps []byte) string {
	return filepath.Join(string(f), Key(request, caps))
}

// Replay reads the result of a request. The error is ErrMiss if there is none.
func (f Fixtures) Replay(request, caps []byte) (*Result, error) {
	name := f.path(request, caps)
	b, err := tool.ReadFile(name, maxFixture)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMiss, name)
	}
	if err != nil {
		return nil, err
	}
	s, err := ParseResult(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Record keeps the result of a request, in the place of one of before.
func (f Fixtures) Record(request, caps []byte, s *Result) error {
	return tool.WriteFile(f.path(request, caps), func(w io.Writer) error {
		_, err := w.Write(s.Append(nil, WideErr))
		return err
	})
}

// Check reports whether the folder can be used.
func (f Fixtures) Check() error {
	info, err := os.Stat(string(f))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", string(f))
	}
	return err
}

package valueset

import (
	"bytes"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// listMemory is how many bytes of a List stay in memory.
const listMemory = 512 << 10

// List keeps values that come sorted, to be read again once: in memory while they
// are few, then in a scratch file. The zero List is empty.
type List struct {
	buf  []byte // a sorted run, or what of it is not in the file yet
	file *os.File
	key  []byte // the last one
	walk *cursor
}

// Add appends a value of the surface set of the given index.
func (l *List) Add(set int, value []byte) error {
	l.key = append(append(l.key[:0], byte(set)), value...)
	l.buf = appendKey(l.buf, l.key, 0)
	if len(l.buf) < listMemory {
		return nil
	}
	return l.flush()
}

func (l *List) flush() (err error) {
	if l.file == nil {
		if l.file, err = tool.Spool(); err != nil {
			return err
		}
	}
	if _, err = l.file.Write(l.buf); err != nil {
		return tool.ScratchError(err)
	}
	l.buf = l.buf[:0]
	return nil
}

// Next returns the next value, io.EOF after the last. It is valid until the
// following call. Nothing can be added any more.
func (l *List) Next() (set int, value []byte, err error) {
	if l.walk == nil {
		if l.file == nil {
			l.walk = &cursor{buf: l.buf, file: bytes.NewReader(nil)}
		} else if err := l.flush(); err != nil {
			return 0, nil, err
		} else {
			l.walk = newCursor(l.file)
		}
	}
	switch ok, err := l.walk.next(); {
	case err != nil:
		return 0, nil, err
	case !ok:
		return 0, nil, io.EOF
	}
	return int(l.walk.key[0]), l.walk.key[1:], nil
}

// Close releases the scratch file.
func (l *List) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

package main

import (
	"bytes"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// keptBytes are how many bytes of a member are kept in memory: most members have no more, and need no file.
const keptBytes = 32 << 10

// kept is what was written: in memory, and from keptBytes on in a nameless scratch file. Only what was flushed can be read.
type kept struct {
	file *os.File // nil as long as all is in memory
	buf  []byte   // what is not in file
}

func (k *kept) Write(b []byte) (int, error) {
	if len(k.buf)+len(b) > keptBytes {
		if err := k.spill(); err != nil {
			return 0, err
		}
		if len(b) > keptBytes {
			return k.file.Write(b)
		}
	}
	k.buf = append(k.buf, b...)
	return len(b), nil
}

// spill puts into the file what is in memory. Who reads that still has it.
func (k *kept) spill() (err error) {
	was := k.file
	if was == nil {
		if k.file, err = tool.Spool(); err != nil {
			return err
		}
	}
	if _, err = k.file.Write(k.buf); err == nil && was != nil {
		k.buf = k.buf[:0]
	} else {
		k.buf = nil
	}
	return err
}

// Flush makes readable all that was written.
func (k *kept) Flush() error {
	if k.file == nil {
		return nil
	}
	return k.spill()
}

// readable is what was flushed, which later writes do not change.
func (k *kept) readable() io.ReaderAt {
	if k.file == nil {
		return bytes.NewReader(k.buf)
	}
	return k.file
}

func (k *kept) close() {
	if k.file != nil {
		k.file.Close()
	}
}

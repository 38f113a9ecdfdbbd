package main

import (
	"bytes"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
)

const firstBuffer = 64 << 10

// lineReader reads whole lines, up to a limit.
type lineReader struct {
	r          io.Reader
	max        int // bytes of a line, without its LF
	buf        []byte
	start, end int
	looked     int // there is no LF between start and looked
	err        error
	dropped    *jsonrpc.Scanner // of lines over the limit
}

// next returns the next line with its LF, valid until the next call. A line over the
// limit is read to its end and dropped; then tooLong is set. At the end of the input the
// error is io.EOF, or io.ErrUnexpectedEOF if there are bytes after the last LF.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	for {
		if i := bytes.IndexByte(l.buf[l.looked:l.end], '\n'); i >= 0 {
			line = l.buf[l.start : l.looked+i+1]
			l.start = l.looked + i + 1
			l.looked = l.start
			if len(line)-1 > l.max {
				l.scan(line[:len(line)-1], true)
				return nil, true, nil
			}
			return line, false, nil
		}
		l.looked = l.end
		if l.end-l.start > l.max {
			l.scan(l.buf[l.start:l.end], true)
			l.start = l.end
			return nil, true, l.skip()
		}
		if l.err == nil {
			l.fill()
			continue
		}
		if l.err == io.EOF && l.end > l.start {
			return nil, false, io.ErrUnexpectedEOF
		}
		return nil, false, l.err
	}
}

// fill makes room and reads once.
func (l *lineReader) fill() {
	if l.start == l.end {
		l.start, l.end, l.looked = 0, 0, 0
		if len(l.buf) > firstBuffer {
			l.buf = nil // free the memory of a long line
		}
	}
	if l.end == len(l.buf) {
		if l.start > 0 {
			l.end = copy(l.buf, l.buf[l.start:l.end])
			l.looked -= l.start
			l.start = 0
		} else {
			l.buf = append(make([]byte, 0, max(firstBuffer, 2*len(l.buf))), l.buf...)
			l.buf = l.buf[:cap(l.buf)]
		}
	}
	var n int
	n, l.err = l.r.Read(l.buf[l.end:])
	l.end += n
}

// scan reads a part of a line that is dropped, to find its id.
func (l *lineReader) scan(part []byte, first bool) {
	if l.dropped == nil {
		l.dropped = jsonrpc.NewServer()
	}
	if first {
		l.dropped.Begin()
	}
	l.dropped.Feed(part)
}

// ids is the id of the request that was dropped, if there is one.
func (l *lineReader) ids() []jsonrpc.ID {
	if l.dropped.Finish() != "" || !l.dropped.Has(jsonrpc.FieldMethod) || !l.dropped.Has(jsonrpc.FieldID) {
		return nil
	}
	id, reason := l.dropped.Identify(jsonrpc.FieldID, nil)
	if reason != "" {
		return nil
	}
	return []jsonrpc.ID{id.Written()}
}

// skip drops bytes up to the next LF.
func (l *lineReader) skip() error {
	for {
		if i := bytes.IndexByte(l.buf[l.looked:l.end], '\n'); i >= 0 {
			l.scan(l.buf[l.start:l.looked+i], false)
			l.start = l.looked + i + 1
			l.looked = l.start
			return nil
		}
		l.scan(l.buf[l.start:l.end], false)
		l.start, l.end, l.looked = 0, 0, 0
		if l.err != nil {
			return io.ErrUnexpectedEOF
		}
		l.fill()
	}
}

// blank reports whether a line contains only white space.
func blank(line []byte) bool { return len(bytes.Trim(line, " \t\r\n")) == 0 }

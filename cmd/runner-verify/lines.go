package main

import (
	"bufio"
	"bytes"
	"io"
)

// lines calls take for every line of a layer, without its LF. The line is valid
// during the call. What is not a line is a finding, and reading goes on.
func (v *verifier) lines(member string, r io.Reader, take func(line []byte, n int) error) error {
	if v.buf == nil {
		v.buf = bufio.NewReaderSize(r, maxLine)
	}
	v.buf.Reset(r)
	for n := 1; ; n++ {
		line, err := v.buf.ReadSlice('\n')
		switch err {
		case nil:
			line = line[:len(line)-1]
		case bufio.ErrBufferFull:
			v.add(ruleLimit, member, n, "line is longer than %d bytes", maxLine)
			if err := v.skipLine(); err != nil {
				return err
			}
			continue
		case io.EOF:
			if len(line) == 0 {
				return nil
			}
			v.add(ruleLinesForm, member, n, "the last line does not end in a line feed")
		default:
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			v.add(ruleLinesForm, member, n, "blank line")
			continue
		}
		if err := take(line, n); err != nil {
			return err
		}
	}
}

// skipLine reads to the end of a line that is too long.
func (v *verifier) skipLine() error {
	for {
		_, err := v.buf.ReadSlice('\n')
		switch err {
		case nil, io.EOF:
			return nil
		case bufio.ErrBufferFull:
		default:
			return err
		}
	}
}

// shallow refuses lines that nest too deep for a parser that recurses.
func (v *verifier) shallow(member string, line int, b []byte) bool {
	if d := nested(b); d > maxDepth {
		v.add(ruleLimit, member, line, "JSON nests %d deep, at most %d", d, maxDepth)
		return false
	}
	return true
}

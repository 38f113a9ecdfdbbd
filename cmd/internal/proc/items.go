package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxItems and MaxItem bound a list of jobs or results: how many, and the bytes of one.
const (
	MaxItems = 1 << 20
	MaxItem  = 64 << 20
)

// ParseItems reads a list: u32 number, then u32 length and bytes each.
func ParseItems(b []byte) (items [][]byte, err error) {
	r := &reader{b: b}
	for range r.count("items", 0, MaxItems) {
		x := r.text("an item")
		if len(x) > MaxItem {
			r.fail("an item has %d bytes, at most %d", len(x), MaxItem)
		}
		if r.err != nil {
			break
		}
		items = append(items, x)
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	return items, nil
}

// AppendItems adds the encoding of a list.
func AppendItems(b []byte, items [][]byte) []byte {
	b = u32(b, len(items))
	for _, x := range items {
		b = text(b, x)
	}
	return b
}

// writeJob writes the frame of a job, or of its answer: u32 number from 1, u32 length, bytes.
func writeJob(w io.Writer, number int, b []byte) error {
	_, err := w.Write(text(u32(nil, number), b))
	return err
}

var errAnswer = errors.New("a worker's answer is not one of a job that it has")

// readJob reads such a frame.
func readJob(r io.Reader) (number uint32, b []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	number = binary.LittleEndian.Uint32(head[:])
	n := binary.LittleEndian.Uint32(head[4:])
	if n > MaxItem {
		return 0, nil, fmt.Errorf("an answer has %d bytes, at most %d", n, MaxItem)
	}
	b = make([]byte, n)
	_, err = io.ReadFull(r, b)
	return number, b, err
}

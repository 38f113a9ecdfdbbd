package main

import (
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// member is one file of the archive while it is written. Its bytes are digested and compressed by a goroutine as they
// come, and only the compressed ones are stored.
type member struct {
	name   string
	size   int64
	buf    []byte
	packer *bundle.Packer
	out    kept // only the goroutine uses packer and out, unless it waits
	given  chan []byte
	back   chan packedBlock
	begun  bool // there is a goroutine
	flying int  // blocks that the goroutine has
	spare  []byte
	err    error // the first
}

// packedBlock is a buffer that comes back, with the result of packing its bytes.
type packedBlock struct {
	buf []byte
	err error
}

// memberBlock is how many bytes are packed at once.
const memberBlock = 128 << 10

func newMember(name string) *member {
	m := &member{name: name, given: make(chan []byte, 1), back: make(chan packedBlock, 2)}
	m.packer = bundle.NewPacker(&m.out)
	return m
}

// Write appends b. An error of packing it can come later, but no later than from source.
func (m *member) Write(b []byte) (int, error) {
	if err := m.grow(len(b)); err != nil {
		return 0, err
	}
	for rest := b; ; {
		n := min(len(rest), memberBlock-len(m.buf))
		m.buf, rest = append(m.buf, rest[:n]...), rest[n:]
		if len(m.buf) >= memberBlock {
			m.pass()
		}
		if len(rest) == 0 {
			return len(b), m.err
		}
	}
}

// line is Write of a line, given without its LF.
func (m *member) line(b []byte) error {
	if err := m.grow(len(b) + 1); err != nil {
		return err
	}
	if m.buf = append(append(m.buf, b...), '\n'); len(m.buf) >= memberBlock {
		m.pass()
	}
	return m.err
}

// grow makes the member n bytes longer.
func (m *member) grow(n int) error {
	if m.size += int64(n); m.size > bundle.MaxMember {
		return fmt.Errorf("%s grows beyond %d bytes, the most that a tar member can hold", m.name, int64(bundle.MaxMember))
	}
	return nil
}

// pass hands what has gathered to the goroutine.
func (m *member) pass() {
	if !m.begun {
		m.begun = true
		go m.pack()
	}
	m.given <- m.buf
	m.buf, m.spare = m.spare, nil
	if m.flying++; m.flying == 2 {
		m.take()
	}
}

// pack packs the blocks that it gets. After a failure it only returns the buffers, so that nobody waits forever.
func (m *member) pack() {
	var err error
	for buf := range m.given {
		if err == nil {
			_, err = m.packer.Write(buf)
		}
		m.back <- packedBlock{buf[:0], err}
	}
}

// take waits for one block.
func (m *member) take() {
	p := <-m.back
	m.flying--
	if m.spare = p.buf; m.buf == nil {
		m.buf, m.spare = m.spare, nil
	}
	m.fail(p.err)
}

func (m *member) fail(err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("the scratch file of %s: %w", m.name, tool.ScratchError(err))
	}
}

// finish packs all that was written so far.
func (m *member) finish() error {
	for m.flying > 0 {
		m.take()
	}
	if m.err == nil && len(m.buf) > 0 {
		_, err := m.packer.Write(m.buf)
		m.buf = m.buf[:0]
		m.fail(err)
	}
	if m.err == nil {
		m.fail(m.packer.Flush())
		m.fail(m.out.Flush())
	}
	return m.err
}

// reader returns a reader of what was written so far.
func (m *member) reader() (io.Reader, error) {
	s, err := m.source()
	return s.Content, err
}

// source returns the member as input of the archive writer.
func (m *member) source() (bundle.Source, error) {
	if err := m.finish(); err != nil {
		return bundle.Source{}, err
	}
	return m.packer.Source(m.name, m.out.readable()), nil
}

func (m *member) close() {
	for m.flying > 0 {
		m.take()
	}
	close(m.given)
	m.out.close()
}

package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

const (
	chunkSize   = 256 << 10
	chunkAhead  = 3
	recordBytes = 20 * blockSize // tar's customary blocking factor
)

// chunk is a piece of the uncompressed stream and the error after it, if any.
type chunk struct {
	b   []byte
	err error
}

// source is the uncompressed tar stream. A goroutine decompresses and hashes
// ahead of the consumer, so that checking the content and unpacking it overlap.
type source struct {
	in     *counter
	buf    *bufio.Reader
	zr     *gzip.Reader
	lim    Limits
	sum    hash.Hash // or nil
	out    int64     // bytes produced; only the goroutine uses it
	ready  chan chunk
	free   chan []byte
	stop   chan struct{}
	exited chan struct{}

	cur  []byte // rest of the current chunk
	full []byte // its whole buffer, which is used again
	err  error
}

// counter counts compressed bytes and keeps read errors separate from format errors.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

var gzipMagic = []byte{0x1f, 0x8b}

func openSource(r io.Reader, lim Limits, sum hash.Hash) (*source, error) {
	s := &source{in: &counter{r: r}, lim: lim, sum: sum,
		ready: make(chan chunk, chunkAhead), free: make(chan []byte, chunkAhead+1),
		stop: make(chan struct{}), exited: make(chan struct{})}
	s.buf = bufio.NewReaderSize(s.in, 64<<10)
	head, err := s.buf.Peek(len(gzipMagic))
	switch {
	case s.in.err != nil:
		return nil, fmt.Errorf("%w: %w", ErrRead, s.in.err)
	case err != nil && len(head) == 0:
		return nil, fmt.Errorf("%w: empty input", ErrTruncated)
	}
	if bytes.Equal(head, gzipMagic) {
		if s.zr, err = gzip.NewReader(s.buf); err != nil {
			return nil, s.classify(err)
		}
		s.zr.Multistream(false)
	}
	go s.run()
	return s, nil
}

// classify turns an error of the decompressor into one of the package's classes.
func (s *source) classify(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case s.in.err != nil:
		return fmt.Errorf("%w: %w", ErrRead, s.in.err)
	case err == io.ErrUnexpectedEOF || err == io.EOF:
		return fmt.Errorf("%w: gzip data ends early, after %d bytes: the file was cut, as by a download that broke off", ErrTruncated, s.in.n)
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%w: gzip checksum or length does not match", ErrCorrupt)
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("%w: bad gzip header", ErrNotArchive)
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w: bad gzip data", ErrCorrupt)
	}
	return fmt.Errorf("%w: %v", ErrCorrupt, err)
}

func (s *source) run() {
	defer close(s.exited)
	for made := 0; ; {
		var b []byte
		if made <= chunkAhead {
			b = make([]byte, chunkSize)
			made++
		} else {
			select {
			case b = <-s.free:
			case <-s.stop:
				return
			}
		}
		n, err := s.fill(b)
		if s.sum != nil {
			s.sum.Write(b[:n])
		}
		select {
		case s.ready <- chunk{b[:n], err}:
		case <-s.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// fill reads one chunk. Its error is io.EOF only after a checked end of input.
func (s *source) fill(b []byte) (int, error) {
	var r io.Reader = s.buf
	if s.zr != nil {
		r = s.zr
	}
	n, err := io.ReadFull(r, b)
	s.out += int64(n)
	switch {
	case s.out > s.lim.Total:
		return n, fmt.Errorf("%w: more than %d bytes uncompressed", ErrLimit, s.lim.Total)
	case s.beyond(s.lim.Free, s.lim.Ratio):
		return n, fmt.Errorf("%w: %d bytes came out of %d, more than %d times", ErrLimit, s.out, s.in.n, s.lim.Ratio)
	case s.beyond(s.lim.Large, s.lim.LargeRatio):
		return n, fmt.Errorf("%w: %d bytes came out of %d, more than %d times", ErrLimit, s.out, s.in.n, s.lim.LargeRatio)
	case err == nil:
		return n, nil
	case s.zr == nil:
		if s.in.err != nil {
			return n, fmt.Errorf("%w: %w", ErrRead, s.in.err)
		}
		return n, io.EOF
	case err != io.EOF && s.truncatedInside(err):
		return n, s.classify(err)
	}
	if _, err := s.buf.ReadByte(); err == nil {
		return n, fmt.Errorf("%w: bytes follow the gzip stream", ErrTrailing)
	}
	if s.in.err != nil {
		return n, fmt.Errorf("%w: %w", ErrRead, s.in.err)
	}
	return n, io.EOF
}

// beyond reports whether more came out than ratio times what went in, once that is much.
func (s *source) beyond(free, ratio int64) bool {
	return ratio > 0 && s.out > free && s.out/ratio > s.in.n
}

// truncatedInside distinguishes a cut gzip stream from a short last chunk: ReadFull
// reports both as ErrUnexpectedEOF, the decompressor returns EOF only at its end.
func (s *source) truncatedInside(err error) bool {
	if err != io.ErrUnexpectedEOF {
		return true
	}
	var one [1]byte
	n, err := s.zr.Read(one[:])
	return n != 0 || err != io.EOF
}

func (s *source) next() error {
	if s.err != nil {
		return s.err
	}
	if s.full != nil {
		s.free <- s.full[:cap(s.full)]
		s.full = nil
	}
	c := <-s.ready
	s.cur, s.full, s.err = c.b, c.b, c.err
	if len(s.cur) > 0 {
		return nil
	}
	return s.err
}

func (s *source) Read(p []byte) (int, error) {
	for len(s.cur) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.cur)
	s.cur = s.cur[n:]
	return n, nil
}

func (s *source) close() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.exited
}

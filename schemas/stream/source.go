package stream

import (
	"bytes"
	"hash"
	"io"
)

// readSize is how much is read at once. It is small enough to stay in a core's own
// cache until the bytes are parsed and digested.
const readSize = 256 << 10

// source gives a Reader its input in blocks of whole lines, and digests them.
type source interface {
	// digest names the checksum. It is called once, after the first block has come.
	digest(h hash.Hash)
	// next digests the previous block, whose memory it may use again, and returns the next
	// one: lines, each with its LF. With an error (io.EOF, errLong or a failed read) the
	// block is the rest of the input, which has no LF.
	next() ([]byte, error)
	// sum digests the first n bytes of the last block and returns the digest of all.
	sum(n int) []byte
	// close ends the goroutines of the source. It may be called more than once.
	close()
}

// errLong says that there is no LF within MaxLine bytes.
type errLong struct{}

func (errLong) Error() string { return "line is too long" }

// fill reads into buf after its first n bytes, which have no LF, until there is an LF. It
// returns the number of bytes in buf and the end of the last whole line. The length of buf
// is at least MaxLine; each read is for at most atOnce bytes.
func fill(r io.Reader, buf []byte, n, atOnce int) (filled, whole int, err error) {
	for empty := 0; ; {
		got, err := r.Read(buf[n:min(n+atOnce, len(buf))])
		if got == 0 && err == nil {
			if empty++; empty == 100 {
				err = io.ErrNoProgress
			}
		}
		whole = bytes.LastIndexByte(buf[n:n+got], '\n') + 1
		if whole > 0 {
			whole += n
		}
		n += got
		if whole == 0 && (n > MaxLine || n == MaxLine && err == nil) {
			err = errLong{}
		}
		if whole > 0 || err != nil {
			return n, whole, err
		}
	}
}

// direct is a source that reads and digests in the calls of its methods.
type direct struct {
	r     io.Reader
	h     hash.Hash
	buf   []byte // length at least MaxLine
	n     int    // bytes in it
	whole int    // length of the last block
	err   error  // to be returned after the last block
}

func newDirect(r io.Reader, buf []byte) *direct {
	return &direct{r: r, buf: buf}
}

func (d *direct) digest(h hash.Hash) { d.h = h }

func (d *direct) next() ([]byte, error) {
	if d.whole > 0 {
		d.h.Write(d.buf[:d.whole])
	}
	d.n = copy(d.buf, d.buf[d.whole:d.n])
	d.whole = 0
	if d.err == nil {
		d.n, d.whole, d.err = fill(d.r, d.buf, d.n, readSize)
	}
	if d.whole > 0 {
		return d.buf[:d.whole], nil
	}
	return d.buf[:d.n], d.err
}

func (d *direct) sum(n int) []byte {
	d.h.Write(d.buf[:n])
	return d.h.Sum(nil)
}

func (d *direct) close() {}

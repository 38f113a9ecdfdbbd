package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Reader reads one archive, member by member.
type Reader struct {
	src   *source
	lim   Limits
	off   int64 // bytes of the tar stream consumed
	rest  int64 // bytes of the current member not read yet
	pad   int64 // padding after it
	last  string
	n     int
	err   error
	block [blockSize]byte
}

// Open starts reading an archive, gzip or plain tar as its first bytes say. The
// caller must Close the reader.
func Open(r io.Reader, lim Limits) (*Reader, error) { return open(r, lim, sha256.New()) }

// OpenAgain is Open for bytes that are known to be those of an archive that was read: its Identity is not made again.
func OpenAgain(r io.Reader, lim Limits) (*Reader, error) { return open(r, lim, nil) }

func open(r io.Reader, lim Limits, sum hash.Hash) (*Reader, error) {
	src, err := openSource(r, lim, sum)
	if err != nil {
		return nil, err
	}
	return &Reader{src: src, lim: lim}, nil
}

// Close stops reading. It does not close the input and may be called at any time.
func (a *Reader) Close() { a.src.close() }

// Gzip reports whether the archive is compressed.
func (a *Reader) Gzip() bool { return a.src.zr != nil }

// Next skips the rest of the current member and returns the next one with a reader of
// exactly its bytes, valid until the following call. It returns io.EOF only after it has
// checked the end: two zero blocks, only record padding after them, the gzip checksum,
// and no further input.
func (a *Reader) Next() (Member, io.Reader, error) {
	if a.err != nil {
		return Member{}, nil, a.err
	}
	m, err := a.next()
	if err != nil {
		a.err = err
		return Member{}, nil, err
	}
	return m, (*body)(a), nil
}

func (a *Reader) next() (Member, error) {
	if _, err := io.Copy(io.Discard, (*body)(a)); err != nil {
		return Member{}, err
	}
	if err := a.full(a.block[:a.pad]); err != nil {
		return Member{}, err
	}
	if !zero(a.block[:a.pad]) {
		return Member{}, fmt.Errorf("%w: hidden bytes after %s", ErrHostile, a.last)
	}
	a.pad = 0
	if err := a.full(a.block[:]); err != nil {
		return Member{}, err
	}
	if a.block == zeroBlock && a.n > 0 {
		return Member{}, a.finish()
	}
	m, err := parseHeader(a.block[:])
	if err != nil {
		if a.n > 0 {
			err = fmt.Errorf("after %s: %w", a.last, err)
		}
		return Member{}, err
	}
	if err := a.admit(m); err != nil {
		return Member{}, err
	}
	a.last, a.rest, a.pad = m.Name, m.Size, -m.Size&(blockSize-1)
	a.n++
	return m, nil
}

// admit checks a member's place and size.
func (a *Reader) admit(m Member) error {
	switch {
	case a.n == 0 && m.Name != ManifestName:
		return fmt.Errorf("%w: first is %s, expected %s%s", ErrOrder, m.Name, ManifestName, repacked)
	case a.n > 0 && (m.Name == a.last || m.Name == ManifestName):
		return fmt.Errorf("%w: %s occurs twice", ErrOrder, m.Name)
	case a.n > 1 && m.Name < a.last:
		return fmt.Errorf("%w: %s follows %s", ErrOrder, m.Name, a.last)
	case m.Size > a.lim.Member:
		return fmt.Errorf("%w: %s declares %d bytes, at most %d", ErrLimit, m.Name, m.Size, a.lim.Member)
	case a.n >= a.lim.Members:
		return fmt.Errorf("%w: more than %d members", ErrLimit, a.lim.Members)
	}
	return nil
}

// finish checks everything after the first zero block.
func (a *Reader) finish() error {
	if err := a.full(a.block[:]); err != nil {
		return err
	}
	if a.block != zeroBlock {
		return fmt.Errorf("%w: one zero block, then more data", ErrTrailing)
	}
	end := a.off
	record := (end + recordBytes - 1) / recordBytes * recordBytes
	for {
		n, err := a.src.Read(a.block[:])
		a.off += int64(n)
		switch {
		case !zero(a.block[:n]):
			return fmt.Errorf("%w: bytes follow the two zero blocks", ErrTrailing)
		case a.off > record:
			return fmt.Errorf("%w: more zeros than a record of %d bytes holds", ErrTrailing, recordBytes)
		case err == io.EOF && a.off != end && a.off != record:
			return fmt.Errorf("%w: the zero padding ends within a record", ErrTruncated)
		case err != nil:
			return err
		}
	}
}

// full reads exactly len(b) bytes of the tar stream.
func (a *Reader) full(b []byte) error {
	n, err := io.ReadFull(a.src, b)
	a.off += int64(n)
	if err == io.EOF && len(b) > 0 || err == io.ErrUnexpectedEOF {
		if a.off < blockSize {
			return a.short(b[:n])
		}
		if a.n == 0 {
			return fmt.Errorf("%w: no member", ErrNotArchive)
		}
		return fmt.Errorf("%w: it ends after %s, before its two zero blocks", ErrTruncated, a.last)
	}
	return err
}

// short is the error about an input that ends within the first header.
func (a *Reader) short(b []byte) error {
	if len(b) == 0 && a.Gzip() {
		return fmt.Errorf("%w: the gzip stream is empty: what made it had no input", ErrNotArchive)
	}
	return notArchive(b, fmt.Sprintf("%d bytes are too few for a tar header", a.off))
}

// Identity is the hex SHA-256 of the uncompressed tar stream. It is valid only
// after Next returned io.EOF, and "" where it is not made.
func (a *Reader) Identity() string {
	if a.err != io.EOF || a.src.sum == nil {
		return ""
	}
	return hex.EncodeToString(a.src.sum.Sum(nil))
}

// body is the Reader seen as the content of its current member.
type body Reader

func (b *body) Read(p []byte) (int, error) {
	if b.rest == 0 {
		return 0, io.EOF
	}
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.rest {
		p = p[:b.rest]
	}
	n, err := b.src.Read(p)
	b.rest -= int64(n)
	b.off += int64(n)
	if err == io.EOF && b.rest > 0 {
		err = fmt.Errorf("%w: it ends inside %s", ErrTruncated, b.last)
	}
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

package record

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Blobs are the bytes of files, each once, under the names of their digests. Several may be written at a time.
type Blobs struct {
	dir int // of the record
	n   atomic.Uint64
}

// NewBlobs keeps blobs in the record whose directory the descriptor is open for.
func NewBlobs(dir int) *Blobs { return &Blobs{dir: dir} }

// Blob is one that is being written.
type Blob struct {
	*os.File
	blobs *Blobs
	name  string
}

// Open begins a blob.
func (b *Blobs) Open() (*Blob, error) {
	name := BlobDir + "/.writing" + strconv.FormatUint(b.n.Add(1), 10)
	fd, err := unix.Openat(b.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("writing the record: %w", err)
	}
	return &Blob{os.NewFile(uintptr(fd), name), b, name}, nil
}

// Done gives the blob its name, or without a digest takes it away.
func (b *Blob) Done(sum *[32]byte) error {
	err := b.Close()
	if sum == nil || err != nil {
		return errors.Join(err, unix.Unlinkat(b.blobs.dir, b.name, 0))
	}
	if err := unix.Renameat(b.blobs.dir, b.name, b.blobs.dir, BlobDir+"/"+hex.EncodeToString(sum[:])); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

// Drop takes a blob away, if it is there.
func (b *Blobs) Drop(sum [32]byte) error {
	if err := unix.Unlinkat(b.dir, BlobDir+"/"+hex.EncodeToString(sum[:]), 0); err != nil && err != unix.ENOENT {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

// Put writes a whole blob.
func (b *Blobs) Put(text []byte, sum [32]byte) error {
	to, err := b.Open()
	if err != nil {
		return err
	}
	if _, err := to.Write(text); err != nil {
		return errors.Join(err, to.Done(nil))
	}
	return to.Done(&sum)
}

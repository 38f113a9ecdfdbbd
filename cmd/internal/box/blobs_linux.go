package box

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// blobs are the bytes of files, each once, under the names of their digests.
type blobs struct {
	dir int // of the record
}

// blob is one that is being written.
type blob struct {
	*os.File
	blobs *blobs
}

// writing is the name of the blob that is being written. There is one at a time.
const writing = BlobDir + "/.writing"

func (b *blobs) open() (tree.Kept, error) {
	fd, err := unix.Openat(b.dir, writing, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("writing the record: %w", err)
	}
	return &blob{os.NewFile(uintptr(fd), writing), b}, nil
}

// Done gives the blob its name, or without a digest takes it away.
func (b *blob) Done(sum *[32]byte) error {
	err := b.Close()
	if sum == nil || err != nil {
		return errors.Join(err, unix.Unlinkat(b.blobs.dir, writing, 0))
	}
	if err := unix.Renameat(b.blobs.dir, writing, b.blobs.dir, BlobDir+"/"+hex.EncodeToString(sum[:])); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

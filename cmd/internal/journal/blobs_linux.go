package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

const digestPrefix = "sha256:"

func digestOf(sum []byte) string { return digestPrefix + hex.EncodeToString(sum) }

// blobTemp is the name of a blob that is being written. There is one at a time.
const blobTemp = "new"

// has reports whether a content is in the journal, whole. It reads it.
func (j *Journal) has(digest string) bool {
	r, err := j.blob(digest)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// save puts a content into the journal. It must have the digest and the size that are said.
func (j *Journal) save(digest string, size uint64, from io.Reader) error {
	at("blob " + digest)
	name := strings.TrimPrefix(digest, digestPrefix)
	fd, err := unix.Openat(j.blobs, blobTemp, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	f, h := os.NewFile(uintptr(fd), blobTemp), sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(from, int64(size)+1))
	if err == nil && (uint64(n) != size || digestOf(h.Sum(nil)) != digest) {
		err = errContent
	}
	at("blob written")
	if err = errors.Join(err, f.Close()); err == nil {
		err = unix.Renameat(j.blobs, blobTemp, j.blobs, name)
	}
	if err != nil {
		unix.Unlinkat(j.blobs, blobTemp, 0)
	}
	return err
}

// errContent means that bytes are not those that were announced.
var errContent = errors.New("its bytes are not those that its size and digest say")

// syncBlobs comes back when all blobs are on the disk.
func (j *Journal) syncBlobs() error {
	at("sync of the blobs")
	if err := unix.Syncfs(j.blobs); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	return nil
}

// blob opens a content. The end of reading is an error if it is not what its digest says.
func (j *Journal) blob(digest string) (io.ReadCloser, error) {
	fd, err := unix.Openat(j.blobs, strings.TrimPrefix(digest, digestPrefix), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("the journal's %s/%s: %w", blobsName, strings.TrimPrefix(digest, digestPrefix), err)
	}
	h := sha256.New()
	f := os.NewFile(uintptr(fd), digest)
	return &checked{f: f, r: io.TeeReader(f, h), sum: func() string { return digestOf(h.Sum(nil)) }, want: digest}, nil
}

type checked struct {
	f    *os.File
	r    io.Reader
	sum  func() string
	want string
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if err == io.EOF && c.sum() != c.want {
		err = fmt.Errorf("the journal's %s/%s: %w", blobsName, strings.TrimPrefix(c.want, digestPrefix), errContent)
	}
	return n, err
}

func (c *checked) Close() error { return c.f.Close() }

// putList keeps a list, and returns its digest. syncBlobs makes it last.
func putList[T any](j *Journal, list []T) (string, error) {
	b, err := lines(list)
	if err != nil {
		return "", fmt.Errorf("the journal: %w", err)
	}
	digest := schemas.DigestOf(b)
	if j.has(digest) {
		return digest, nil
	}
	return digest, j.save(digest, uint64(len(b)), bytes.NewReader(b))
}

// getList is a list that was kept.
func getList[T any](j *Journal, digest string) ([]T, error) {
	r, err := j.blob(digest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	list, err := parse[T](b)
	if err != nil {
		return nil, fmt.Errorf("the journal's %s/%s: %w", blobsName, strings.TrimPrefix(digest, digestPrefix), err)
	}
	return list, nil
}

package evidence

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Files writes members of an archive to files below a directory that is its own, under their names, which are of a closed set. Bytes
// is that of a visitor.
type Files struct {
	Dir  string
	Want func(member string) bool // nil: all members

	f   *os.File
	err error
}

// Bytes begins the file of a member, and ends the one before.
func (x *Files) Bytes(member string) io.Writer {
	x.shut()
	if x.Want != nil && !x.Want(member) {
		return nil
	}
	at := x.Path(member)
	err := os.MkdirAll(filepath.Dir(at), 0o700)
	if err == nil {
		x.f, err = os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		x.f, x.err = nil, errors.Join(x.err, err)
		return io.Discard
	}
	return x.f
}

// Path is the file of a member.
func (x *Files) Path(member string) string { return filepath.Join(x.Dir, filepath.FromSlash(member)) }

func (x *Files) shut() {
	if x.f != nil {
		x.err = errors.Join(x.err, x.f.Close())
		x.f = nil
	}
}

// Done ends the last file. Its error is that of any.
func (x *Files) Done() error {
	x.shut()
	return x.err
}

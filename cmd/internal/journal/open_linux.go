package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Journal is an open journal. One call at a time.
type Journal struct {
	dir   string
	file  *os.File // journal.ndjson
	lock  *os.File
	blobs int // the directory of the contents
	log   *log
}

// Names in a journal.
const (
	fileName  = "journal.ndjson"
	lockName  = "lock"
	blobsName = "blobs/sha256"
)

// step, if set by a test, is called before each action with its name.
var step func(name string)

func at(name string) {
	if step != nil {
		step(name)
	}
}

// Open opens a journal, and makes it if it is not there. Only one process has it open: for another one the error is ErrBusy.
func Open(dir string) (*Journal, error) {
	if err := ours(dir); err != nil {
		return nil, err
	}
	j := &Journal{blobs: -1}
	var err error
	if j.dir, err = filepath.Abs(dir); err == nil {
		j.dir, err = filepath.EvalSymlinks(j.dir)
	}
	if err == nil {
		err = j.open()
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// ours makes a directory that nobody else may look into, or takes one that is.
func ours(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is no directory of our own that nobody else can read, expected owner %d and mode 0700", shown(dir), os.Geteuid())
	}
	return nil
}

func (j *Journal) open() (err error) {
	j.lock, err = os.OpenFile(filepath.Join(j.dir, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(j.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			err = ErrBusy
		}
		return fmt.Errorf("the journal %s: %w", shown(j.dir), err)
	}
	if err := os.MkdirAll(filepath.Join(j.dir, blobsName), 0o700); err != nil {
		return err
	}
	if j.blobs, err = unix.Open(filepath.Join(j.dir, blobsName), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	name := filepath.Join(j.dir, fileName)
	if j.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	if j.log, err = read(j.file, shown(name)); err != nil {
		return err
	}
	if err := j.cut(); err != nil {
		return err
	}
	return syncPath(j.dir, filepath.Join(j.dir, "blobs"))
}

// cut removes what a write that did not end left after the last whole line.
func (j *Journal) cut() error {
	err := j.file.Truncate(j.log.size)
	if err == nil {
		_, err = j.file.Seek(j.log.size, 0)
	}
	if err == nil {
		err = j.file.Sync()
	}
	return err
}

func syncPath(paths ...string) error {
	for _, path := range paths {
		d, err := os.Open(path)
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the journal, and lets others have it.
func (j *Journal) Close() error {
	var errs []error
	if j.blobs >= 0 {
		errs = append(errs, unix.Close(j.blobs))
	}
	for _, f := range []*os.File{j.file, j.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	j.blobs, j.file, j.lock = -1, nil, nil
	return errors.Join(errs...)
}

// append writes one line, and comes back when it is on the disk.
func (j *Journal) append(r Record) error {
	r.Schema, r.Seq, r.Time = Schema, uint64(len(j.log.records)), time.Now().UTC().Format(time.RFC3339Nano)
	line, err := schemas.Marshal(&r)
	if err == nil && len(line) >= maxLine {
		err = fmt.Errorf("a line of %d bytes, at most %d", len(line), maxLine)
	}
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	line = append(line, '\n')
	at("line " + string(r.Step))
	if err := j.write(line); err != nil {
		return errors.Join(fmt.Errorf("the journal: %w", err), j.cut())
	}
	if err := j.log.add(&r); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	j.log.size += int64(len(line))
	at("after " + string(r.Step))
	return nil
}

func (j *Journal) write(line []byte) error {
	if step != nil { // a test can stop in the middle of a line
		if _, err := j.file.Write(line[:len(line)/2]); err != nil {
			return err
		}
		at("half a line")
		line = line[len(line)/2:]
	}
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	at("sync of a line")
	return j.file.Sync()
}

// reserve is how many bytes the journal keeps for the lines of the way back, so that a full disk does not prevent it.
const reserve = 64 << 10

// reserve allocates them. File systems that cannot do it are as they are.
func (j *Journal) reserve() error {
	err := unix.Fallocate(int(j.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.log.size, reserve)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil
	}
	return err
}

// Status says where each transaction is, in the order of their first lines.
func (j *Journal) Status() (list []Status) {
	for _, id := range j.log.order {
		t := j.log.txs[id]
		s := Status{Tx: id, Step: t.step, Directory: t.begin.Directory.Path, Names: t.begin.Names, Left: t.left, Why: t.why, Unfinished: t.unfinished()}
		for key := range t.receipts {
			s.Done = append(s.Done, key)
		}
		slices.Sort(s.Done)
		list = append(list, s)
	}
	return list
}

// unfinished reports whether the directory may be in between.
func (t *tx) unfinished() bool {
	switch t.step {
	case "", StepRefused, StepCommitted, StepUndone, StepReverted, StepFailed:
		return false
	case StepBegin, StepChecked, StepSaved:
		return len(t.opened) > 0
	}
	return true
}

// Log is all lines, in their order.
func (j *Journal) Log() []Record { return slices.Clone(j.log.records) }

// lines encodes a list.
func lines[T any](list []T) ([]byte, error) {
	var b bytes.Buffer
	for i := range list {
		line, err := schemas.Marshal(&list[i])
		if err != nil {
			return nil, err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// parse decodes a list.
func parse[T any](b []byte) (list []T, err error) {
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return nil, fmt.Errorf("line %d has no end", n)
		}
		var v T
		if err := schemas.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list, b = append(list, v), rest
	}
	return list, nil
}

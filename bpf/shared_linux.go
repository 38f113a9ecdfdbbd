//go:build amd64 || arm64

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Runs can share their probes: what a system call of any process costs is then what one run costs, and a run that finds the
// probes attached loads nothing. A set of probes is pinned in a directory of its own on the BPF file system, named by the digest
// of the objects: sharedset_linux.go. Each run is a member of it, with its ring and its counters: sharedrun_linux.go. Who changes
// anything there holds the lock, which ends with its holder.

// Probes says whose probes a session uses.
type Probes int

// Values of Probes.
const (
	ProbesOwn    Probes = iota
	ProbesAuto          // those that are there already, or that another run would need too; else its own
	ProbesShared        // never its own
)

// ParseProbes reads one of schemas.ProbesWords.
func ParseProbes(word string) Probes {
	return map[string]Probes{schemas.ProbesOwn: ProbesOwn, schemas.ProbesAuto: ProbesAuto, schemas.ProbesShared: ProbesShared}[word]
}

// SharedProbesError says why probes cannot be shared here.
type SharedProbesError struct{ Err error }

func (e *SharedProbesError) Error() string { return "sharing probes: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *SharedProbesError) Unwrap() error { return e.Err }

// shareName is the directory on the BPF file system.
const shareName = "runner"

// CanShare says why runs cannot share probes here, by what a session with its own has found out.
func CanShare(s *Session) error {
	if err := s.Preemption.Err; err != nil {
		return err
	}
	if s.without&(Cast|Loop) != 0 {
		return errors.New(s.Loaded())
	}
	_, err := bpfMount()
	return err
}

// share is that directory.
type share struct {
	path string
	dir  *os.File
}

// usualBPF is where systems mount it.
const usualBPF = "/sys/fs/bpf"

// bpfMount is where the BPF file system is mounted: at its usual place, or else the first one of the process. A variable, so that
// tests have one of their own.
var bpfMount = func() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	first := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		mount, rest, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if len(fields) < 5 || !strings.HasPrefix(rest, "bpf ") || strings.Contains(fields[4], `\`) {
			continue
		}
		if fields[4] == usualBPF {
			return usualBPF, nil
		}
		if first == "" {
			first = fields[4]
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	if first == "" {
		return "", errors.New("no BPF file system is mounted: mount -t bpf bpf " + usualBPF)
	}
	return first, nil
}

// openShare opens the directory, and makes it if there is none. Nobody but root may write there: what is pinned there is trusted.
// Everybody may make a directory on most BPF file systems, so that this name can be taken: root removes an empty one.
func openShare() (*share, error) {
	mount, err := bpfMount()
	if err != nil {
		return nil, err
	}
	if unix.Geteuid() != 0 {
		return nil, errors.New("only root shares probes")
	}
	path := filepath.Join(mount, shareName)
	for range 2 {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		var sh *share
		if sh, err = openTrusted(path); err == nil || !errors.As(err, new(*takenError)) {
			return sh, err
		}
		os.Remove(path)
	}
	return nil, err
}

// takenError says that somebody else has the directory.
type takenError struct{ what string }

func (e *takenError) Error() string { return e.what }

func openTrusted(path string) (*share, error) {
	dir, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err = errors.Join(unix.Fstat(int(dir.Fd()), &st), unix.Fstatfs(int(dir.Fd()), &fs)); err == nil {
		switch {
		case fs.Type != unix.BPF_FS_MAGIC:
			err = fmt.Errorf("%s is not on a BPF file system", path)
		case st.Uid != 0 || st.Mode&0o022 != 0:
			err = &takenError{fmt.Sprintf("%s is not root's alone: its owner is %d and its mode %#o, expected 0 and 0700", path, st.Uid, st.Mode&0o7777)}
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &share{path, dir}, nil
}

func (sh *share) close() { sh.dir.Close() }

// lockShare opens the directory and waits for its lock. It is that of the open file: who is killed holds it no longer.
func lockShare(patience time.Duration) (*share, error) {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		sh, err := openShare()
		if err == nil {
			if err = unix.Flock(int(sh.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && sh.there() {
				return sh, nil
			}
			sh.close()
		}
		gone := err == nil || errors.Is(err, os.ErrNotExist) // somebody removed it meanwhile: the lock of another one says nothing
		if !gone && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("the directory %s of the shared probes has been locked by somebody else for %v", shareName, patience)
		}
	}
}

// there reports whether the directory that is open is still the one at its path.
func (sh *share) there() bool {
	open, err := sh.dir.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(sh.path)
	return err == nil && os.SameFile(open, now)
}

// unlock gives the lock back, and removes the directory if nothing is in it. Only who holds the lock may do that.
func (sh *share) unlock() {
	os.Remove(sh.path)
	sh.close()
}

// sharePatience is how long a start waits for another one, which may be loading the probes.
const sharePatience = 10 * time.Second

// cannotShare says what of a run needs probes of its own.
func (opt Options) cannotShare() error {
	switch {
	case opt.Rules != nil:
		return errors.New("a run with network rules has probes of its own")
	case opt.Files != nil:
		return errors.New("a run with file rules has probes of its own")
	case opt.Without != 0:
		return errors.New("a run without parts of the kernel has probes of its own")
	case opt.Copies == CopiesOn, opt.Copies == CopiesOff && preemptsTasks():
		return errors.New("a run that chooses copies of probes has probes of its own")
	}
	return nil
}

// attachShared attaches a run to probes that it shares. It returns none if the run is to have its own.
func attachShared(opt Options) (*Session, error) {
	if opt.Probes == ProbesOwn {
		return nil, nil
	}
	s, err := tryShared(opt)
	if err == nil || opt.Probes == ProbesAuto {
		return s, nil // who chose nothing gets what works
	}
	return nil, &SharedProbesError{err}
}

func tryShared(opt Options) (_ *Session, err error) {
	if err := opt.cannotShare(); err != nil {
		return nil, err
	}
	sh, err := lockShare(sharePatience)
	if err != nil {
		return nil, err
	}
	defer sh.unlock()
	sh.sweep()
	path := filepath.Join(sh.path, ObjectsDigest())
	if _, err := os.Stat(path); err != nil && opt.Probes == ProbesAuto && sh.alone() {
		return nil, errors.New("no other run is there")
	}
	set, err := sh.openOrMake(path)
	if err != nil {
		return nil, err
	}
	s, err := set.join(opt)
	if err != nil {
		set.close()
		sh.tidy(path)
	}
	return s, err
}

// Unload removes all shared probes, of every build, and says how many sets there were. Runs that use them keep them to their end.
func Unload() (sets int, err error) {
	if _, err := bpfMount(); err != nil {
		return 0, nil // nothing can be pinned
	}
	sh, err := lockShare(sharePatience)
	if err != nil {
		return 0, err
	}
	defer sh.unlock()
	sh.sweep()
	entries, err := sh.dir.ReadDir(-1)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		at := filepath.Join(sh.path, e.Name())
		if e.Name() == aloneName {
			err = errors.Join(err, os.Remove(at))
			continue
		}
		sets++
		err = errors.Join(err, removeSet(at))
	}
	return sets, err
}

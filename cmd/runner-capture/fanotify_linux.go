package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/pidspace"
	"github.com/runner-evidence/runner/schemas"
)

// maxWaiting bounds the refusals that wait for the stream. What does not fit is counted
// as dropped; it is refused and counted by rule all the same.
const maxWaiting = 1 << 16

// listener answers the kernel's questions about opens on the command's own mounts. Its
// goroutine waits for nothing else, so that nobody waits long for an answer. If it fails,
// the capture fails and the command is killed.
type listener struct {
	fd       int
	stop     [2]int
	regions  []*confine.Region
	mounts   map[uint64]*confine.Region // by mount id; complete before the command starts
	cgroupID uint64
	failed   func(error)
	ended    chan struct{}

	starting map[int32]starter // by thread: its second question comes next

	waiting atomic.Bool // there is something to take
	lost    atomic.Uint64
	mu      sync.Mutex
	queue   []schemas.RawEvent
	counts  map[uint32]uint64

	running bool
	sample  string      // a mount that is watched
	testing atomic.Bool // the canary opens it now
}

// What is asked about: every open, or only executions.
const (
	askOpens = unix.FAN_OPEN_PERM | unix.FAN_OPEN_EXEC_PERM | unix.FAN_ONDIR
	askExecs = unix.FAN_OPEN_EXEC_PERM
)

func newListener(opt options, regions []*confine.Region, failed func(error)) (*listener, error) {
	fd, err := fanotifyGroup()
	if err != nil {
		return nil, err
	}
	l := &listener{fd: fd, regions: regions, mounts: map[uint64]*confine.Region{}, failed: failed, ended: make(chan struct{}),
		starting: map[int32]starter{}, counts: map[uint32]uint64{}}
	var st unix.Stat_t
	if err = unix.Stat(opt.cgroup, &st); err == nil {
		l.cgroupID = st.Ino
		err = unix.Pipe2(l.stop[:], unix.O_CLOEXEC)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return l, nil
}

var errNoRights = errors.New("needs CAP_SYS_ADMIN, of runner-exec too: sudo runner-exec -- COMMAND")

// fanotifyGroup makes a group that can be asked.
func fanotifyGroup() (int, error) {
	if err := initialPIDs(); err != nil {
		return -1, err
	}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_UNLIMITED_QUEUE|unix.FAN_UNLIMITED_MARKS|unix.FAN_REPORT_TID,
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_LARGEFILE)
	switch {
	case errors.Is(err, unix.EPERM):
		return -1, errNoRights
	case err != nil:
		return -1, fmt.Errorf("making a fanotify group: %w", err)
	}
	return fd, nil
}

// initialPIDs is nil if the kernel tells us process ids of the initial namespace, as the
// probes do.
func initialPIDs() error {
	if pidspace.Own() != schemas.InitialPIDNamespace {
		return errors.New("in a pid namespace, fanotify names processes otherwise than the probes do")
	}
	return nil
}

// watch marks the mount at a path, if something there is asked about.
func (l *listener) watch(path string) error {
	r := confine.RegionOf(l.regions, path)
	mask := uint64(0)
	switch {
	case r.Log:
		return nil
	case r.Deny[schemas.HookRead]:
		mask = askOpens
	case r.Deny[schemas.HookExec]:
		mask = askExecs
	default:
		return nil
	}
	err := unix.FanotifyMark(l.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, mask, unix.AT_FDCWD, path)
	if errors.Is(err, unix.EINVAL) && mask == askExecs && onProc(path) {
		return nil // the kernel asks nothing there, and executes nothing that is there
	}
	if errors.Is(err, unix.EINVAL) && onProc(path) {
		return fmt.Errorf("reading %s is denied, and the kernel asks nothing about opens there: add a rule to files, {id: proc, allow: %[1]s, on: read}", schemas.Text(path))
	}
	if err != nil {
		return fmt.Errorf("watching the mount %s: %w", schemas.Text(path), err)
	}
	id, err := mountID(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	l.mounts[id], l.sample = r, path
	return nil
}

func onProc(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

func mountID(at int, path string) (uint64, error) {
	var st unix.Statx_t
	flags := unix.AT_STATX_DONT_SYNC
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	err := unix.Statx(at, path, flags, unix.STATX_MNT_ID, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID == 0 {
		err = errors.New("this kernel tells no mount ids (Linux 5.8)")
	}
	if err != nil {
		return 0, fmt.Errorf("the mount of %s: %w", schemas.Text(path), err)
	}
	return st.Mnt_id, nil
}

// canary starts the listener, and opens something on a mount that is watched, which must
// be refused. It runs on the thread that made the mounts, while nobody else is there.
func (l *listener) canary() error {
	l.running = true
	go l.run()
	if len(l.mounts) == 0 {
		return nil // nothing is asked about
	}
	const opens = unix.FAN_OPEN_PERM | unix.FAN_ONDIR
	if err := unix.FanotifyMark(l.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, opens, unix.AT_FDCWD, l.sample); err != nil {
		return fmt.Errorf("watching the canary: %w", err)
	}
	l.testing.Store(true)
	fd, err := unix.Open(l.sample, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	l.testing.Store(false)
	if err == nil {
		unix.Close(fd)
		return errNotAsked
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the canary's open: %w", err)
	}
	if confine.RegionOf(l.regions, l.sample).Deny[schemas.HookRead] {
		return nil
	}
	if err := unix.FanotifyMark(l.fd, unix.FAN_MARK_REMOVE|unix.FAN_MARK_MOUNT, opens, unix.AT_FDCWD, l.sample); err != nil {
		return fmt.Errorf("watching the canary no longer: %w", err)
	}
	return nil
}

// run answers until close.
func (l *listener) run() {
	defer close(l.ended)
	buf := make([]byte, 16<<10)
	for {
		fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(l.stop[0])}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			l.failed(fmt.Errorf("waiting for questions about files: %w", err))
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		n, err := unix.Read(l.fd, buf)
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EBADF), errors.Is(err, unix.EFAULT), errors.Is(err, unix.EINVAL):
			l.failed(fmt.Errorf("reading questions about files: %w", err))
			return
		default: // the kernel could not open the file for us
			l.unknown()
			continue
		}
		if err := l.answerAll(buf[:n]); err != nil {
			l.failed(err)
			return
		}
	}
}

func (l *listener) answerAll(b []byte) error {
	const head = int(unsafe.Sizeof(unix.FanotifyEventMetadata{}))
	for len(b) >= head {
		m := *(*unix.FanotifyEventMetadata)(unsafe.Pointer(&b[0]))
		if m.Vers != unix.FANOTIFY_METADATA_VERSION || int(m.Event_len) < head || int(m.Event_len) > len(b) {
			return fmt.Errorf("a fanotify event has version %d and length %d", m.Vers, m.Event_len)
		}
		b = b[m.Event_len:]
		if m.Fd < 0 { // an overflow, which an unlimited queue does not have
			return errors.New("the queue of questions about files overflowed")
		}
		deny := l.decide(&m)
		answer := unix.FanotifyResponse{Fd: m.Fd, Response: unix.FAN_ALLOW}
		if deny {
			answer.Response = unix.FAN_DENY
		}
		_, err := unix.Write(l.fd, unsafe.Slice((*byte)(unsafe.Pointer(&answer)), unsafe.Sizeof(answer)))
		unix.Close(int(m.Fd))
		if err != nil && !errors.Is(err, unix.ENOENT) { // ENOENT: who waited was killed
			return fmt.Errorf("answering a question about a file: %w", err)
		}
	}
	return nil
}

// decide answers one question. The mount says which region the file is in. An execution
// asks twice, first as such and then as an open of the same thread; the second question
// is none of reading.
func (l *listener) decide(m *unix.FanotifyEventMetadata) (deny bool) {
	var st unix.Statx_t
	if err := unix.Statx(int(m.Fd), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID|unix.STATX_INO, &st); err != nil {
		st.Mnt_id = 0
	}
	if l.testing.Load() {
		return true
	}
	op := schemas.HookRead
	if m.Mask&unix.FAN_OPEN_EXEC_PERM != 0 {
		op = schemas.HookExec
	}
	r := l.mounts[st.Mnt_id]
	second := l.second(m.Pid, st.Ino) && op == schemas.HookRead
	switch {
	case r == nil:
		r = l.regions[0] // no mount of ours: refused, by the default
	case second:
		return false
	case !r.Deny[op]:
		if op == schemas.HookExec && r.Deny[schemas.HookRead] {
			l.begin(m.Pid, st.Ino)
		}
		return false
	}
	l.refuse(m, op, r.Rule[op])
	return true
}

// refuse counts a refusal and keeps its event.
func (l *listener) refuse(m *unix.FanotifyEventMetadata, op string, rule uint32) {
	e := schemas.RawEvent{Op: schemas.OpFileBlocked, CgroupID: l.cgroupID, PID: processOf(int(m.Pid)), TID: uint32(m.Pid),
		Has: schemas.HasRule, Rule: rule, Source: schemas.SourceFanotify, Hook: op}
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	e.KtimeNS = uint64(now.Nano())
	if path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(m.Fd))); err == nil {
		name, deleted := strings.CutSuffix(path, " (deleted)")
		var st unix.Stat_t
		if deleted && unix.Fstat(int(m.Fd), &st) == nil && st.Nlink == 0 {
			path = name
			e.Marks |= schemas.MarkDeleted
		}
		e.Path = []byte(schemas.Text(path))
	} else {
		e.Marks |= schemas.MarkPathFault
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[rule]++
	if len(l.queue) >= maxWaiting {
		l.lost.Add(1)
		return
	}
	l.queue = append(l.queue, e)
	l.waiting.Store(true)
}

// unknown counts an operation that the kernel has refused, and nobody knows what it was.
func (l *listener) unknown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[0]++
	l.lost.Add(1)
}

// take gives back the events that wait for the stream.
func (l *listener) take() []schemas.RawEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.queue
	l.queue = nil
	l.waiting.Store(false)
	return all
}

// refused counts the refusals by rule.
func (l *listener) refused() map[uint32]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	by := map[uint32]uint64{}
	for rule, n := range l.counts {
		by[rule] = n
	}
	return by
}

// close ends the listener. The kernel then allows what nobody else answers.
func (l *listener) close() {
	unix.Close(l.stop[1])
	if l.running {
		<-l.ended
	}
	for thread := range l.starting {
		l.drop(thread)
	}
	unix.Close(l.stop[0])
	unix.Close(l.fd)
}

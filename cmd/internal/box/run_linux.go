package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
)

// initName is the name by which the program is called as process 1. Its arguments are the numbers of two descriptors: its
// connection, and the directory for the record, or -1.
const initName = "runner-box: process 1"

// aside is where our own descriptors begin in process 1: the program may have been given any below.
const aside = 200

// namespaces that every box has.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// box is a started box, seen from outside.
type box struct {
	process *os.Process
	conn    *os.File
	out     *json.Encoder
	reports chan report
}

// Run makes a box, runs the program in it and returns when nothing of it is left. files are standard input, output and
// error; record is the directory for the record, or nil. Each signal that arrives is passed on.
func Run(c Config, files []*os.File, record *os.File, signals <-chan os.Signal) (Result, error) {
	c.Record = record != nil
	c.Narrow, c.Tools = c.Rootless || !initialUsers(), wrap.Dir()
	if c.Narrow && c.Kind == schemas.BaseDir {
		var err error
		if c.Foreign, err = foreign(c.Base); err != nil {
			return Result{}, err
		}
	}
	b, err := start(c, files, record)
	if err != nil {
		return Result{}, err
	}
	defer b.conn.Close()
	r, err := b.follow(signals)
	b.conn.Close() // process 1 ends now if it has not yet
	state, waited := b.process.Wait()
	if err == nil && (waited != nil || !state.Success()) {
		err = fmt.Errorf("process 1 of the box ended early: %s", ending(state, waited))
	}
	return r, err
}

// initialUsers reports whether we are in the initial user namespace, or one that has all users too.
func initialUsers() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(b))
	return err == nil && len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

// foreign looks for a file of others in a base. A user namespace without their owners lets nobody change it, and says
// EOVERFLOW; and it does not even tell them all apart.
func foreign(base string) (string, error) {
	list, err := tree.Scan(base, tree.Options{Known: func(*tree.Entry) (none [32]byte, known bool) { return none, true }})
	for n := range list {
		if e := &list[n]; int(e.UID) != os.Geteuid() || int(e.GID) != os.Getegid() {
			return e.Path, nil
		}
	}
	return "", err
}

func ending(state *os.ProcessState, err error) string {
	if err != nil {
		return err.Error()
	}
	return child.EndingOf(state).String()
}

// start starts process 1.
func start(c Config, files []*os.File, record *os.File) (*box, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a connection: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "connection")
	conn, err := hand(pair[1])
	unix.Close(pair[1])
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer unix.Close(conn)
	dir := -1
	if record != nil {
		if dir, err = hand(int(record.Fd())); err != nil {
			ours.Close()
			return nil, err
		}
		defer unix.Close(dir)
	}
	attr := &os.ProcAttr{Files: files, Env: []string{}, Sys: &syscall.SysProcAttr{Cloneflags: namespaces}}
	if c.Rootless {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Sys.Cloneflags |= unix.CLONE_NEWUSER
		attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.Sys.AmbientCaps = wrap.Private
	}
	p, err := os.StartProcess("/proc/self/exe", []string{initName, strconv.Itoa(conn), strconv.Itoa(dir)}, attr)
	if err != nil {
		ours.Close()
		return nil, cannotStart(err, c.Rootless)
	}
	b := &box{process: p, conn: ours, out: json.NewEncoder(ours), reports: make(chan report)}
	if err := b.out.Encode(c); err != nil {
		err = fmt.Errorf("telling process 1 of the box what to do: %w", err)
		ours.Close()
		p.Wait()
		return nil, err
	}
	go b.read()
	return b, nil
}

// hand makes a copy of a descriptor that process 1 inherits.
func hand(fd int) (int, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, aside)
	if err != nil {
		return -1, fmt.Errorf("copying a descriptor: %w", err)
	}
	return n, nil
}

func cannotStart(err error, rootless bool) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	if rootless {
		return missing(NoNamespaces, fmt.Errorf("this system does not let this user make a user namespace: %w", errno),
			"as root: sudo runner-box -- COMMAND", "or allow it: sysctl user.max_user_namespaces kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns")
	}
	return missing(NoNamespaces, fmt.Errorf("making the namespaces of the box: %w", errno), "a container needs CAP_SYS_ADMIN for this")
}

func (b *box) read() {
	defer close(b.reports)
	for in := json.NewDecoder(b.conn); ; {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		b.reports <- r
	}
}

// errSilent: process 1 ended without a word.
var errSilent = errors.New("process 1 of the box ended early, and there is no record")

// follow reads what process 1 reports until it is done.
func (b *box) follow(signals <-chan os.Signal) (res Result, err error) {
	for {
		select {
		case sig := <-signals:
			if n, ok := sig.(syscall.Signal); ok && !child.FromTerminal(sig) {
				b.out.Encode(order{int(n)}) // without process 1 there is nobody to signal
			}
		case r, more := <-b.reports:
			switch {
			case !more:
				return res, errSilent
			case r.Failed != nil:
				return res, tool.Fail(r.Failed.Code, errors.New(r.Failed.Text), r.Failed.Hints...)
			case r.Ended:
				res.End = child.Ending{Code: r.Exit, Signal: r.Signal}
			case r.Done:
				res.Changes = r.Changes
				return res, nil
			}
		}
	}
}

package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// aside is where our own descriptors begin in the process inside: the program may have been given any below.
const aside = 200

// NoNamespaces is the code of a machine that has none for us.
const NoNamespaces = "net_no_namespaces"

// Space is a network namespace with a process of ours in it.
type Space struct {
	Listeners []net.Listener // of TCP
	Names     []*net.UDPConn // of questions about names

	process *os.Process
	conn    *os.File
	in      *json.Decoder
	out     *json.Encoder
}

// Start makes the namespace and its listeners. The program is not started yet.
func Start(c Config, files []*os.File) (*Space, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a connection: %w", err)
	}
	defer unix.Close(pair[1])
	ours := os.NewFile(uintptr(pair[0]), "connection")
	theirs, err := unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD, aside)
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("copying a descriptor: %w", err)
	}
	defer unix.Close(theirs)
	c.Tools = wrap.Dir()
	attr := &os.ProcAttr{Files: files, Env: []string{}, Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}}
	if c.Rootless {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Sys.Cloneflags |= unix.CLONE_NEWUSER
		attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.Sys.AmbientCaps = wrap.Private
	}
	p, err := os.StartProcess("/proc/self/exe", []string{insideName, strconv.Itoa(theirs)}, attr)
	if err != nil {
		ours.Close()
		var errno syscall.Errno
		errors.As(err, &errno)
		return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("%s: making a network namespace: %w", NoNamespaces, errno), "as root: sudo runner-net; in a container it needs CAP_SYS_ADMIN")
	}
	s := &Space{process: p, conn: ours, out: json.NewEncoder(ours)}
	if err := s.out.Encode(c); err == nil {
		err = s.receive()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// receive takes the sockets.
func (s *Space) receive() error {
	line, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*1024))
	n, m, _, _, err := unix.Recvmsg(int(s.conn.Fd()), line, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return errors.New("the process inside the network namespace ended early")
	}
	var r report
	if err := json.Unmarshal(line[:n], &r); err != nil {
		return fmt.Errorf("the process inside the network namespace: %w", err)
	}
	if r.Failed != nil {
		return tool.Fail(r.Failed.Code, errors.New(r.Failed.Text), r.Failed.Hints...)
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil {
		return err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return err
		}
		for _, fd := range fds {
			if err := s.take(fd); err != nil {
				return err
			}
		}
	}
	s.in = json.NewDecoder(s.conn)
	return nil
}

// take makes a listener of a socket.
func (s *Space) take(fd int) error {
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		l, err := net.FileListener(f)
		if err == nil {
			s.Listeners = append(s.Listeners, l)
		}
		return err
	}
	c, err := net.FilePacketConn(f)
	if err == nil {
		s.Names = append(s.Names, c.(*net.UDPConn))
	}
	return err
}

// Run starts the program, passes signals on, and returns when it has ended.
func (s *Space) Run(signals <-chan os.Signal) (child.Ending, error) {
	if err := s.out.Encode(order{Go: true}); err != nil {
		return child.Ending{}, fmt.Errorf("starting the program: %w", err)
	}
	ended := make(chan report, 1)
	go func() {
		defer close(ended)
		var r report
		if s.in.Decode(&r) == nil {
			ended <- r
		}
	}()
	for {
		select {
		case sig := <-signals:
			if n, ok := sig.(syscall.Signal); ok && !child.FromTerminal(sig) {
				s.out.Encode(order{Signal: int(n)})
			}
		case r, ok := <-ended:
			switch {
			case !ok:
				return child.Ending{}, errors.New("the process inside the network namespace ended early")
			case r.Failed != nil:
				return child.Ending{}, tool.Fail(r.Failed.Code, errors.New(r.Failed.Text), r.Failed.Hints...)
			}
			return child.Ending{Code: r.Exit, Signal: r.Signal}, nil
		}
	}
}

// Close ends the namespace's process and closes the listeners.
func (s *Space) Close() {
	for _, l := range s.Listeners {
		l.Close()
	}
	for _, c := range s.Names {
		c.Close()
	}
	s.conn.Close()
	s.process.Wait()
}

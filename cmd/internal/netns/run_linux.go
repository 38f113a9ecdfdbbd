package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

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
	Listeners []*net.TCPListener
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
	if err = s.out.Encode(c); err == nil {
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
	s.in = json.NewDecoder(s.conn)
	line, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*batch))
	for {
		n, m, flags, _, err := unix.Recvmsg(int(s.conn.Fd()), line, control, unix.MSG_CMSG_CLOEXEC)
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
		if flags&unix.MSG_CTRUNC != 0 {
			return tool.Failf(tool.ExitOwn, "this process may not have as many descriptors as there are ports: raise ulimit -n")
		}
		if err := s.takeAll(control[:m]); err != nil || r.Ready {
			return err
		}
	}
}

// takeAll takes the sockets of one message.
func (s *Space) takeAll(control []byte) error {
	messages, err := unix.ParseSocketControlMessage(control)
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
			s.Listeners = append(s.Listeners, l.(*net.TCPListener))
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

// Drain waits until all that the program asked for before it ended was taken: connections that nobody accepted yet, and
// questions that nobody read yet. Both have to be served meanwhile.
func (s *Space) Drain() error {
	for end := time.Now().Add(drained); ; time.Sleep(time.Millisecond) {
		left, err := s.waiting()
		if err != nil {
			return fmt.Errorf("looking for connections that were not taken yet: %w", err)
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d connections or questions were not taken", left)
		}
	}
}

// drained is how long Drain waits.
const drained = 10 * time.Second

// waiting counts what was not taken. Of a listener, the kernel tells it as tcpi_unacked (tcp_get_info, Linux 2.6.14).
func (s *Space) waiting() (n int, err error) {
	for _, l := range s.Listeners {
		err = errors.Join(err, control(l, func(fd int) error {
			info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
			if err == nil {
				n += int(info.Unacked)
			}
			return err
		}))
	}
	for _, c := range s.Names {
		err = errors.Join(err, control(c, func(fd int) error {
			bytes, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
			if bytes > 0 {
				n++
			}
			return err
		}))
	}
	return n, err
}

func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	return errors.Join(raw.Control(func(fd uintptr) { inner = f(int(fd)) }), inner)
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

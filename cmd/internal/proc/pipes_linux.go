package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is what is asked for, so that large inputs and outputs take few switches between processes.
const pipeSize = 1 << 20

// pipes are the three pipes of a process: our ends do not block.
type pipes struct {
	in, out, err                *os.File
	childIn, childOut, childErr *os.File
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	for _, x := range []struct {
		ours, theirs **os.File
		read         bool
	}{{&p.in, &p.childIn, false}, {&p.out, &p.childOut, true}, {&p.err, &p.childErr, true}} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, os.NewSyscallError("pipe2", err)
		}
		ours, theirs := fds[1], fds[0]
		if x.read {
			ours, theirs = theirs, ours
		}
		unix.SetNonblock(ours, true) // before it is a file, so that reads and writes of it can be given up
		*x.ours, *x.theirs = os.NewFile(uintptr(ours), "pipe"), os.NewFile(uintptr(theirs), "pipe")
	}
	return p, nil
}

// widen asks for larger pipes; the system may have none to give.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}

func (p *pipes) theirs() []*os.File { return []*os.File{p.childIn, p.childOut, p.childErr} }

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs() {
		if f != nil {
			f.Close()
		}
	}
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
}

// readLeft reads what a pipe holds at this moment, also if a process keeps it open. It returns at most most bytes.
func readLeft(f *os.File, most uint64) []byte {
	f.SetReadDeadline(time.Time{})
	c, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var all []byte
	buf := make([]byte, min(most, 64<<10)+1)
	for uint64(len(all)) < most {
		n := 0
		if c.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), buf); return true }) != nil {
			break
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		all = append(all, buf[:min(uint64(n), most-uint64(len(all)))]...)
	}
	return all
}

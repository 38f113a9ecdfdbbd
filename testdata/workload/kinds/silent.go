//go:build linux

package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// silent makes calls of which the probes take notice and no line is made: each is seen to begin and to end all the same.
func silent() {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	done("a pair of sockets", err)
	for range 3 {
		done("send a descriptor", unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(0), nil, 0))
		received(pair[1])
		fd, err := unix.Dup(pair[0])
		done("dup", err)
		done("dup3", unix.Dup3(pair[1], fd, unix.O_CLOEXEC))
		done("close", unix.Close(fd))
		_, err = unix.IoctlGetInt(pair[0], unix.TIOCINQ)
		done("ioctl", err)
		done("setreuid", unix.Setreuid(os.Getuid(), os.Geteuid())) // changes nothing
		// A kernel that has these finds nothing to do.
		unix.PidfdGetfd(-1, 0, 0)
		unix.CloseRange(1<<20, 1<<21, 0)
	}
	done("close", unix.Close(pair[0]))
	done("close", unix.Close(pair[1]))
	done("close", unix.Close(openat("after", cwd, dir, dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)))
}

// received receives one descriptor.
func received(socket int) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	done("recvmsg", err)
	messages, err := unix.ParseSocketControlMessage(control[:n])
	done("the control data", err)
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		done("descriptors", err)
		for _, fd := range fds {
			done("close", unix.Close(fd))
		}
	}
}

func done(what string, err error) { made.Must(what, made.Ret(err)) }

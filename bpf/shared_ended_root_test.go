//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// actEnv makes the test binary a process that does one thing in a scope: "WHAT ARGUMENT".
const actEnv = "RUNNER_TEST_ACT"

func actMain(words string) {
	what, arg, _ := strings.Cut(words, " ")
	switch what {
	case "pending":
		pendingMain(arg)
	case "reach":
		reachMain(arg)
	}
}

// pendingMain asks a ring for a connection that is not made, when it is told to, and ends.
func pendingMain(port string) {
	u, err := uring.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ring", u.FD)
	fmt.Scanln()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	var n uint16
	fmt.Sscan(port, &n)
	sa.Port = n>>8 | n<<8
	u.Submit(uring.Entry{Op: uring.Connect, FD: int32(fd), Addr: uint64(uintptr(unsafe.Pointer(&sa))), Off: unix.SizeofSockaddrInet4})
	fmt.Println("asked", err)
	fmt.Scanln()
}

// full listens where no more connections are made.
func full(t *testing.T) (port string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	testkit.Must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	testkit.Must(t, unix.Listen(fd, 0))
	at, err := unix.Getsockname(fd)
	testkit.Must(t, err)
	port = fmt.Sprint(at.(*unix.SockaddrInet4).Port)
	for range 3 {
		c, err := net.DialTimeout("tcp4", "127.0.0.1:"+port, 50*time.Millisecond)
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}
	return port
}

// A request of io_uring that its run does not see the end of is missing in that run, as it is with probes of its own. What becomes
// of it later, and who is moved then, changes no counter of a run that has ended.
func TestSharedEnded(t *testing.T) {
	shareHere(t)
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	s, other := shareWith(t, a, Options{}), shareWith(t, b, Options{})
	cmd := inScope(t, a, "/proc/self/exe")
	cmd.Env = append(os.Environ(), actEnv+"=pending "+full(t))
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	var ring int
	if _, err := fmt.Fscanf(out, "ring %d\n", &ring); err != nil {
		testkit.Missing(t, "io_uring", err)
	}
	pidfd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	testkit.Must(t, err)
	held, err := unix.PidfdGetfd(pidfd, ring, 0)
	testkit.Must(t, err)
	unix.Close(pidfd)
	fmt.Fprintln(in)
	var word, how string
	if _, err := fmt.Fscan(out, &word, &how); err != nil || word != "asked" {
		t.Fatal(word, err)
	}
	in.Close()
	testkit.Must(t, cmd.Wait())

	got := all(t, s)
	if got.stats.IOUringUnmapped != 1 {
		t.Errorf("%d requests are missing, expected 1", got.stats.IOUringUnmapped)
	}
	unix.Close(held) // so the kernel takes it back
	runIn(t, b, `mkdir "$1/in" && echo 0 > "$1/in/cgroup.procs"`, b)
	time.Sleep(100 * time.Millisecond)
	later, err := s.Stats()
	testkit.Must(t, err)
	if !reflect.DeepEqual(later, got.stats) {
		t.Errorf("after the end: %+v\nbefore: %+v", later, got.stats)
	}
	all(t, other)
}

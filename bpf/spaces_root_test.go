//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// spacesCaller makes the test binary execute cat from a thread that does not lead.
const spacesCaller = "spaces"

func spacesCallerMain() {
	started := make(chan int)
	for range 8 {
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() != unix.Getpid() {
				fmt.Fprintln(os.Stderr, syscall.Exec("/bin/cat", []string{"cat"}, nil))
				os.Exit(1)
			}
			<-started // the leader stays here
		}()
	}
	<-started
}

// spacesTrees are processes in pid namespaces. Each leaf is a cat, which waits: on its own, or executed by a thread. A
// process that unshares its namespace stays where it was, only its children are in the new one.
var spacesTrees = []string{
	"S0=cat <&3 & RUNNER_TEST_CALLER=" + spacesCaller + " \"$BINARY\" <&3 & wait",
	"S1=unshare --pid --fork sh -c \"$S0\" & unshare --pid sh -c \"$S0\" & cat <&3 & RUNNER_TEST_CALLER=" + spacesCaller + " \"$BINARY\" <&3 & wait",
	"S2=unshare --pid --fork sh -c \"$S1\" & unshare --pid --fork sh -c \"$S1\" & cat <&3 & wait",
}

const (
	spacesLeaves  = 2*(2*2+2) + 1
	spacesThreads = 2 * (2*1 + 1)
)

// space is which number a process has for itself, and where.
type space struct{ pid, ns uint32 }

// witness is what /proc says of a process and all below it.
func witness(t *testing.T, root int) (all map[uint32]space, leaves int) {
	t.Helper()
	all = map[uint32]space{}
	below := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		list, err := os.ReadDir("/proc")
		testkit.Must(t, err)
		for _, d := range list {
			pid, err := strconv.Atoi(d.Name())
			if err != nil || all[uint32(pid)].pid != 0 {
				continue
			}
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			field := func(key string) (list []string) {
				_, rest, _ := strings.Cut(string(status), "\n"+key+":")
				rest, _, _ = strings.Cut(rest, "\n")
				return strings.Fields(rest)
			}
			parent, numbers := field("PPid"), field("NSpid")
			if len(parent) != 1 || len(numbers) == 0 {
				continue
			}
			above, err := strconv.Atoi(parent[0])
			testkit.Must(t, err)
			if !below[above] && pid != root {
				continue
			}
			own, err := strconv.Atoi(numbers[len(numbers)-1])
			testkit.Must(t, err)
			var st unix.Stat_t
			if unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid), &st) != nil {
				continue
			}
			below[pid], grown = true, true
			all[uint32(pid)] = space{uint32(own), uint32(st.Ino)}
			if strings.HasPrefix(string(status), "Name:\tcat\n") {
				leaves++
			}
		}
	}
	return all, leaves
}

// spacesSaid reads what forks and execs say of the processes, by process id; forks and execs are how many say something, threads
// how many of the execs were those of a thread that did not lead.
func spacesSaid(t *testing.T, s *Session) (said map[uint32][]space, forks, execs, threads int) {
	t.Helper()
	testkit.Must(t, s.Quiet())
	said = map[uint32][]space{}
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute))
	for {
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return said, forks, execs, threads
		}
		testkit.Must(t, err)
		_, err = d.Decode(rec.RawSample, &e)
		testkit.Must(t, err)
		pid, n := e.PID, &execs
		switch {
		case e.Op == schemas.OpFork && e.ChildPID == e.ChildTID:
			pid, n = e.ChildPID, &forks
		case e.Op != schemas.OpExec:
			if e.Has&schemas.HasNSPID != 0 {
				t.Errorf("%s has a number in a namespace", e.Op)
			}
			continue
		}
		said[pid] = append(said[pid], space{e.NSPID, e.PIDNS})
		if e.Has&schemas.HasNSPID != 0 {
			*n++
			if e.Has&schemas.HasOldTID != 0 {
				threads++
			}
		}
	}
}

// A fork and an exec say which number the process has for itself, as /proc does, in namespaces, in namespaces in those, after an exec
// of a thread; and nothing in the initial namespace.
func TestSpaces(t *testing.T) {
	testkit.Programs(t, "pid namespaces", "unshare")
	binary, err := os.Executable()
	testkit.Must(t, err)
	for _, opt := range []Options{{Copies: CopiesOff}, {Copies: CopiesOn}, {Without: Cast}, {Without: Cast | Loop}} {
		t.Run(fmt.Sprintf("copies %d without %b", opt.Copies, opt.Without), func(t *testing.T) {
			s, start := inCgroup(t, opt)
			r, w, err := os.Pipe()
			testkit.Must(t, err)
			cmd := exec.Command("/bin/sh", "-c", `eval "$S2"`)
			cmd.Env = append(append(os.Environ(), "BINARY="+binary), spacesTrees...)
			cmd.ExtraFiles = []*os.File{r}
			testkit.Must(t, start(cmd))
			r.Close()
			var want map[uint32]space
			testkit.Await(t, "all leaves", func() bool {
				var leaves int
				want, leaves = witness(t, cmd.Process.Pid)
				return leaves == spacesLeaves
			})
			w.Close()
			cmd.Wait()
			said, _, _, threads := spacesSaid(t, s)
			spaces := map[uint32]bool{}
			for pid, own := range want {
				if spaces[own.ns] = true; own.ns == schemas.InitialPIDNamespace {
					own = space{}
				}
				if len(said[pid]) == 0 {
					t.Errorf("nothing is said of %d", pid)
				}
				for _, got := range said[pid] {
					if got != own {
						t.Errorf("%d is told as %+v, /proc says %+v", pid, got, own)
					}
				}
			}
			if len(spaces) != 7 || threads != spacesThreads {
				t.Errorf("%d namespaces and %d execs by threads, expected 7 and %d", len(spaces), threads, spacesThreads)
			}
		})
	}
}

// As many as there are: each process that begins a namespace is 1 in it, at its fork and at its exec.
func TestSpacesCounted(t *testing.T) {
	testkit.Programs(t, "pid namespaces", "unshare")
	s, start := inCgroup(t, Options{})
	cmd := exec.Command("/bin/sh", "-c", "for i in $(seq 23); do unshare --pid --fork true; true; done")
	testkit.Must(t, errors.Join(start(cmd), cmd.Wait()))
	said, forks, execs, _ := spacesSaid(t, s)
	if forks != 23 || execs != 23 {
		t.Errorf("%d forks and %d execs say a number, expected 23 of each", forks, execs)
	}
	for pid, list := range said {
		for _, got := range list {
			if got != list[0] || got != (space{}) && got.pid != 1 {
				t.Errorf("%d: %+v", pid, list)
			}
		}
	}
}

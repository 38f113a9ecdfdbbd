//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

var spaceChecks = []check{{"pid-namespaces", true, spaces}}

const spaceStage = "_space"

func init() { stages[spaceStage] = spaceMain }

// space is a number in a pid namespace; none in the initial one.
type space struct{ ns, pid uint32 }

// spaceMain prints what /proc says of this process: its number in the initial pid namespace, that in its own, and which that is. Then
// it starts a process beside it, and one in a new namespace that does the same, so many times.
func spaceMain(args []string) {
	depth, err := strconv.Atoi(args[0])
	if err == nil {
		err = spaceSays()
	}
	for _, flags := range []uintptr{0, unix.CLONE_NEWPID} {
		if depth == 0 || err != nil {
			break
		}
		below := depth - 1
		if flags == 0 {
			below = 0
		}
		c := exec.Command("/proc/self/exe", spaceStage, strconv.Itoa(below))
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Cloneflags: flags}
		err = c.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func spaceSays() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	list := strings.Fields(numbers)
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil || len(list) == 0 {
		return fmt.Errorf("/proc/self has no pid namespace: %v", err)
	}
	_, err = fmt.Println(list[0], list[len(list)-1], st.Ino)
	return err
}

// spaces: a fork and an exec say which number the process has in its own pid namespace, as /proc does.
func spaces(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	const depth = 3
	r, raw, err := m.capture("", nil, []string{m.tool("check"), spaceStage, strconv.Itoa(depth)})
	if err != nil {
		return "", err
	}
	want := map[uint32]space{}
	for line := range strings.Lines(r.stdout) {
		var pid, own, ns uint32
		if _, err := fmt.Sscan(line, &pid, &own, &ns); err != nil {
			return "", err
		}
		if want[pid] = (space{}); ns != schemas.InitialPIDNamespace {
			want[pid] = space{ns, own}
		}
	}
	told, err := spacesTold(raw)
	if err != nil {
		return "", err
	}
	namespaces := map[uint32]bool{}
	for pid, own := range want {
		namespaces[own.ns] = true
		if len(told[pid]) == 0 {
			return "", fmt.Errorf("nothing is told of process %d", pid)
		}
		for _, got := range told[pid] {
			if got != own {
				return "", fmt.Errorf("process %d is told as %+v, /proc says %+v", pid, got, own)
			}
		}
	}
	if len(want) != 2*depth+1 || len(namespaces) != depth+1 {
		return "", fmt.Errorf("%d processes in %d namespaces, expected %d and %d", len(want), len(namespaces), 2*depth+1, depth+1)
	}
	if _, err := r.judge(balance{what: "processes", made: len(want), recorded: len(want)}); err != nil {
		return "", err // a probe of something else can have been skipped
	}
	return fmt.Sprintf("%d processes in %d namespaces, each with its number", len(want), len(namespaces)), nil
}

// spacesTold is what the forks and execs of a raw stream say, by process.
func spacesTold(raw string) (map[uint32][]space, error) {
	f, err := os.Open(raw)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := stream.NewReader(f, raw, schemas.StreamRaw)
	if err != nil {
		return nil, err
	}
	parser := schemas.NewRawParser(in.Header().RunID)
	told := map[uint32][]space{}
	for {
		rec, err := in.Next()
		if err == io.EOF {
			return told, nil
		}
		if err != nil {
			return nil, err
		}
		var e schemas.RawEvent
		if rec.Schema != schemas.SchemaRawEvent {
			continue
		}
		if err := parser.Parse(rec.Bytes, &e); err != nil {
			return nil, err
		}
		switch {
		case e.Op == schemas.OpFork && e.ChildPID == e.ChildTID:
			told[e.ChildPID] = append(told[e.ChildPID], space{e.PIDNS, e.NSPID})
		case e.Op == schemas.OpExec:
			told[e.PID] = append(told[e.PID], space{e.PIDNS, e.NSPID})
		}
	}
}

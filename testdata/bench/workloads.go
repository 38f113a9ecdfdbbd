//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// workloadArg makes this program a workload: bench workload NAME ARG…
const workloadArg = "workload"

// clocked is what a workload prints as its last line. The workload measures the time, so
// that the start and end of the process are not counted.
type clocked struct {
	WallNS int64 `json:"wall_ns"`
	CPUNS  int64 `json:"cpu_ns"` // user and system, of only the work, children included
	EndNS  int64 `json:"end_ns"` // when it ended, since 1970
}

func workload(name string, args []string) error {
	work, err := prepare(name, args)
	if err != nil {
		return err
	}
	cpu, begin := cpuTime(), time.Now()
	if err := work(); err != nil {
		return err
	}
	wall := time.Since(begin)
	return json.NewEncoder(os.Stdout).Encode(clocked{wall.Nanoseconds(), cpuTime() - cpu, time.Now().UnixNano()})
}

func prepare(name string, args []string) (func() error, error) {
	switch {
	case name == "open" && len(args) == 2:
		n, err := strconv.Atoi(args[1])
		return func() error { return openLoop(args[0], n) }, err
	case name == "opens" && len(args) == 3:
		return openLoops(args)
	case name == "names" && len(args) == 2:
		n, err := strconv.Atoi(args[1])
		return func() error { return nameLoop(args[0], n) }, err
	case name == "forks" && len(args) == 1:
		return func() error { return forkLoop(args[0]) }, nil
	case name == "getppid" && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		return func() error { return callLoop(n) }, err
	case name == "spawn" && len(args) == 2:
		n, err := strconv.Atoi(args[1])
		return func() error { return spawnLoop(args[0], n) }, err
	case name == "wait" && len(args) == 0:
		return waitForEnd, nil
	case name == "mcp-server" && len(args) == 0:
		return mcpWorkload, nil
	case name == "read" && len(args) == 1:
		return func() error { return readStream(args[0]) }, nil
	case name == "get" && len(args) == 2:
		n, err := strconv.Atoi(args[0])
		return func() error { return getLoop(n, args[1]) }, err
	case name == "pinned" && len(args) > 0:
		return nil, pinned(args)
	case name == "command" && len(args) > 0:
		return func() error { return runCommand(args) }, nil
	}
	return nil, fmt.Errorf("workload %s with %d arguments is not known", name, len(args))
}

// openLoop opens and closes one file n times with raw system calls, so that the loop
// itself costs little.
func openLoop(path string, n int) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	const atFDCWD = ^uintptr(99) // -100
	for range n {
		fd, _, err := syscall.RawSyscall6(syscall.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(p)), syscall.O_RDONLY, 0, 0, 0)
		if err != 0 {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	}
	return nil
}

// spawnLoop starts a program n times and waits for each.
func spawnLoop(path string, n int) error {
	for range n {
		pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			return fmt.Errorf("starting %s: %w", path, err)
		}
		var status syscall.WaitStatus
		for {
			_, err = syscall.Wait4(pid, &status, 0, nil)
			if err != syscall.EINTR {
				break
			}
		}
		if err != nil || status != 0 {
			return fmt.Errorf("%s: status %d: %w", path, status, err)
		}
	}
	return nil
}

// runCommand runs a program. Its standard output is a pipe, because GNU grep does less
// when it writes to /dev/null. It reports the number of lines.
func runCommand(argv []string) error {
	c := exec.Command(argv[0], argv[1:]...)
	var out, errw bytes.Buffer
	c.Stdout, c.Stderr = &out, &errw
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", argv[0], err, errw.Bytes())
	}
	fmt.Println(bytes.Count(out.Bytes(), []byte("\n")))
	return nil
}

// waitForEnd says that it is there, and waits for its input's end.
func waitForEnd() error {
	fmt.Println("here")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// readStream reads a normalized stream to its end: its lines, its trailer, its digest.
func readStream(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := stream.NewReader(f, path, schemas.StreamNormalized)
	for err == nil {
		_, err = s.Next()
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// cpuTime is what this process and the children that it waited for used, in ns.
func cpuTime() int64 {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			sum += r.Utime.Nano() + r.Stime.Nano()
		}
	}
	return sum
}

//go:build linux

// Init is the first process of a guest. It makes the machine usable (mounts, modules,
// loopback, users), runs the jobs of its plan one after the other, sends their results over
// a serial port of its own and powers the machine off.
//
// As process 1 it only reaps; a second process does the work, so that waiting for a job
// cannot take an orphan's status or lose one.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

func main() {
	var err error
	if os.Getpid() != 1 {
		err = work()
	} else if err = boot(); err == nil {
		err = reap()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	if os.Getpid() != 1 {
		os.Exit(0)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // a first process that ends is a panic
}

// reap starts the worker and waits for all processes until it has ended.
func reap() error {
	p, err := os.StartProcess("/proc/self/exe", []string{"init"}, &os.ProcAttr{
		Env:   []string{"PATH=" + guest.Bin + ":/bin", "HOME=/root", "TMPDIR=/tmp"},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == p.Pid {
			return err
		}
	}
}

// work carries out the plan.
func work() error {
	b, err := os.ReadFile(guest.PlanFile)
	if err != nil {
		return err
	}
	var plan guest.Plan
	if err := json.Unmarshal(b, &plan); err != nil {
		return err
	}
	port, err := openPort(plan.Arch)
	if err != nil {
		return err
	}
	s := &sender{port: port}
	modules(plan.Modules)
	s.started(settle(plan.Variant))
	hasShell, err := shell()
	s.started(err)
	refused := sync.OnceValue(refusal)
	for _, j := range plan.Jobs {
		if j.Shell && !hasShell {
			s.send(guest.Line{Check: j.Name, Result: guest.Unavailable, Detail: "NOT TESTED: the guest has no shell"})
			continue
		}
		if j.Capture && refused() != "" {
			s.send(guest.Line{Check: j.Name, Result: guest.Unavailable, Detail: refused()})
			continue
		}
		begin := time.Now()
		s.run(j)
		fmt.Printf("init: %s took %.1f s\n", j.Name, time.Since(begin).Seconds())
	}
	s.started(warned())
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	return s.end(unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]))
}

// modules loads what the plan names. A module that does not load is no failure: the check
// that needs it says so.
func modules(names []string) {
	for _, name := range names {
		if err := insert(guest.Modules + "/" + name); err != nil && err != unix.EEXIST {
			fmt.Printf("init: module %s: %v\n", name, err)
		}
	}
}

// tainted are the bits of /proc/sys/kernel/tainted that tell a fault of the kernel: it
// died, it warned, a CPU was stuck.
const tainted = 1<<7 | 1<<9 | 1<<14

// fault is what a kernel says about a fault.
var fault = regexp.MustCompile(`(?m)^.*(WARNING: |BUG: |Oops|soft lockup).*$`)

// warned is an error if the kernel found a fault of its own. The console does not show
// warnings.
func warned() error {
	b, err := os.ReadFile("/proc/sys/kernel/tainted")
	if err != nil {
		return err
	}
	bits, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || bits&tainted == 0 {
		return err
	}
	log := make([]byte, 1<<20)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, log)
	if err != nil {
		return err
	}
	return fmt.Errorf("the kernel is tainted (%d): %s", bits, fault.Find(log[:n]))
}

func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

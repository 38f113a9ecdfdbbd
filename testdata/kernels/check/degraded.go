//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

var degradedChecks = []check{
	{"no-rights", true, noRights},
	{"no-kernel", true, noKernel},
	{"tiny-ring", false, tinyRing},
	{"no-cgroup2", true, noCgroup2},
}

// refused: a program ends with 4 before its command starts, and says what to type.
func refused(o outcome, mark string, hints ...string) error {
	if o.code != 4 {
		return fmt.Errorf("expected exit 4: %v", o)
	}
	if _, err := os.Stat(mark); err == nil {
		return errors.New("the command ran")
	}
	for _, h := range hints {
		if strings.Contains(o.stderr, h) {
			return nil
		}
	}
	return fmt.Errorf("no hint (one of %q): %v", hints, o)
}

// noRights: a user without rights gets exit 4 and a hint, and no archive.
func noRights(m *machine) (string, error) {
	dir := m.dir()
	if err := os.Chmod(dir, 0o777); err != nil {
		return "", err
	}
	touch := []string{"--archive", dir + "/run.tar.gz", "--", m.tool("shapes"), "opens", dir, "1"}
	o, err := call(asNobody(m.command("runner-exec", touch...)))
	if err != nil {
		return "", err
	}
	if err := refused(o, dir+"/M-opens", "root", "sudo", "setcap", "--no-kernel"); err != nil {
		return "", err
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		return "", fmt.Errorf("it left %v", left)
	}
	return strings.TrimSpace(o.stderr), nil
}

// noKernel: a run without a capture is a valid archive that claims nothing of the kernel.
func noKernel(m *machine) (string, error) {
	path := m.dir() + "/run.tar.gz"
	o, err := call(m.command("runner-exec", "--no-kernel", "--archive", path, "--", m.tool("shapes"), "_nop"))
	if err != nil || o.code != 0 {
		return "", fmt.Errorf("runner-exec: %v %v", o, err)
	}
	health, lines, err := m.archived(path)
	if err != nil || health.KernelLayer != "absent" || lines > 0 {
		return "", fmt.Errorf("kernel_layer=%s with %d lines: %v", health.KernelLayer, lines, err)
	}
	return "kernel_layer=absent", nil
}

// tinyRing: a ring that is too small loses events, and the record counts each.
func tinyRing(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	const each, processes = 3_000, 4
	dir := m.dir()
	r, err := m.outline(dir+"/M-hammer-", []string{"--ring-size", "4096"}, m.tool("shapes"), "hammer", dir, fmt.Sprint(each), fmt.Sprint(processes))
	if err != nil {
		return "", err
	}
	dropped := r.droppedOf(schemas.OpOpenat2)
	if dropped == 0 || r.status != schemas.StatusPartial {
		return "", fmt.Errorf("a ring of 4096 bytes held everything? %s dropped=%d", r.status, dropped)
	}
	detail, err := r.judge(balance{"opens", each * processes, r.marked[schemas.OpOpenat2], dropped})
	var t told
	if errors.As(err, &t) { // to lose events and say so is what is asked for here
		return string(t), nil
	}
	return detail, err
}

// noCgroup2: without a cgroup2 mount, exit 4 and the command that mounts one.
func noCgroup2(m *machine) (string, error) {
	dir := m.dir()
	c := m.command("check", "_uncgroup", m.tool("runner-exec"), "--archive", dir+"/run.tar.gz", "--", m.tool("shapes"), "opens", dir, "1")
	o, err := call(c)
	if err != nil {
		return "", err
	}
	if err := refused(o, dir+"/M-opens", "mount -t cgroup2"); err != nil {
		return "", err
	}
	return strings.TrimSpace(o.stderr), nil
}

func init() { stages["_uncgroup"] = uncgroup }

// uncgroup executes a program in a mount namespace that has no cgroup2 mount.
func uncgroup(argv []string) {
	runtime.LockOSThread()
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		fail(err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fail(err)
	}
	for range 100 { // mounts may lie over each other
		b, err := os.ReadFile("/proc/thread-self/mountinfo")
		if err != nil {
			fail(err)
		}
		at := ""
		for l := range strings.Lines(string(b)) {
			before, after, _ := strings.Cut(l, " - ")
			if f := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 {
				at = f[4]
			}
		}
		if at == "" {
			fail(unix.Exec(argv[0], argv, os.Environ()))
		}
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			fail(err)
		}
	}
	fail(errors.New("cgroup2 mounts without end"))
}

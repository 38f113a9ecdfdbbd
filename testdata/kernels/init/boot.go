//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// A mount that a guest has. An optional one may be missing in its kernel.
type mount struct {
	kind, target string
	optional     bool
}

var mounts = []mount{
	{"proc", "/proc", false},
	{"sysfs", "/sys", false},
	{"devtmpfs", "/dev", false},
	{"devpts", "/dev/pts", false},
	{"tmpfs", "/dev/shm", false},
	{"tmpfs", "/tmp", false},
	{"tmpfs", "/run", false},
	{"bpf", "/sys/fs/bpf", true},
	{"tracefs", "/sys/kernel/tracing", true},
	{"securityfs", "/sys/kernel/security", true},
}

// boot leaves the initramfs for a root in memory, as a system does, and mounts what every
// system has. The initramfs itself cannot be left by pivot_root, which programs may do. The
// lane's folder stays where the kernel unpacked it, and is mounted: a copy takes seconds.
func boot() error {
	const root = "/root.new"
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("root", root, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	if err := os.Mkdir(root+guest.Lane, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(guest.Lane, root+guest.Lane, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", guest.Lane, err)
	}
	if err := os.CopyFS(root+"/etc", os.DirFS("/etc")); err != nil {
		return err
	}
	for _, err := range []error{os.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/")} {
		if err != nil {
			return fmt.Errorf("new root: %w", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil { // as systemd does
		return err
	}
	for _, m := range mounts {
		if err := m.make(); err != nil && !m.optional {
			return err
		}
	}
	return errors.Join(os.MkdirAll("/root", 0o700), os.MkdirAll("/bin", 0o755))
}

func (m mount) make() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	data := ""
	if m.kind == "tmpfs" {
		data = "mode=1777"
	}
	if err := unix.Mount(m.kind, m.target, m.kind, 0, data); err != nil {
		return fmt.Errorf("mount %s: %w", m.target, err)
	}
	return nil
}

// settle makes what differs between the variants, and checks that it is in force.
func settle(variant string) error {
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	switch variant {
	case guest.CgroupV1:
		return cgroupV1()
	case guest.NoBTF:
		if err := unix.Mount("none", "/sys/kernel/btf", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("hide the BTF: %w", err)
		}
	case guest.Lockdown:
		b, err := os.ReadFile("/sys/kernel/security/lockdown")
		if err != nil || !strings.Contains(string(b), "[confidentiality]") {
			return fmt.Errorf("lockdown is not in force: %q, %v", b, err)
		}
	case guest.Realtime:
		if b, err := os.ReadFile("/proc/version"); err != nil || !strings.Contains(string(b), "PREEMPT_RT") {
			return fmt.Errorf("not a realtime kernel: %q, %v", b, err)
		}
	}
	return mount{"cgroup2", "/sys/fs/cgroup", false}.make()
}

// cgroupV1 mounts hierarchies of version 1, as old systems do, and no other.
func cgroupV1() error {
	if err := (mount{"tmpfs", "/sys/fs/cgroup", false}).make(); err != nil {
		return err
	}
	mounted := 0
	for _, name := range []string{"cpu", "memory", "pids", "freezer", "name=systemd"} {
		dir := "/sys/fs/cgroup/" + strings.TrimPrefix(name, "name=")
		data := name
		if dir != "/sys/fs/cgroup/"+name {
			data = "none," + name
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if unix.Mount("cgroup", dir, "cgroup", 0, data) == nil {
			mounted++
		}
	}
	if mounted == 0 {
		return errors.New("no hierarchy of version 1 could be mounted")
	}
	return nil
}

// shell makes the commands of /bin if the guest has a shell.
func shell() (bool, error) {
	if _, err := os.Stat(guest.Busybox); err != nil {
		return false, nil
	}
	var errs []error
	for _, name := range []string{"sh", "mount", "umount", "sleep", "true", "cat", "ls", "grep"} {
		errs = append(errs, os.Symlink(guest.Busybox, "/bin/"+name))
	}
	return true, errors.Join(errs...)
}

// loopback brings lo up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

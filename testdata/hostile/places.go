//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var onCgroups = []attack{
	{name: "leave", what: "moves itself to another cgroup, acts, and comes back", do: leave},
	{name: "leave by a thread", what: "the main thread ends, another one moves the process out", do: leaveThread},
	{name: "fork away", what: "starts a child in another cgroup (CLONE_INTO_CGROUP), which acts", do: forkAway},
	{name: "move runner-capture in", what: "moves runner-capture into the measured cgroup", do: moved("runner-capture", false, nil)},
	{name: "move runner-exec in", what: "moves runner-exec into the measured cgroup", do: moved("runner-exec", false, nil)},
	{name: "kill own cgroup", what: "moves runner-capture in and writes cgroup.kill", do: moved("runner-capture", false, func(scope string) error { return write(scope+"/cgroup.kill", "1") })},
	{name: "freeze runner-capture", what: "moves runner-capture to a cgroup, freezes it, acts, thaws it", do: moved("runner-capture", true, nil)},
	{name: "no more pids", what: "moves runner-capture to a cgroup with pids.max 0", do: moved("runner-capture", true, nil, "pids.max=0")},
	{name: "no more memory", what: "moves runner-capture to a cgroup with memory.max 1M", do: moved("runner-capture", true, nil, "memory.max=1048576"), rude: true},
	{name: "freeze itself", what: "a child freezes the measured cgroup", do: freezeSelf},
	{name: "remove cgroup", what: "moves itself to a child cgroup and removes others, threaded mode included", do: threaded},
}

// moved moves a process of the runner.
func moved(name string, apart bool, then func(scope string) error, set ...string) func(*world) error {
	return func(w *world) error {
		to := w.scope
		if apart {
			to = cgroupMount() + "/hostile-apart"
			for _, c := range []string{"+pids", "+memory"} {
				write(cgroupMount()+"/cgroup.subtree_control", c)
			}
			if err := os.Mkdir(to, 0o755); err != nil && !os.IsExist(err) {
				return err
			}
		}
		if err := write(to+"/cgroup.procs", strconv.Itoa(w.stages[name])); err != nil {
			return err
		}
		var err error
		for _, s := range set {
			file, value, _ := strings.Cut(s, "=")
			err = errors.Join(err, write(to+"/"+file, value))
		}
		if apart && set == nil {
			err = write(to+"/cgroup.freeze", "1")
		}
		act(w.dir, "hidden")
		if then != nil {
			return errors.Join(err, then(w.scope))
		}
		if apart && set == nil {
			time.Sleep(300 * time.Millisecond)
			err = errors.Join(err, write(to+"/cgroup.freeze", "0"))
		}
		return err
	}
}

func leave(w *world) error {
	other := cgroupMount() + "/hostile-away"
	os.Mkdir(other, 0o755)
	if err := write(other+"/cgroup.procs", "0"); err != nil {
		return err
	}
	act(w.dir, "hidden")
	err := write(w.scope+"/cgroup.procs", "0")
	os.Remove(other)
	return err
}

// leaveThread starts a program whose main thread ends first.
func leaveThread(w *world) error {
	c := exec.Command("/proc/self/exe", "_outside", w.dir, "thread", cgroupMount())
	c.Start()
	time.Sleep(300 * time.Millisecond)
	return nil
}

func freezeSelf(w *world) error {
	c := exec.Command("/bin/sleep", "0")
	c.Start()
	return write(w.scope+"/cgroup.freeze", "1")
}

func threaded(w *world) error {
	child := w.scope + "/child"
	if err := os.Mkdir(child, 0o755); err != nil {
		return err
	}
	write(child+"/cgroup.type", "threaded")
	err := write(child+"/cgroup.procs", "0")
	act(w.dir, "hidden")
	write(w.scope+"/cgroup.procs", "0")
	os.Remove(child)
	return err
}

var onMounts = []attack{
	{name: "mount over cgroups", what: "a tmpfs over the mount of the cgroups; a daemon acts on after the command's end", do: covered(cgroupMount)},
	{name: "forge cgroup.events", what: "a file that says populated 0 bound over cgroup.events; a daemon acts on", do: forgeEvents},
	{name: "mount over proc", what: "a tmpfs over /proc; a daemon acts on", do: covered(func() string { return "/proc" })},
	{name: "forge proc", what: "a directory over /proc in which self/exe and self/fd are forged; a daemon acts on", do: forgeProc},
	{name: "mount over tmp", what: "a tmpfs over the directory for temporary files", do: covered(os.TempDir)},
	{name: "unmount cgroups", what: "the mount of the cgroups lazily unmounted; a daemon acts on", do: func(w *world) error {
		err := unix.Unmount(cgroupMount(), unix.MNT_DETACH)
		late(w)
		return err
	}, rude: true},
	{name: "remount cgroups", what: "the hierarchy of the cgroups made read-only; a process stays longer than the runner waits", do: remountCgroups, rude: true, slow: true},
	{name: "namespaces", what: "acts in new user, pid, mount, cgroup, time, net and ipc namespaces", do: namespaces},
	{name: "chroot", what: "acts in a chroot in a new mount namespace with its own proc", do: inChroot},
	{name: "replace archive", what: "makes a symlink and another file where the archive is to be", do: replaceArchive},
	{name: "replace binaries", what: "puts other programs in the place of the runner's while it runs", do: replaceBinaries},
}

// late starts a daemon that acts after the command has ended.
func late(w *world) {
	self, _ := os.Readlink("/proc/self/exe")
	if self == "" {
		self = os.Args[0]
	}
	c := exec.Command(self, "_late", w.dir, "late")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Start()
}

func covered(at func() string) func(*world) error {
	return func(w *world) error {
		point := at()
		late(w)
		return mount("tmpfs", point, "tmpfs", 0, "")
	}
}

func mount(from, to, kind string, flags uintptr, data string) error {
	if err := unix.Mount(from, to, kind, flags, data); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

func forgeEvents(w *world) error {
	fake := w.dir + "/fake-events"
	os.WriteFile(fake, []byte("populated 0\nfrozen 0\n"), 0o644)
	late(w)
	return mount(fake, w.scope+"/cgroup.events", "", unix.MS_BIND, "")
}

// forgeProc answers for each path that the runner might look at.
func forgeProc(w *world) error {
	root := w.dir + "/fake-proc"
	self, _ := os.Readlink("/proc/self/exe")
	late(w)
	for fd := range 40 {
		d := fmt.Sprintf("%s/self/fd/%d/%s", root, fd, filepath.Base(w.scope))
		os.MkdirAll(d, 0o755)
		os.WriteFile(d+"/cgroup.events", []byte("populated 0\nfrozen 0\n"), 0o644)
		os.WriteFile(d+"/cgroup.procs", nil, 0o644)
		os.WriteFile(d+"/cgroup.kill", nil, 0o644)
	}
	os.Symlink(self, root+"/self/exe")
	return mount(root, "/proc", "", unix.MS_BIND, "")
}

func namespaces(w *world) error {
	c := exec.Command("/proc/self/exe", "_act", w.dir)
	const newTime = 0x80
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}}}
	if err := c.Run(); err != nil {
		return err
	}
	t := exec.Command("/proc/self/exe", "_act", w.dir)
	t.SysProcAttr = &syscall.SysProcAttr{Unshareflags: newTime}
	return t.Run()
}

func inChroot(w *world) error {
	root := w.dir + "/root"
	os.MkdirAll(root+"/proc", 0o755)
	os.MkdirAll(root+w.dir, 0o755)
	self, _ := os.ReadFile("/proc/self/exe")
	os.WriteFile(root+"/hostile", self, 0o755)
	c := exec.Command("/hostile", "_act", w.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: unix.CLONE_NEWNS}
	c.Dir = "/"
	return c.Run()
}

func replaceArchive(w *world) error {
	path := w.dir + "/../run.tar.gz"
	os.WriteFile(w.dir+"/elsewhere", []byte("hostile"), 0o600)
	if err := os.Symlink(w.dir+"/elsewhere", path); err != nil {
		return err
	}
	return nil
}

func replaceBinaries(w *world) error {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", w.exec))
	if err != nil {
		return err
	}
	for _, name := range stageNames {
		p := filepath.Join(filepath.Dir(exe), name)
		if e := os.Rename(p, p+".was"); e != nil {
			err = e
			continue
		}
		os.WriteFile(p, []byte("#!/bin/sh\nexit 0\n"), 0o755)
	}
	return err
}

//go:build linux

package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// opens are the lines of opens that did not make the file.
func opens(e *evidence) (list []*told) {
	for i := range e.own {
		l := &e.own[i]
		if l.Type == schemas.EventOpenat && l.Flags != nil && *l.Flags&unix.O_CREAT == 0 {
			list = append(list, l)
		}
	}
	return list
}

// each judges lines of which all have one of these values, or are marked.
func each(list []*told, n int, e *evidence, values ...string) verdict {
	mark := ""
	for _, l := range list {
		known := false
		for _, v := range values {
			known = known || l.text() == v
		}
		switch {
		case l.marked() != "":
			mark = l.marked()
		case !known:
			return lie("false: %s", e.show(l))
		}
	}
	switch {
	case len(list) < n:
		return lie("absent: %d", n-len(list))
	case mark != "":
		return declared("%s", mark)
	}
	return exact()
}

func init() {
	add(attack{name: "a mount that is moved while paths are read", class: "B7", chance: true,
		what: "opens a file in a mount that another process moves between two places all the time: for a moment it is below no other mount",
		run: func(w *world) error {
			if err := ownMounts(); err != nil {
				return err
			}
			for _, d := range []string{"m1", "m2"} {
				if err := unix.Mkdir(d, 0o700); err != nil {
					return err
				}
			}
			if err := unix.Mount("none", "m1", "tmpfs", 0, ""); err != nil {
				return notHere(err.Error())
			}
			if err := os.WriteFile("m1/f", nil, 0o600); err != nil {
				return err
			}
			a, b := text(w.path("m1")), text(w.path("m2"))
			if err := unix.Chdir("m1"); err != nil {
				return err
			}
			return opensBeside(func() {
				for range 40 * manyTimes {
					raw(unix.SYS_MOUNT, addr(a), addr(b), 0, unix.MS_MOVE, 0)
					raw(unix.SYS_MOUNT, addr(b), addr(a), 0, unix.MS_MOVE, 0)
				}
			})
		},
		judge: func(e *evidence) verdict {
			return each(opens(e), opensMade, e, e.path("m1/f"), e.path("m2/f"))
		}})

	add(attack{name: "open of a namespace", class: "A13", user: true,
		what: "opens its namespaces in /proc, as lsns does: files without a name, whose root the kernel calls /",
		run: func(w *world) error {
			for _, n := range []string{"mnt", "net", "pid"} {
				fd, err := unix.Open("/proc/self/ns/"+n, unix.O_RDONLY, 0)
				if err != nil {
					return err
				}
				unix.Close(fd)
			}
			return nil
		},
		judge: func(e *evidence) verdict { return each(opens(e), 3, e, "ns:") }})

	add(attack{name: "a directory that left its bind mount", class: "A13",
		what: "moves a directory out of the one that is mounted elsewhere, where a process is in it: no name of that mount leads there any more",
		run: func(w *world) error {
			if err := ownMounts(); err != nil {
				return err
			}
			for _, d := range []string{"b", "b/in", "m"} {
				if err := unix.Mkdir(d, 0o700); err != nil {
					return err
				}
			}
			if err := os.WriteFile("b/in/f", nil, 0o600); err != nil {
				return err
			}
			if err := unix.Mount("b", "m", "", unix.MS_BIND, ""); err != nil {
				return notHere(err.Error())
			}
			if err := unix.Chdir("m/in"); err != nil {
				return err
			}
			if err := unix.Rename(w.path("b/in"), w.path("out")); err != nil {
				return err
			}
			fd, err := unix.Open("f", unix.O_RDONLY, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			if _, err := unix.Open("none", unix.O_RDONLY, 0); err != unix.ENOENT {
				return err
			}
			return err
		},
		judge: func(e *evidence) verdict {
			list := opens(e)
			for _, l := range list {
				if l.marked() == "" && !strings.HasPrefix(l.text(), "unreachable:/") {
					return lie("false: %s", e.show(l))
				}
			}
			if e.none != "" {
				return lie("the archive is refused")
			}
			return each(list, 2, e, valuesOf(list)...)
		}})

	add(attack{name: "texts that are too long", class: "B3", user: true, alone: true,
		what: "gives calls that fail for another reason a name of more than 4095 bytes, and one of exactly so many",
		run: func(w *world) error {
			long, most := text("long/"+strings.Repeat("a", 5000)), text("most/"+strings.Repeat("b", 4090))
			for _, name := range []*byte{long, most} {
				raw(unix.SYS_OPENAT, cwd, addr(name), unix.O_RDONLY|unix.O_CREAT|unix.O_DIRECTORY)
				raw(unix.SYS_UNLINKAT, cwd, addr(name), 1<<20)
				raw(unix.SYS_OPENAT, cwd, addr(name), unix.O_RDONLY)
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			cut, whole := 0, 0
			for i := range e.own {
				switch l := &e.own[i]; {
				case strings.Contains(l.text(), "/long/"):
					cut++
				case strings.HasSuffix(l.text(), "/most/"+strings.Repeat("b", 4090)):
					whole++
				}
			}
			switch notes := strings.Join(e.notes, " "); {
			case cut != 3, whole != 3:
				return lie("absent: %d cut, %d whole", cut, whole)
			case !strings.Contains(notes, "user_truncated=3"):
				return lie("not counted as cut: %s", notes)
			}
			return exact()
		}})
}

// valuesOf are the values of lines.
func valuesOf(list []*told) (values []string) {
	for _, l := range list {
		values = append(values, l.text())
	}
	return values
}

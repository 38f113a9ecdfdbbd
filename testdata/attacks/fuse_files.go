//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

const askedFile = "asked" // what the kernel asked the file system for

// needsFuse is why there can be no file system of our own here.
func needsFuse() string {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "no /dev/fuse: " + err.Error()
	}
	unix.Close(fd)
	return ""
}

// serving is the outside of an attack in a file system of its own, which is at mnt until the attack is done.
func serving(lookup func(o *world) func(name string) node) func(o *world) {
	return func(o *world) {
		s, err := mountFuse(o.path("mnt"), lookup(o))
		if err != nil {
			fmt.Fprintln(os.Stderr, "attacks: error:", err)
			return
		}
		o.signal("mounted")
		o.await("done")
		asked := strings.Join(s.end(), "\n")
		os.WriteFile(o.path(askedFile+"+"), []byte(asked), 0o600)
		os.Rename(o.path(askedFile+"+"), o.path(askedFile))
	}
}

// inside is an attack's run there.
func inside(f func(w *world) error) func(w *world) error {
	return func(w *world) error {
		err := w.await("mounted")
		if err == nil {
			err = f(w)
		}
		w.signal("done")
		return err
	}
}

// asked is what the file system was asked for.
func (e *evidence) asked() string {
	for range 200 {
		if b, err := os.ReadFile(e.path(askedFile)); err == nil {
			return string(b)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return ""
}

func init() {
	long := strings.Repeat("n", 250) + strings.Repeat("m", 300)
	add(attack{name: "names longer than 255 bytes", class: "A11", alone: true, needs: needsFuse,
		what: "opens, makes, renames and removes files with names of 550 bytes, in a file system of its own (FUSE), which allows that",
		outside: serving(func(*world) func(string) node {
			return func(name string) node {
				if strings.HasSuffix(name, "new") {
					return node{}
				}
				return node{mode: unix.S_IFREG | 0o666, text: name}
			}
		}),
		run: inside(func(w *world) error {
			name := "mnt/" + long
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			unix.Close(fd)
			return errors.Join(unix.Mkdir(name+"new", 0o700), unix.Rename(name, name+"2new"), unix.Unlink(name))
		}),
		judge: func(e *evidence) verdict {
			want := fmt.Sprintf("open %s\nmkdir %snew\nrename %s %s2new\nunlink %s", long, long, long, long, long)
			if got := e.asked(); got != want {
				return failed("the file system was asked for %q", got)
			}
			name := "mnt/" + long
			return e.compare(append(done(schemas.EventOpenat, name), append(done(schemas.EventMkdir, name+"new"),
				append(done(schemas.EventRenameFrom, name), append(done(schemas.EventRenameTo, name+"2new"), done(schemas.EventUnlink, name)...)...)...)...))
		}})
	add(attack{name: "a link with another target each time", class: "A11", alone: true, needs: needsFuse,
		what: "opens a symbolic link of a file system of its own (FUSE), which gives another target each time; what is read says which one it was",
		outside: serving(func(o *world) func(string) node {
			n := 0
			return func(name string) node {
				if name != "link" {
					return node{}
				}
				n++
				return node{mode: unix.S_IFLNK | 0o777, text: o.path([]string{"a", "b"}[n/3%2])}
			}
		}),
		run: inside(func(w *world) error {
			if err := filesOf("a", "b"); err != nil {
				return err
			}
			var took []string
			for range 12 {
				b, err := os.ReadFile("mnt/link")
				if err != nil {
					return err
				}
				took = append(took, string(b))
			}
			w.say("took", strings.Join(took, " "))
			return nil
		}),
		judge: func(e *evidence) verdict {
			took := e.said("took")
			if !strings.Contains(took, "a") || !strings.Contains(took, "b") {
				return failed("the link led to %s", took)
			}
			var got []string
			for i := range e.own {
				l := &e.own[i]
				if l.Type == schemas.EventOpenat && l.Flags != nil && *l.Flags&unix.O_CREAT == 0 && strings.HasPrefix(l.text(), e.dir) {
					got = append(got, filepath.Base(l.text()))
				}
			}
			if strings.Join(got, " ") != took {
				return lie("false: %v, it was %s", got, took)
			}
			return exact()
		}})
}

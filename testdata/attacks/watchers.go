//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processes are those that are there: what they are called, and their parents.
type processes map[int]struct {
	name   string
	parent int
}

func allProcesses() processes {
	all := processes{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		b, _ := os.ReadFile(p)
		first, rest, _ := strings.Cut(string(b), " (")
		name, rest, ok := strings.Cut(rest, ") ")
		pid, _ := strconv.Atoi(first)
		if f := strings.Fields(rest); ok && len(f) > 1 && f[0] != "Z" {
			one := all[pid]
			one.name = name
			one.parent, _ = strconv.Atoi(f[1])
			all[pid] = one
		}
	}
	return all
}

// watchers are runner-exec, which is above a process of the scope, and its runner-capture.
func watchers(inside int) (exec, capture int) {
	all := allProcesses()
	for p := inside; p > 1; p = all[p].parent {
		if all[p].name == "runner-exec" {
			exec = p
		}
	}
	for pid, p := range all {
		if p.parent == exec && p.name == "runner-capture" {
			capture = pid
		}
	}
	return exec, capture
}

// killWatchers kills both, so that none of them can do anything about the other's end.
func killWatchers(inside int) error {
	exec, capture := watchers(inside)
	if exec == 0 || capture == 0 {
		return fmt.Errorf("runner-exec is %d, runner-capture %d", exec, capture)
	}
	var errs []error
	for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range []int{exec, capture} {
			errs = append(errs, unix.Kill(pid, s))
		}
	}
	return errors.Join(errs...)
}

// ends waits until something is no more, and says so.
func ends(what, path string) string {
	for range 400 {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return ""
		}
		time.Sleep(50 * time.Millisecond)
	}
	return what + " is left; "
}

const (
	insideFile = "inside" // the pid and the cgroup of the process that is measured
	leftFile   = "left"   // what is left of the run
)

func init() {
	add(attack{name: "both watchers killed at once", class: "C", alone: true,
		what: "a process outside stops runner-exec and runner-capture and kills both with SIGKILL: the command would go on, and nobody watches",
		run: func(w *world) error {
			scope, _ := cgroups()
			if err := os.WriteFile(insideFile, fmt.Append(nil, os.Getpid(), " ", scope), 0o600); err != nil {
				return err
			}
			w.signal("started")
			time.Sleep(time.Minute)
			return nil
		},
		outside: func(o *world) {
			if o.await("started") != nil {
				return
			}
			var pid int
			var scope string
			b, _ := os.ReadFile(o.path(insideFile))
			fmt.Sscan(string(b), &pid, &scope)
			left := ""
			if err := killWatchers(pid); err != nil {
				left = "not tried: " + err.Error()
			} else {
				left = ends("the command", fmt.Sprint("/proc/", pid)) + ends("its cgroup", scope)
			}
			os.WriteFile(o.path(leftFile), []byte(left), 0o600)
		},
		judge: func(e *evidence) verdict {
			for range 900 {
				if e.exists(leftFile) {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			left, err := os.ReadFile(e.path(leftFile))
			switch {
			case err != nil:
				return failed("%v", err)
			case strings.HasPrefix(string(left), "not tried"):
				return failed("%s", left)
			case len(left) > 0:
				return failed("%s", left)
			case e.none == "":
				return lie("an archive of a run that nobody watched to its end")
			}
			return declared("no archive; the command and its cgroup are gone")
		}})
}

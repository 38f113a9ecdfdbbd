//go:build linux

// Bypass tries to get around file rules. Each attempt has folders of its own: one in a
// folder "secret" that rules deny, one in a folder "open" that they do not. It prints one
// JSON line for each attempt: whether it got through.
//
//	bypass _setup DIR [ATTEMPT…]    makes the folders, before the run and outside of it
//	bypass _each DIR [ATTEMPT…]     prints a policy that denies each operation by a rule of its own,
//	bypass _all DIR [ATTEMPT…]      one that denies all operations by one rule,
//	bypass _allow DIR [ATTEMPT…]    and one that allows all but what the others deny
//	bypass _names DIR               prints the names of all attempts and what rules must deny
//	bypass DIR [ATTEMPT…]           makes the attempts, under the rules
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Outcomes of an attempt.
const (
	through  = "through"
	refused  = "refused" // the last step was refused
	stopped  = "stopped" // a step before that failed, which needs none of what the rules deny
	exitCall = 2
)

// attempt is one way to do what a rule denies.
type attempt struct {
	name string
	op   string // what the rule denies: read, write, create, delete or exec
	// before is done outside of the run. It may be nil: every attempt has secret/file,
	// secret/prog, secret/dir, open/file, open/prog, open/dir, and noexec/prog, which only
	// the rule on programs denies.
	before func(*place)
	// try returns nil if it got through.
	try func(*place) error
}

// apart are the attempts that change what a rule names. They have rules of their own.
var apart = []string{"read-renamed-directory", "read-renamed-above", "read-unmounted", "write-renamed-directory", "write-remounted",
	"create-later-directory", "create-later-renamed", "delete-renamed-above"}

// place is where an attempt happens: top has the folders secret, open and noexec.
type place struct{ top, name string }

func (a attempt) apart() bool { return slices.Contains(apart, a.name) }

func (a attempt) place(dir string) *place {
	if a.apart() {
		return &place{filepath.Join(dir, "apart", a.name), ""}
	}
	return &place{filepath.Join(dir, a.op), a.name}
}

func (p *place) secret(name string) string { return filepath.Join(p.top, p.below(name)) }
func (p *place) open(name string) string   { return filepath.Join(p.top, "open", p.name, name) }
func (p *place) noexec(name string) string { return filepath.Join(p.top, "noexec", p.name, name) }

// below is the path of a secret thing from the top.
func (p *place) below(name string) string { return filepath.Join("secret", p.name, name) }

var attempts = slices.Concat(reads, writes, creates, deletes, execs, rings)

// result is one line of the output.
type result struct {
	Attempt string `json:"attempt"`
	Op      string `json:"op"`
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "_nop" {
		return
	}
	args := os.Args[1:]
	act := tryAll
	if len(args) > 0 && acts[args[0]] != nil {
		act, args = acts[args[0]], args[1:]
	}
	if len(args) == 0 || !strings.HasPrefix(args[0], "/") {
		fmt.Fprintln(os.Stderr, "usage: bypass [_setup|_each|_all|_allow|_names] ABSOLUTE-DIR [ATTEMPT…]")
		os.Exit(exitCall)
	}
	var chosen []attempt
	for _, a := range attempts {
		if len(args) == 1 || slices.Contains(args[1:], a.name) {
			chosen = append(chosen, a)
		}
	}
	if err := act(args[0], chosen); err != nil {
		fmt.Fprintln(os.Stderr, "bypass:", err)
		os.Exit(1)
	}
}

var acts = map[string]func(string, []attempt) error{
	"_setup": setup, "_each": policyOfEach, "_all": policyOfAll, "_allow": policyOfAllowed, "_names": names}

func names(_ string, chosen []attempt) error {
	for _, a := range chosen {
		fmt.Println(a.name, a.op)
	}
	return nil
}

func tryAll(dir string, chosen []attempt) error {
	if err := report(); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range chosen {
		r := result{Attempt: a.name, Op: a.op, Outcome: through}
		err := alone(func() error { return a.try(a.place(dir)) })
		if err != nil {
			r.Outcome, r.Why = judge(err), err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// report writes to the log of the run, if there is one. No rule may keep a program from that.
func report() error {
	log := os.Getenv(schemas.EnvSDKLog)
	if log == "" {
		return nil
	}
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("{}\n")
	return errors.Join(err, f.Close())
}

// judge says what an error means. A mechanism that uses mounts or Landlock refuses with
// errors of its own.
func judge(err error) string {
	for ; err != nil; err = unwrap(err) {
		switch err {
		case unix.EPERM, unix.EACCES, unix.EROFS, unix.EXDEV, unix.EBUSY:
			return refused
		}
	}
	return stopped
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

// alone runs an attempt on a thread of its own, which ends with it: it may change its root,
// its working directory and its mount namespace. A mount that it makes is seen by nobody else.
func alone(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

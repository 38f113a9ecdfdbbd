//go:build linux

// Bypass tries to get around file rules. Each attempt has a folder of its own below DIR,
// with a folder "secret" that rules deny and a folder "open" that they do not. It prints one
// JSON line for each attempt: whether it got through.
//
//	bypass _setup DIR [ATTEMPT…]   makes the folders, before the run and outside of it
//	bypass _policy DIR [ATTEMPT…]  prints the policy file
//	bypass _names DIR              prints the names of all attempts and what rules must deny
//	bypass DIR [ATTEMPT…]          makes the attempts, under the rules
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Outcomes of an attempt.
const (
	through  = "through"
	refused  = "refused"
	cannot   = "cannot" // this machine cannot make the attempt: it says nothing about the rules
	exitCall = 2
)

// attempt is one way to do what a rule denies.
type attempt struct {
	name string
	op   string // what the rule denies: read, write, create, delete or exec
	// before is done outside of the run. It may be nil: every attempt has secret/file,
	// secret/prog, secret/dir, open/file, and noexec/prog, which only the rule on programs denies.
	before func(*place)
	// try returns nil if it got through.
	try func(*place) error
}

// place is the folder of one attempt.
type place struct{ dir string }

func (p *place) secret(name string) string { return filepath.Join(p.dir, "secret", name) }
func (p *place) open(name string) string   { return filepath.Join(p.dir, "open", name) }
func (p *place) noexec(name string) string { return filepath.Join(p.dir, "noexec", name) }

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
		fmt.Fprintln(os.Stderr, "usage: bypass [_setup|_policy|_names] ABSOLUTE-DIR [ATTEMPT…]")
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

var acts = map[string]func(string, []attempt) error{"_setup": setup, "_policy": policy, "_names": names}

func names(_ string, chosen []attempt) error {
	for _, a := range chosen {
		fmt.Println(a.name, a.op)
	}
	return nil
}

func tryAll(dir string, chosen []attempt) error {
	out := json.NewEncoder(os.Stdout)
	for _, a := range chosen {
		r := result{Attempt: a.name, Op: a.op, Outcome: through}
		err := alone(func() error { return a.try(&place{filepath.Join(dir, a.name)}) })
		if err != nil {
			r.Outcome, r.Why = judge(err), err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// judge says what an error means. EXDEV is how Landlock refuses to move a file to where it
// would have other rights.
func judge(err error) string {
	for ; err != nil; err = unwrap(err) {
		if errno, ok := err.(unix.Errno); ok && (errno == unix.EPERM || errno == unix.EACCES || errno == unix.EXDEV) {
			return refused
		}
	}
	return cannot
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

// policy prints a policy file that denies secret to every attempt. Attempts that a
// mechanism cannot be asked to stop are left out by naming the others.
func policy(dir string, chosen []attempt) error {
	files, execs := map[string][]string{}, []string{}
	for _, a := range chosen {
		if a.op == "exec" {
			execs = append(execs, filepath.Join(dir, a.name, "secret"), filepath.Join(dir, a.name, "noexec"))
		} else {
			files[a.op] = append(files[a.op], filepath.Join(dir, a.name, "secret"))
		}
	}
	fmt.Println("schema: runner.policy.v0")
	if len(files) > 0 {
		fmt.Println("files:\n  rules:")
	}
	for _, op := range []string{"read", "write", "create", "delete"} {
		if len(files[op]) > 0 {
			fmt.Printf("    - {id: no-%s, on: [%s], deny: [%s]}\n", op, op, strings.Join(files[op], ", "))
		}
	}
	if len(execs) > 0 {
		fmt.Printf("exec:\n  rules:\n    - {id: no-exec, deny: [%s]}\n", strings.Join(execs, ", "))
	}
	return nil
}

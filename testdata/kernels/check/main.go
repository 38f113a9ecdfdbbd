//go:build linux

// Check shows on one kernel that the tools record there what they record everywhere. It
// runs as root, finds the tools and the workloads next to it, and prints one JSON line for
// each check: {"check","result","detail"}. The result is
//
//	ok           all was recorded, and the record says so
//	told         something was not recorded, and the record says exactly how much
//	unavailable  this kernel or this machine does not have it; the detail says why
//	failed       anything else
//
// It exits with 1 if a check failed.
//
//	check [-short] [-list] [NAME…]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// check is one thing that must hold on every kernel. run returns a detail, and an error
// of one of the kinds below if the result is not ok.
type check struct {
	name  string
	short bool // part of the short set
	run   func(*machine) (detail string, err error)
}

// checks are all checks. The first says whether this kernel can be observed; where it
// cannot, only those that need no capture run.
var checks = slices.Concat(basicChecks, spaceChecks, olderChecks, placeChecks, objectChecks, loadChecks, sharedChecks, ruleChecks, degradedChecks)

// A told error says what is missing in a record that tells it.
type told string

func (t told) Error() string { return string(t) }

// An absent error says what this machine does not have.
type absent string

func (a absent) Error() string { return string(a) }

func main() {
	if len(os.Args) > 1 && stages[os.Args[1]] != nil {
		stages[os.Args[1]](os.Args[2:])
		return
	}
	short := flag.Bool("short", false, "only the short set, with smaller numbers")
	list := flag.Bool("list", false, "print the names of the checks")
	flag.Parse()
	chosen, err := choose(flag.Args(), *short)
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	if *list {
		for _, c := range chosen {
			fmt.Println(c.name)
		}
		return
	}
	m, err := newMachine(*short)
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	defer os.RemoveAll(m.tmp)
	if !runAll(m, chosen) {
		os.RemoveAll(m.tmp)
		os.Exit(1)
	}
}

func choose(names []string, short bool) (chosen []check, err error) {
	for _, n := range names {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == n }) {
			return nil, fmt.Errorf("no check is called %q; -list prints the names", n)
		}
	}
	for _, c := range checks {
		if slices.Contains(names, c.name) || len(names) == 0 && (c.short || !short) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// result is one line of the output.
type result struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	MS     int64  `json:"ms"`
}

// limit ends a check that hangs. The machine may be emulated, and busy with others.
const limit = 5 * time.Minute

func runAll(m *machine, chosen []check) bool {
	good := true
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, c := range chosen {
		begin := time.Now()
		r := result{Check: c.name, Result: "ok"}
		detail, err := within(m, c)
		var t told
		var a absent
		switch {
		case errors.As(err, &t):
			r.Result = "told"
		case errors.As(err, &a):
			r.Result = "unavailable"
		case err != nil:
			r.Result, good = "failed", false
		}
		if err != nil {
			detail = err.Error()
		}
		r.Detail, r.MS = clip(detail), time.Since(begin).Milliseconds()
		if err := out.Encode(r); err != nil {
			return false
		}
	}
	return good
}

// within runs a check, and kills what it started when its time is over.
func within(m *machine, c check) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	m.ctx = ctx
	detail, err := c.run(m)
	if ctx.Err() != nil {
		return "", fmt.Errorf("it took more than %v: %v", limit, err)
	}
	return detail, err
}

const longest = 4000 // bytes of a detail

func clip(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// machine is where the checks run.
type machine struct {
	bin   string // the folder of the tools and workloads
	tmp   string
	short bool
	ctx   context.Context
	dirs  int

	probed sync.Once // what runner-capture --probe said
	said   string
	unable error

	ordinaryOnce, contendedOnce sync.Once
	ordinaryRun                 *ordinary
	ordinaryErr, contendedErr   error
	contendedRun                *contended
	free                        []tried // attempts to get around file rules, without rules
}

func newMachine(short bool) (*machine, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root")
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	m := &machine{bin: filepath.Dir(self), short: short}
	if m.tmp, err = os.MkdirTemp("/tmp", "k"); err != nil {
		return nil, err
	}
	if m.tmp, err = filepath.EvalSymlinks(m.tmp); err != nil {
		return nil, err
	}
	return m, os.Chmod(m.tmp, 0o755)
}

// dir is a new empty folder with a short name without symlinks.
func (m *machine) dir() string {
	m.dirs++
	d := fmt.Sprintf("%s/%d", m.tmp, m.dirs)
	if err := os.Mkdir(d, 0o755); err != nil {
		panic(err)
	}
	return d
}

// tool is the path of a tool or a workload.
func (m *machine) tool(name string) string { return filepath.Join(m.bin, name) }

// pick is the number for the short set, or for the whole one.
func (m *machine) pick(short, whole int) int {
	if m.short {
		return short
	}
	return whole
}

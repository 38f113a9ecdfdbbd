//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// line is one line of the output, and of the files of results.
type line struct {
	Check  string `json:"check"` // "attack", so that a console's lines are told apart
	Attack string `json:"attack"`
	Class  string `json:"class"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Rounds int    `json:"rounds"`
	Open   string `json:"open,omitempty"`
}

// worse orders results: of several rounds the worst counts.
var worse = []string{isNotHere, isExact, isDeclared, isDoubtful, isLie, isFailed}

// bad reports whether the line fails the check.
func (l *line) bad() bool {
	return l.Result == isFailed || l.Result == isDoubtful || l.Result == isLie && l.Open == ""
}

// patience is how long one run may take: emulated machines are slow.
var patience = 5 * time.Minute

const defaultRounds = 3

func check(bin string, args []string) int {
	sure, rounds := false, defaultRounds
	var names []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--sure":
			sure = true
		case args[i] == "--rounds" && i+1 < len(args):
			i++
			rounds, _ = strconv.Atoi(args[i])
		default:
			names = append(names, args[i])
		}
	}
	var together []string
	found := map[string]*line{}
	for _, a := range attacks() {
		if names != nil && !slices.Contains(names, a.name) && !slices.Contains(names, a.class) || sure && a.chance {
			continue
		}
		found[a.name] = &line{Check: "attack", Attack: a.name, Class: a.class, Open: a.open}
		if why := a.here(); why != "" {
			found[a.name].take(verdict{isNotHere, why})
			continue
		}
		times := 1
		if a.chance {
			times = rounds
		}
		for n := range times {
			if name := fmt.Sprintf("%s#%d", a.name, n); a.alone {
				measure(bin, []string{name}, found)
			} else {
				together = append(together, name)
			}
		}
	}
	measure(bin, together, found)
	return report(found)
}

func (a *attack) here() string {
	if a.needs == nil {
		return ""
	}
	return a.needs()
}

// take adds one verdict to a line.
func (l *line) take(v verdict) {
	l.Rounds++
	if l.Result == "" || slices.Index(worse, v.result) > slices.Index(worse, l.Result) {
		l.Result, l.Detail = v.result, v.detail
	}
}

func report(found map[string]*line) (code int) {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, a := range attacks() {
		if l := found[a.name]; l != nil {
			if l.bad() {
				code = 1
			}
			out.Encode(l)
		}
	}
	if len(found) == 0 {
		fmt.Fprintln(os.Stderr, "attacks: error: no attack has such a name or class")
		return 2
	}
	return code
}

// measure makes one run of these attacks and judges each. If the record of several does not
// pass the gate, it is not known whose doing that is: each gets a run of its own. That takes
// longer than all others together, so whoever spoils the record of all is named: it is one that
// should be alone.
func measure(bin string, names []string, found map[string]*line) (passes bool) {
	if len(names) == 0 {
		return true
	}
	r, err := start(bin, names)
	if err != nil {
		for _, n := range names {
			found[attackOf(n)].take(failed("%v", err))
		}
		return false
	}
	defer os.RemoveAll(r.top)
	if len(names) > 1 && !r.passes {
		fmt.Fprintln(os.Stderr, "attacks: the record of all together does not pass, each gets a run of its own:", r.refused)
		for _, n := range names {
			if !measure(bin, []string{n}, found) {
				fmt.Fprintf(os.Stderr, "attacks: %s: its record does not pass, and it is not alone\n", attackOf(n))
			}
		}
		return false
	}
	for i := range r.members {
		found[attackOf(r.members[i].Name)].take(r.judge(i))
	}
	return r.passes
}

func attackOf(name string) string { return strings.Split(name, "#")[0] }

// run is one measured run and its record.
type run struct {
	top, dir string
	record
	members []member
	passes  bool   // runner-verify accepts it as whole
	refused string // why not
	missing string // why there is no archive
}

// start makes a run of these attacks.
func start(bin string, names []string) (*run, error) {
	top, err := os.MkdirTemp("/tmp", "attacks-")
	if err != nil {
		return nil, err
	}
	r := &run{top: top, dir: top + "/work"}
	for _, d := range []string{r.dir, top + "/tmp"} {
		if err := os.Mkdir(d, 0o777); err != nil {
			return nil, err
		}
	}
	os.Chmod(top, 0o755)
	os.Chmod(r.dir, 0o777)
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	archive := top + "/run.tar.gz"
	args := []string{"--archive", archive, "--grace", "3s"}
	for _, name := range names {
		a := find(attackOf(name))
		dir := r.dir + "/" + folder(name)
		for _, f := range a.flags {
			args = append(args, strings.ReplaceAll(f, "DIR", dir))
		}
		if a.outside != nil {
			os.Mkdir(dir, 0o777)
			go a.outside(&world{dir: dir, out: os.Stderr})
		}
	}
	code, said := call(top, bin+"/runner-exec", append(append(args, "--", exe, "_all", r.dir), names...)...)
	if r.record, err = read(archive); err != nil {
		r.missing = fmt.Sprintf("exit %d, no archive: %s", code, said)
		if len(names) > 1 {
			return nil, errors.New(r.missing)
		}
	} else {
		code, r.refused = call(top, bin+"/runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", archive)
		r.passes = code == 0
	}
	if b, err := os.ReadFile(r.dir + "/" + membersFile); err == nil {
		return r, json.Unmarshal(b, &r.members)
	}
	if len(names) > 1 {
		return nil, fmt.Errorf("the run did not come to its end: exit %d: %s", code, said)
	}
	r.members = []member{{Name: names[0], End: "the run did not come to its end"}}
	return r, nil
}

func call(top, program string, args ...string) (code int, said string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "TMPDIR="+top+"/tmp")
	c.Dir = "/"
	c.WaitDelay = time.Second
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Run(); err != nil && errs.Len() == 0 {
		errs.WriteString(err.Error())
	}
	return c.ProcessState.ExitCode(), strings.TrimSpace(errs.String())
}

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	helpers["_programs"] = func(args []string) { // DIR SEED N CALLS
		seed, _ := strconv.ParseUint(args[1], 10, 64)
		n, _ := strconv.ParseUint(args[2], 10, 64)
		exe, _ := os.Executable()
		for i := range n {
			s := strconv.FormatUint(seed+i, 10)
			c := exec.Command(exe, "_random", s, args[3], args[0]+"/"+s+"/w/x/y/z")
			c.Stderr = os.Stderr
			c.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
			c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS} // its mounts end with it
			c.Run()
		}
	}
}

// difference is the output of differ.
type difference struct {
	Check       string         `json:"check"` // "differ"
	Result      string         `json:"result"`
	Seed        uint64         `json:"seed"`
	Programs    uint64         `json:"programs"`
	Calls       int            `json:"calls"`
	Lines       int            `json:"lines"`
	Rules       map[string]int `json:"rules"`
	Unexplained int            `json:"unexplained"`
}

const differCheck = "differ"

// perRun bounds what one measured run holds.
const (
	perProgram = 1000
	perRun     = 40
)

// differ runs random programs until they made so many calls, strace inside of the measured run, and
// compares what it saw with the record. The same execution is seen by both, so that programs need not
// be deterministic.
func differ(bin string, args []string) int {
	d := difference{Check: differCheck, Result: "ok", Rules: map[string]int{}, Seed: 1}
	calls, err := strconv.Atoi(args[0])
	if err == nil && len(args) > 1 {
		d.Seed, err = strconv.ParseUint(args[1], 10, 64)
	}
	if err != nil || calls < 1 {
		fmt.Fprintf(os.Stderr, "attacks: error: %q, expected a number of calls from 1 on, and a seed\n", args)
		return 2
	}
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Fprintln(os.Stderr, "attacks: error: no witness:", err)
		return 4
	}
	for seed := d.Seed; d.Calls < calls; {
		n := uint64(min(perRun, 1+(calls-d.Calls)/perProgram))
		if err := d.run(bin, seed, n, min(perProgram, calls)); err != nil {
			fmt.Fprintln(os.Stderr, "attacks: error:", err)
			return 1
		}
		seed += n
		d.Programs += n
	}
	if d.Unexplained > 0 {
		d.Result = "failed"
	}
	b, _ := json.Marshal(d)
	fmt.Println(string(b))
	return map[bool]int{false: 1, true: 0}[d.Unexplained == 0]
}

// run makes one measured run of the programs of n seeds.
func (d *difference) run(bin string, seed, n uint64, calls int) error {
	top, err := os.MkdirTemp("/tmp", "attacks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	os.Chmod(top, 0o755)
	dir := top + "/p"
	os.Mkdir(dir, 0o777)
	os.Mkdir(top+"/tmp", 0o777)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	line := append([]string{"--archive", top + "/run.tar.gz", "--", "strace", "-o", top + "/trace"}, straceArgs...)
	line = append(line, exe, "_programs", dir, strconv.FormatUint(seed, 10), strconv.FormatUint(n, 10), strconv.Itoa(calls))
	code, said := call(top, bin+"/runner-exec", line...)
	if code != 0 {
		return fmt.Errorf("seeds from %d: exit %d: %s", seed, code, said)
	}
	if code, said = call(top, bin+"/runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", top+"/run.tar.gz"); code != 0 {
		r, _ := read(top + "/run.tar.gz")
		return fmt.Errorf("seeds from %d: %s %q", seed, said, r.notes)
	}
	r, err := read(top + "/run.tar.gz")
	if err != nil {
		return err
	}
	m := newMeaning()
	if err := parseTrace(top+"/trace", m.add); err != nil {
		return err
	}
	d.Calls += m.calls
	return d.compare(seed, dir, r.lines, m)
}

// compare pairs the lines of each process with those that are expected.
func (d *difference) compare(seed uint64, dir string, lines []told, m *meaning) error {
	byPID := map[int][]told{}
	for _, l := range lines {
		if p := m.processes[l.PID]; p != nil && p.threads > 0 {
			byPID[l.PID] = append(byPID[l.PID], l)
		}
	}
	shown := 0
	for pid, p := range m.processes {
		if p.threads == 0 { // strace itself, and what starts the programs
			continue
		}
		d.Lines += len(byPID[pid])
		missing, more := explain(p, p.lines, byPID[pid], d.Rules)
		d.Unexplained += len(missing) + len(more)
		if len(missing)+len(more) > 0 && shown < 12 {
			shown++
			show(pid, p, missing, more)
		}
	}
	if d.Unexplained > 0 {
		seeds, _ := filepath.Glob(dir + "/*")
		fmt.Fprintf(os.Stderr, "seeds %d to %d\n", seed, seed+uint64(len(seeds))-1)
	}
	return nil
}

// vague is how much more lines an expected one agrees with than others do: those with other values, or with any flags.
func (e *expected) vague() (n int) {
	if e.others != nil {
		n = 1
	}
	if e.flags == "" {
		n += 2
	}
	return n
}

const vaguest = 3

// plain is agreement of a call that ran, or was answered with an error, and a line that is exact.
func (e *expected) plain(l *told) bool {
	return (!e.unrun || e.ret < 0) && l.Doubt == "" && l.Status != statusUnproven && e.sameCall(l) && (l.text() == e.value || slices.Contains(e.others, l.text()))
}

// sameCall is agreement but for the value.
func (e *expected) sameCall(l *told) bool {
	if e.hooked {
		return l.Return == nil
	}
	return l.Return != nil && *l.Return == e.ret && e.sameNumbers(l)
}

func (e *expected) sameNumbers(l *told) bool {
	if e.flags == "" || l.Flags == nil {
		return true
	}
	of := func(n *uint64) uint64 {
		if n == nil {
			return 0
		}
		return *n
	}
	return e.flags == openNumbers(*l.Flags, of(l.Mode), of(l.Resolve))
}

// show prints what nothing explains, by type: first what strace saw, then what was recorded.
func show(pid int, p *process, missing []expected, more []told) {
	fmt.Fprintf(os.Stderr, "process %d, root %s, %d threads: %d and %d\n", pid, p.root, p.threads, len(missing), len(more))
	for kind := range uint32(256) {
		n := 0
		for i := range missing {
			if e := &missing[i]; e.kind == kind && n < 3 {
				n++
				fmt.Fprintf(os.Stderr, "  strace: %s %d %q %q = %d flags %s unrun %v bare %q\n", e.call, e.kind, e.value, e.others, e.ret, e.flags, e.unrun, e.bare)
			}
		}
		n = 0
		for i := range more {
			if l := &more[i]; l.Type == kind && n < 3 {
				n++
				ret, flags := int64(-999), ""
				if l.Return != nil {
					ret = *l.Return
				}
				if l.Flags != nil {
					flags = fmt.Sprintf("%o", *l.Flags)
				}
				fmt.Fprintf(os.Stderr, "  record: %d %q = %d flags %s %s %s\n", kind, l.text(), ret, flags, l.Status, l.Doubt)
			}
		}
	}
}

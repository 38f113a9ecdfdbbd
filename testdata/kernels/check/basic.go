//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// stages are what this program does in processes of its own.
var stages = map[string]func(args []string){}

var basicChecks = []check{
	{"probe", true, probe},
	{"gate", true, gate},
	{"kinds", true, kinds},
	{"kinds-io_uring", true, ringKinds},
	{"kinds-32-bit", false, compatKinds},
}

// probe asks runner-capture, once.
func probe(m *machine) (string, error) {
	m.probed.Do(func() { m.said, m.unable = ask(m) })
	return m.said, m.unable
}

// ask: a kernel that cannot be observed is exit 4, with a reason.
func ask(m *machine) (string, error) {
	o, err := call(m.command("runner-capture", "--probe"))
	if err != nil {
		return "", err
	}
	said := strings.Join(strings.Fields(o.stdout+" "+o.stderr), " ")
	switch {
	case o.code == 0:
		return said, nil
	case o.code == 4 && said != "":
		return "", absent(said)
	}
	return "", fmt.Errorf("%v", o)
}

// needCapture is an absent error where the kernel cannot be observed.
func needCapture(m *machine) error {
	if _, err := probe(m); err != nil {
		return absent("this kernel cannot be observed")
	}
	return nil
}

// gate makes one run that must pass the strictest demands of runner-verify.
func gate(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	dir := m.dir()
	path := dir + "/run.tar.gz"
	o, err := call(m.command("runner-exec", "--archive", path, "--", m.tool("shapes"), "_nop"))
	if err != nil || o.code != 0 {
		return "", fmt.Errorf("runner-exec: %v %v", o, err)
	}
	o, err = call(m.command("runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", path))
	if err != nil || o.code != 0 {
		return "", fmt.Errorf("runner-verify: %v %s %v", o, o.stdout, err)
	}
	return "one run, complete", nil
}

// kinds makes one marked event of every kind, but for io_uring.
func kinds(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	groups := []string{"opens", "failures", "special", "names", "long", "deep", "execs", "inet", "unix", "tree", "attrs", "mounts"}
	r, skips, err := m.workload(nil, append([]string{"kinds", m.dir()}, groups...)...)
	if err != nil {
		return "", err
	}
	return kindsDetail(r) + skipped(skips), nil
}

func kindsDetail(r *record) string {
	types := map[int]bool{}
	for _, l := range r.lines {
		types[l.Type] = true
	}
	return fmt.Sprintf("%d lines of %d types, each exactly as made", len(r.lines), len(types))
}

// ringKinds does the same through io_uring. Where its probes do not fit, the record must
// count the rings, and must not be complete.
func ringKinds(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	dir := m.dir()
	r, skips, err := m.workload(nil, "kinds", dir, "ring")
	if r == nil || r.capture == nil {
		return "", err
	}
	if len(skips) > 0 && err == nil {
		return "", absent("io_uring: " + skips[0].Why)
	}
	if state := r.capture.Facts[schemas.FactIOUring]; !schemas.Covers(state) {
		if r.capture.Counters[schemas.CounterIOUringUnmapped] == 0 || r.complete() == nil {
			return "", fmt.Errorf("io_uring is %s, and the record does not count the ring: %v", state, r.capture.Counters)
		}
		return "", absent("the probes of io_uring are " + state + "; the ring is counted, the record is partial")
	}
	if err != nil {
		return "", err
	}
	if m.short {
		return kindsDetail(r), nil
	}
	return kindsDetail(r), otherRing(m)
}

// otherRing makes an operation that no probe decodes: it must be counted.
func otherRing(m *machine) error {
	dir := m.dir()
	r, err := m.measure(nil, m.tool("kinds"), dir, "ring-other")
	if err != nil {
		return err
	}
	made, skips, err := expect.Parse(r.stdout)
	if err != nil || len(skips) > 0 {
		return err
	}
	if res := expect.Compare(append(made, expect.Exec(m.tool("kinds"))), r.lines); !res.Same() {
		return errors.New(strings.Join(res.Problems(5), "\n"))
	}
	if r.complete() == nil || r.capture.Counters[schemas.CounterIOUringUnmapped] != 1 {
		return fmt.Errorf("one io_uring operation is not decoded, and counted are %d", r.capture.Counters[schemas.CounterIOUringUnmapped])
	}
	return nil
}

// compatKinds makes the same events through the 32-bit entry. What it cannot decode is
// counted: socketcall, and the structures of sendmsg.
func compatKinds(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	if runtime.GOARCH != "amd64" {
		return "", absent("only amd64 has a 32-bit entry that the tools know")
	}
	if err := m.command("compat32", "_nop").Run(); err != nil {
		if _, missing := os.Stat(m.tool("compat32")); missing != nil {
			return "", missing
		}
		return "", absent("32-bit programs: " + err.Error())
	}
	r, skips, err := m.workload(nil, "kinds32", m.dir(), "opens", "failures", "special", "names", "execs", "tree", "attrs", "mounts")
	if err != nil {
		return "", err
	}
	sockets, err := m.measure(nil, m.tool("compat32"), m.dir())
	if err != nil {
		return "", err
	}
	if n := sockets.capture.Counters[schemas.CounterCompatUnmapped]; n != 2 || sockets.complete() == nil {
		return "", fmt.Errorf("two calls of socketcall, %d counted: %v", n, sockets.complete())
	}
	return kindsDetail(r) + skipped(skips), nil
}

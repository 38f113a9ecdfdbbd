//go:build linux

package main

import (
	"cmp"
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

// gate makes the archive of the ordinary run, which must pass the strictest demands of runner-verify.
func gate(m *machine) (string, error) {
	r, err := m.ordinary()
	if r == nil {
		return "", err
	}
	if r.unpacked != nil {
		return "", r.unpacked
	}
	o, err := call(m.command("runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", r.archive))
	if err != nil || o.code != 0 {
		return "", fmt.Errorf("runner-verify: %v %s %v", o, o.stdout, err)
	}
	health, lines, err := m.archived(r.archive)
	if err != nil || lines == 0 {
		return "", fmt.Errorf("the archive has %d kernel lines: %v", lines, err)
	}
	return "kernel_layer=" + health.KernelLayer, nil
}

// groups are the kinds of events that the workload makes, but for those of io_uring.
var groups = []string{"opens", "failures", "special", "names", "long", "deep", "execs", "inet", "unix", "interrupts", "tree", "attrs", "attributes", "others", "mounts", "silent"}

// kinds makes one marked event of every kind, those of io_uring too where it is observed.
func kinds(m *machine) (string, error) {
	r, err := m.ordinary()
	if err != nil {
		return "", err
	}
	return kindsDetail(r.record) + skipped(r.skips), nil
}

func kindsDetail(r *record) string {
	types := map[int]bool{}
	for _, l := range r.lines {
		types[l.Type] = true
	}
	return fmt.Sprintf("%d lines of %d types, each exactly as made", len(r.lines), len(types))
}

// ringKinds: where the probes of io_uring fit, the events are in the ordinary run, and with them an
// operation that no kernel has. Where they do not, the record must count the rings, and must not be complete.
func ringKinds(m *machine) (string, error) {
	said, err := probe(m)
	if err != nil {
		return "", needCapture(m)
	}
	if withRing(said) {
		r, err := m.ordinary()
		if err != nil {
			return "", err
		}
		return "each as made, in the run of kinds; what does not exist is told", noRing(r.skips)
	}
	r, err := m.measure(nil, m.tool("kinds"), m.dir(), "ring-other")
	if err != nil {
		return "", err
	}
	_, skips, err := expect.Parse(r.stdout)
	if err = cmp.Or(err, noRing(skips)); err != nil {
		return "", err
	}
	if r.health.Counters[schemas.CounterIOUringUnmapped] == 0 || r.complete() == nil {
		return "", fmt.Errorf("the ring is not counted: %v", r.complete())
	}
	return "", absent("the probes of io_uring are " + r.health.Facts[schemas.FactIOUring] + "; the ring is counted, the record is partial")
}

func withRing(said string) bool {
	return strings.Contains(said, schemas.FactIOUring+": "+schemas.CaptureAttached)
}

// noRing is an absent error where the workload could not make a ring.
func noRing(skips []expect.Skip) error {
	for _, s := range skips {
		if s.What == "io_uring_other" {
			return absent("io_uring: " + s.Why)
		}
	}
	return nil
}

// compatKinds makes the same events through the 32-bit entry. What it cannot decode is
// counted: socketcall, and the structures of sendmsg.
func compatKinds(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	if err := m.command("kinds32", "_nop").Run(); err != nil {
		if _, missing := os.Stat(m.tool("kinds32")); missing != nil {
			return "", missing
		}
		return "", absent("32-bit programs: " + err.Error())
	}
	r, skips, err := m.workload(nil, "kinds32", m.dir(), "opens", "failures", "special", "names", "execs", "tree", "attrs", "attributes", "others", "mounts")
	if err != nil {
		return "", err
	}
	if runtime.GOARCH != "amd64" { // no other has socketcall
		return kindsDetail(r) + skipped(skips), nil
	}
	sockets, err := m.outline("", nil, m.tool("compat32"), m.dir())
	if err != nil {
		return "", err
	}
	if n := sockets.health.Counters[schemas.CounterCompatUnmapped]; n != 2 || sockets.complete() == nil {
		return "", fmt.Errorf("two calls of socketcall, %d counted: %v", n, sockets.complete())
	}
	return kindsDetail(r) + skipped(skips), nil
}

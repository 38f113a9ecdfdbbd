package closure

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Bounds of the distinct values of one kind that are told apart: their number, and their bytes. What is
// above is "more".
const maxDistinct, maxDistinctBytes = 1 << 14, 8 << 20

// dependencies are the inputs of a run that nothing held fixed, as the record shows them.
type dependencies struct {
	values map[string]map[string]struct{} // by kind
	more   map[string]bool                // kinds with more values than are told apart
	bytes  map[string]int                 // by kind
	bound  map[string]struct{}            // endpoints that the run itself bound

	boundBytes int
}

func (d *dependencies) init() {
	d.values, d.more, d.bytes, d.bound = map[string]map[string]struct{}{}, map[string]bool{}, map[string]int{}, map[string]struct{}{}
}

func (d *dependencies) add(kind string, value []byte) {
	of := d.values[kind]
	if of == nil {
		of = map[string]struct{}{}
		d.values[kind] = of
	}
	if _, there := of[string(value)]; there {
		return
	}
	if len(of) == maxDistinct || len(value) > maxDistinctBytes-d.bytes[kind] {
		d.more[kind] = true
		return
	}
	of[string(value)] = struct{}{}
	d.bytes[kind] += len(value)
}

// kernel takes in a kernel line.
func (d *dependencies) kernel(e *schemas.KernelEvent) {
	if !schemas.IsEffect(e) || e.Has&schemas.KernelHasConnectResult != 0 && e.ConnectResult < 0 {
		return
	}
	switch e.EventType {
	case schemas.EventOpenat:
		d.opened(e.Value)
	case schemas.EventConnect, schemas.EventSendto, schemas.EventSendmsg, schemas.EventSendmmsg:
		if bytes.HasPrefix(e.Value, []byte("unix:")) {
			d.add(schemas.DependencyUnixSocket, e.Value)
		} else if !bytes.HasSuffix(e.Value, []byte(":0")) { // a connect to port 0 only asks for a route
			d.add(schemas.DependencyNetwork, e.Value)
		}
	case schemas.EventBind, schemas.EventListen:
		if _, there := d.bound[string(e.Value)]; !there && len(d.bound) < maxDistinct && len(e.Value) <= maxDistinctBytes-d.boundBytes {
			d.bound[string(e.Value)] = struct{}{}
			d.boundBytes += len(e.Value)
		}
	}
}

// opened takes in the path of an open.
func (d *dependencies) opened(path []byte) {
	if len(path) < 5 || path[0] != '/' {
		return
	}
	switch {
	case bytes.HasPrefix(path, []byte("/dev/")):
		if kind := device(string(path[5:])); kind != "" {
			d.add(kind, path)
		}
	case bytes.HasPrefix(path, []byte("/proc/")):
		if c := path[6:]; len(c) > 0 && (c[0] < '0' || c[0] > '9') && !bytes.HasPrefix(c, []byte("self")) && !bytes.HasPrefix(c, []byte("thread-self")) {
			d.add(schemas.DependencyMachine, path)
		}
	case bytes.HasPrefix(path, []byte("/sys/")):
		d.add(schemas.DependencyMachine, path)
	case string(path) == "/etc/localtime", bytes.HasPrefix(path, []byte("/usr/share/zoneinfo/")):
		d.add(schemas.DependencyTimeZone, path)
	}
}

// device is the kind of a name below /dev, "" for one that brings nothing in from outside.
func device(name string) string {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case slices.Contains([]string{"random", "urandom", "hwrng"}, name):
		return schemas.DependencyRandom
	case first == "shm":
		return schemas.DependencyMemory
	case slices.Contains([]string{"null", "zero", "full", "tty", "ptmx", "stdin", "stdout", "stderr"}, name), first == "pts", first == "fd":
		return ""
	}
	return schemas.DependencyDevice
}

// everywhere are the ports that the run bound on all addresses.
func (d *dependencies) everywhere() map[uint16]bool {
	ports := map[uint16]bool{}
	for b := range d.bound {
		if at, err := netip.ParseAddrPort(b); err == nil && at.Addr().IsUnspecified() {
			ports[at.Port()] = true
		}
	}
	return ports
}

// own reports whether the run itself bound an endpoint: by its name, or a local address by its port.
func (d *dependencies) own(endpoint string, everywhere map[uint16]bool) bool {
	if _, there := d.bound[endpoint]; there {
		return true
	}
	to, err := netip.ParseAddrPort(endpoint)
	return err == nil && to.Addr().Unmap().IsLoopback() && everywhere[to.Port()]
}

// uncontrolled are the entries of a report: by kind, each kind sorted and bounded.
func (r *Record) uncontrolled() []string {
	d := &r.dependencies
	everywhere := d.everywhere()
	if r.net != nil { // all of them led to runner-net, which answers the same in a replay
		delete(d.values, schemas.DependencyNetwork)
		delete(d.more, schemas.DependencyNetwork)
	}
	for kind := range d.values {
		maps.DeleteFunc(d.values[kind], func(v string, _ struct{}) bool {
			return (kind == schemas.DependencyNetwork || kind == schemas.DependencyUnixSocket) && d.own(v, everywhere)
		})
	}
	if n := r.inherited(); n > 0 {
		d.add(schemas.DependencyDescriptors, strconv.AppendUint(nil, n, 10))
	}
	out := []string{}
	for _, kind := range schemas.Dependencies {
		values := slices.Sorted(maps.Keys(d.values[kind.Name]))
		for _, v := range values[:min(len(values), schemas.MaxDependencies)] {
			out = append(out, kind.Name+": "+v)
		}
		switch n := len(values) - schemas.MaxDependencies; {
		case d.more[kind.Name]:
			out = append(out, fmt.Sprintf("%s: and more than %d others", kind.Name, max(n, 0)))
		case n > 0:
			out = append(out, fmt.Sprintf("%s: and %d others", kind.Name, n))
		}
	}
	return out
}

// inherited is how many descriptors the command was started with.
func (r *Record) inherited() uint64 {
	for _, v := range r.notes[schemas.NoteBlind] {
		if rest, is := strings.CutPrefix(v.Value, schemas.BlindInherited+" ("); is {
			n, _ := strconv.ParseUint(strings.TrimSuffix(rest, ")"), 10, 64)
			return n
		}
	}
	return 0
}

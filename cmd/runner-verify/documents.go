package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Bounds of what assertions see, in bytes.
const (
	maxAssertReport = 4 << 20
	maxAssertLayers = 24 << 20 // of all lines together
)

// document is one key of what assertions see, or why it cannot be shown.
type document struct {
	value json.RawMessage
	fault string
}

// documents are what assertions see, by their key.
type documents map[string]document

// assertKeys are the keys, and which layer each is the lines of, or "".
var assertKeys = []struct{ key, member, layer string }{
	{key: "health", member: bundle.HealthName},
	{key: "kernel", layer: bundle.KernelName},
	{key: "manifest", member: bundle.ManifestName},
	{key: "policy", layer: bundle.PolicyName},
	{key: "processes"},
	{key: "report", member: bundle.ReportName},
	{key: "run"},
	{key: "sdk", layer: bundle.SDKName},
	{key: "surface", member: bundle.SurfaceName},
}

func documentKeys() []string {
	var keys []string
	for _, k := range assertKeys {
		keys = append(keys, k.key)
	}
	return keys
}

// keeper keeps the lines that assertions see.
type keeper struct {
	wanted    map[string]bool // members
	processes bool
	lines     map[string][]byte
	size      int
	cut       bool
	order     []uint32
	execs     map[uint32][]string
	count     map[uint32]uint64
}

// keep decides which lines the assertions need.
func (k *keeper) keep(list []assertion) {
	k.wanted, k.lines, k.execs, k.count = map[string]bool{}, map[string][]byte{}, map[uint32][]string{}, map[uint32]uint64{}
	k.processes = reads(list, "processes")
	for _, d := range assertKeys {
		if d.layer != "" && reads(list, d.key) {
			k.wanted[d.layer] = true
		}
	}
}

// line takes in one line of a layer.
func (k *keeper) line(l *archive.Line) {
	if e, is := l.Event.(*schemas.KernelEvent); is && k.processes {
		k.process(e)
	}
	if !k.wanted[l.Member] || !k.room(len(l.Bytes)+1) {
		return
	}
	k.lines[l.Member] = append(append(k.lines[l.Member], l.Bytes...), ',')
}

// process notes what a line says of its process.
func (k *keeper) process(e *schemas.KernelEvent) {
	if k.count[e.PID] == 0 {
		if !k.room(32) {
			return
		}
		k.order = append(k.order, e.PID)
	}
	k.count[e.PID]++
	if schemas.SetOf(e.EventType) != schemas.SetProcessExecs {
		return
	}
	if program := string(e.Value); !slices.Contains(k.execs[e.PID], program) && k.room(len(program)) {
		k.execs[e.PID] = append(k.execs[e.PID], program)
	}
}

func (k *keeper) room(n int) bool {
	if k.size += n; k.size > maxAssertLayers {
		k.cut, k.lines, k.execs = true, map[string][]byte{}, map[uint32][]string{}
	}
	return !k.cut
}

// layer are the lines of a layer as one array.
func (k *keeper) layer(member string) document {
	if k.cut {
		return document{fault: fmt.Sprintf("the layers have more than the %d MiB that assertions can see", maxAssertLayers>>20)}
	}
	return document{value: fmt.Appendf(nil, "[%s]", bytes.TrimSuffix(k.lines[member], []byte{','}))}
}

// process is one process of the kernel lines.
type process struct {
	PID    uint32   `json:"pid"`
	Execs  []string `json:"execs"`
	Events uint64   `json:"events"`
}

func (k *keeper) tree() document {
	list := []process{}
	for _, pid := range k.order {
		list = append(list, process{pid, append([]string{}, k.execs[pid]...), k.count[pid]})
	}
	if d := k.layer(""); d.fault != "" {
		return d
	}
	return shown(list)
}

func shown(v any) document {
	b, err := schemas.Marshal(v)
	if err != nil {
		return document{fault: err.Error()}
	}
	return document{value: b}
}

// runDocument is what the archive says of the run as a whole.
type runDocument struct {
	RunID    string   `json:"run_id"`
	Identity string   `json:"identity"`
	Origin   string   `json:"origin"`
	Platform string   `json:"platform"`
	Command  []string `json:"command"`
	EnvKeys  []string `json:"env_keys"`
	Shim     string   `json:"agent_shim"`
	ExitCode *int     `json:"exit_code"`
	Signal   *int     `json:"signal"`
	Success  bool     `json:"success"`
}

func (v *verifier) runDocument() document {
	s, r := v.events.started, v.res.Record
	if s == nil || r == nil {
		return document{fault: bundle.EventsName + " could not be read"}
	}
	d := runDocument{RunID: v.res.RunID, Identity: v.res.Identity, Origin: r.Origin, Platform: r.Platform, Command: s.Command,
		EnvKeys: s.EnvKeys, Shim: s.AgentShim, Success: r.Success}
	d.ExitCode, d.Signal = r.ExitCode, r.Signal
	return shown(d)
}

// assertInput are the documents that assertions see.
func (v *verifier) assertInput() documents {
	input := documents{}
	for _, k := range assertKeys {
		switch {
		case k.layer != "":
			input[k.key] = v.kept.layer(k.layer)
		case k.member != "":
			input[k.key] = v.wholeDocument(k.member)
		}
	}
	input["processes"], input["run"] = v.kept.tree(), v.runDocument()
	return input
}

func (v *verifier) wholeDocument(member string) document {
	b, ok := v.whole[member]
	if !ok && member == bundle.SurfaceName && v.members[member].Size >= archive.MaxWholeSurface {
		return document{fault: "the surface is too large for assertions"}
	}
	if member == bundle.ReportName && v.report != nil {
		var err error
		b, err = schemas.Marshal(v.report)
		ok = err == nil
	}
	if len(b) > maxAssertReport {
		return document{fault: member + " is too large for assertions"}
	}
	if !ok || !json.Valid(b) {
		return document{fault: member + " could not be read"}
	}
	return document{value: b}
}

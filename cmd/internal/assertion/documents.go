package assertion

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of what programs see, in bytes.
const (
	MaxReport  = 4 << 20
	maxLayers  = 24 << 20 // of all lines together
	maxEffects = 8 << 20  // of all distinct values together
)

// Document is one key of what programs see, or why it cannot be shown.
type Document struct {
	value json.RawMessage
	fault string
	lacks string // what is not in it, for the message of a program that fails on it
}

// Documents are what programs see, by their key.
type Documents map[string]Document

// Keys of the documents that are made here.
const (
	keyCounts    = "counts"
	keyEffects   = "effects"
	keyFiltered  = "filtered"
	keyProcesses = "processes"
	keyRun       = "run"
)

// keys are the keys, and which member or layer each is, or the type of what is made here.
var keys = []struct {
	key, member, layer string
	made               reflect.Type
}{
	{key: keyCounts, made: reflect.TypeFor[countsShown]()},
	{key: keyEffects, made: reflect.TypeFor[map[string][]string]()},
	{key: keyFiltered, made: reflect.TypeFor[map[string][]string]()},
	{key: "health", member: bundle.HealthName},
	{key: "kernel", layer: bundle.KernelName},
	{key: "manifest", member: bundle.ManifestName},
	{key: "policy", layer: bundle.PolicyName},
	{key: keyProcesses, made: reflect.TypeFor[[]processShown]()},
	{key: "report", member: bundle.ReportName},
	{key: keyRun, made: reflect.TypeFor[run]()},
	{key: "sdk", layer: bundle.SDKName},
	{key: "surface", member: bundle.SurfaceName},
}

// Keys are all keys of the documents.
func Keys() []string {
	var list []string
	for _, k := range keys {
		list = append(list, k.key)
	}
	return list
}

// shape is what programs see, from the same definitions as what is shown to them: the JSON Schemas of the
// contract, and the types of what is made here.
var shape = sync.OnceValue(func() *jq.Shape {
	all := map[string]*jq.Shape{}
	for _, k := range keys {
		form, _ := schemas.MemberOf(cmp.Or(k.member, k.layer))
		switch {
		case k.layer != "":
			all[k.key] = jq.List(jq.OfForm(form))
		case k.member != "":
			all[k.key] = jq.OfForm(form)
		default:
			all[k.key] = jq.OfType(k.made)
		}
	}
	all[keyEffects].Keys = jq.Flat(schemas.EffectVerbNames()).Keys // each verb is there
	all[keyCounts].Keys["lines"].Keys = jq.Flat(lineMembers()).Keys
	return jq.Object(all)
})

// Collector keeps of an archive what programs see. It is a part of a visitor.
type Collector struct {
	reads   map[string]bool
	whole   map[string][]byte // documents as they are
	report  *schemas.Report
	started *schemas.RunStarted

	lines     kept
	processes processes
	effects   effects
	filtered  effects
	counts    counts
}

// Collect keeps what the programs read.
func Collect(list []*Assertion) *Collector {
	c := &Collector{reads: map[string]bool{}, whole: map[string][]byte{}}
	for _, k := range keys {
		for _, a := range list {
			c.reads[k.key] = c.reads[k.key] || a.Reads(k.key)
		}
	}
	c.lines.wanted, c.lines.text = map[string]bool{}, map[string][]byte{}
	for _, k := range keys {
		if k.layer != "" && c.reads[k.key] {
			c.lines.wanted[k.layer] = true
		}
	}
	c.processes.init()
	c.effects.init()
	c.filtered.init()
	c.counts.init()
	return c
}

// any reports whether a program reads anything.
func (c *Collector) any() bool {
	for _, reads := range c.reads {
		if reads {
			return true
		}
	}
	return false
}

// Document takes in a document.
func (c *Collector) Document(d archive.Document) {
	if !c.any() {
		return
	}
	c.whole[d.Member] = d.Bytes
	if r, is := d.Value.(*schemas.Report); is {
		c.report = r
	}
}

// Line takes in one line.
func (c *Collector) Line(l *archive.Line) {
	switch e := l.Event.(type) {
	case *schemas.KernelEvent:
		if c.reads[keyProcesses] {
			c.processes.take(e)
		}
		if c.reads[keyEffects] {
			c.effects.kernel(e)
		}
		if c.reads[keyCounts] {
			c.counts.kernel(e)
		}
	case *schemas.RunStarted:
		c.started = e
	case *schemas.FilteredEvent:
		if c.reads[keyFiltered] {
			c.filtered.add(e.Rule, []byte(e.Value))
		}
	}
	if c.reads[keyCounts] {
		c.counts.lines[l.Member]++
	}
	c.lines.take(l)
}

// kept are the lines that programs read.
type kept struct {
	wanted map[string]bool // members
	text   map[string][]byte
	size   int
	cut    bool
}

func (k *kept) take(l *archive.Line) {
	if !k.wanted[l.Member] || k.cut {
		return
	}
	if k.size += len(l.Bytes) + 1; k.size > maxLayers {
		k.cut, k.text = true, map[string][]byte{}
		return
	}
	k.text[l.Member] = append(append(k.text[l.Member], l.Bytes...), ',')
}

// document are the lines of a layer as one array.
func (k *kept) document(member string) Document {
	if k.cut {
		return tooMuch()
	}
	return Document{value: fmt.Appendf(nil, "[%s]", bytes.TrimSuffix(k.text[member], []byte{','}))}
}

func tooMuch() Document {
	return Document{fault: fmt.Sprintf("the layers have more than the %d MiB that assertions can see", maxLayers>>20)}
}

func shown(v any) Document {
	b, err := schemas.Marshal(v)
	if err != nil {
		return Document{fault: err.Error()}
	}
	return Document{value: b}
}

// run is what the archive says of the run as a whole.
type run struct {
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

func (c *Collector) run(v *verdict.Report) Document {
	s, r := c.started, v.Record
	if s == nil || r == nil {
		return Document{fault: bundle.EventsName + " could not be read"}
	}
	d := run{RunID: v.RunID, Identity: v.Identity, Origin: r.Origin, Platform: r.Platform, Command: s.Command,
		EnvKeys: s.EnvKeys, Shim: s.AgentShim, Success: r.Success}
	d.ExitCode, d.Signal = r.ExitCode, r.Signal
	return shown(d)
}

// Documents are what programs see of an archive, of which runner-verify reports so.
func (c *Collector) Documents(v *verdict.Report) Documents {
	input := Documents{}
	for _, k := range keys {
		switch {
		case k.layer != "":
			input[k.key] = c.lines.document(k.layer)
		case k.member != "":
			input[k.key] = c.document(k.member)
		}
	}
	input[keyProcesses], input[keyRun], input[keyCounts] = c.processes.document(), c.run(v), c.counts.document()
	input[keyEffects], input[keyFiltered] = c.effects.document(schemas.EffectVerbNames()), c.filtered.document(nil)
	return input
}

func (c *Collector) document(member string) Document {
	b, ok := c.whole[member]
	if member == bundle.SurfaceName && !ok {
		return Document{fault: "the surface is too large for assertions"}
	}
	if member == bundle.ReportName && c.report != nil {
		var err error
		b, err = schemas.Marshal(c.report)
		ok = err == nil
	}
	if len(b) > MaxReport {
		return Document{fault: member + " is too large for assertions"}
	}
	if !ok || !json.Valid(b) {
		return Document{fault: member + " could not be read"}
	}
	return Document{value: b}
}

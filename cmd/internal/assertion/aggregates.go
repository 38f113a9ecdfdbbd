package assertion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// processes keeps what the lines say of each process.
type processes struct {
	size  int
	cut   bool
	order []uint32
	execs map[uint32][]string
	count map[uint32]uint64
}

func (p *processes) init() {
	p.order, p.execs, p.count = nil, map[uint32][]string{}, map[uint32]uint64{}
}

func (p *processes) room(n int) bool {
	if p.size += n; p.size > maxLayers && !p.cut {
		p.cut = true
		p.init()
	}
	return !p.cut
}

// take notes what a line says of its process.
func (p *processes) take(e *schemas.KernelEvent) {
	if p.count[e.PID] == 0 {
		if !p.room(32) {
			return
		}
		p.order = append(p.order, e.PID)
	}
	p.count[e.PID]++
	if schemas.SetOf(e.EventType) != schemas.SetProcessExecs {
		return
	}
	if program := string(e.Value); !slices.Contains(p.execs[e.PID], program) && p.room(len(program)) {
		p.execs[e.PID] = append(p.execs[e.PID], program)
	}
}

// processShown is what programs see of a process.
type processShown struct {
	PID    uint32   `json:"pid"`
	Execs  []string `json:"execs"`
	Events uint64   `json:"events"`
}

func (p *processes) document() Document {
	if p.cut {
		return tooMuch()
	}
	list := []processShown{}
	for _, pid := range p.order {
		list = append(list, processShown{pid, append([]string{}, p.execs[pid]...), p.count[pid]})
	}
	return shown(list)
}

// effects are distinct values, by a verb or a rule.
type effects struct {
	size   map[string]int // bytes of the values of each name
	sum    int
	values map[string]map[string]struct{} // nil: the name has too many
}

func (s *effects) init() { s.size, s.values = map[string]int{}, map[string]map[string]struct{}{} }

// kernel adds what a line shows as done or refused.
func (s *effects) kernel(e *schemas.KernelEvent) {
	if !schemas.IsEffect(e) && !schemas.Refused(e.EventType) || len(e.Value) == 0 || e.Has&schemas.KernelHasConnectResult != 0 && e.ConnectResult < 0 {
		return
	}
	s.add(schemas.EffectVerb(e), e.Value)
}

// add adds a value. Without room for it the name that has most gives all of its values up.
func (s *effects) add(name string, value []byte) {
	of, known := s.values[name]
	if !known {
		of = map[string]struct{}{}
		s.values[name] = of
	}
	if _, there := of[string(value)]; there || of == nil {
		return
	}
	of[string(value)] = struct{}{}
	s.size[name] += len(value) + 16
	for s.sum += len(value) + 16; s.sum > maxEffects; {
		most := name
		for _, other := range slices.Sorted(maps.Keys(s.size)) {
			if s.size[other] > s.size[most] {
				most = other
			}
		}
		s.sum -= s.size[most]
		delete(s.size, most)
		s.values[most] = nil
	}
}

// document has each name with its values, sorted, and the given names in any case. A name with too many
// values is false, on which nearly every operation fails.
func (s *effects) document(names []string) Document {
	out := map[string]any{}
	for _, name := range names {
		out[name] = []string{}
	}
	var cut []string
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if values := s.values[name]; values == nil {
			out[name], cut = false, append(cut, name)
		} else {
			out[name] = slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(values))))
		}
	}
	d := shown(out)
	if len(cut) > 0 {
		d.lacks = fmt.Sprintf("the record has more distinct names than the %d MiB that can be seen of them, so that these are false: %s", maxEffects>>20, strings.Join(cut, " "))
	}
	return d
}

// counts are the numbers of lines.
type counts struct {
	lines    map[string]uint64 // by member
	types    map[uint32]uint64 // kernel lines by event type
	statuses map[string]uint64 // kernel lines by status
}

func (c *counts) init() {
	c.lines, c.types, c.statuses = map[string]uint64{}, map[uint32]uint64{}, map[string]uint64{}
}

func (c *counts) kernel(e *schemas.KernelEvent) {
	c.types[e.EventType]++
	if e.Status != "" {
		c.statuses[e.Status]++
	}
}

// countsShown are the numbers that programs see.
type countsShown struct {
	Lines    map[string]uint64 `json:"lines"`
	Kinds    map[string]uint64 `json:"kinds"`
	Statuses map[string]uint64 `json:"statuses"`
	Refused  uint64            `json:"refused"`
}

// lineMembers are the members that have lines.
func lineMembers() []string {
	var list []string
	for _, f := range schemas.Members() {
		if f.Lines {
			list = append(list, f.Member)
		}
	}
	return list
}

func (c *counts) document() Document {
	members, kinds := map[string]uint64{}, map[string]uint64{}
	for _, member := range lineMembers() {
		members[member] = c.lines[member]
	}
	for t, n := range c.types {
		kinds[schemas.KindOf(t)] += n
	}
	return shown(countsShown{members, kinds, c.statuses, c.types[schemas.EventConnectBlocked] + c.types[schemas.EventFileBlocked]})
}

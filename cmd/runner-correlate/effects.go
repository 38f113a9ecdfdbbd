package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// effectSet is the effects of one binding: the first ones in the stream, as far as the
// bounds allow.
type effectSet struct {
	list  []string
	bytes int
	cut   bool
}

// add adds an effect and returns by how many bytes the set grew.
func (s *effectSet) add(text []byte) int {
	if s.cut {
		return 0
	}
	for _, have := range s.list {
		if have == string(text) {
			return 0
		}
	}
	if len(s.list) == schemas.MaxEffects || s.bytes+len(text) > schemas.MaxEffectBytes {
		s.cut = true
		return 0
	}
	s.list = append(s.list, string(text))
	s.bytes += len(text)
	return len(text) + effectCost
}

// effectCost is what a text costs in memory on top of its bytes.
const effectCost = 32

func (s *effectSet) size() int { return s.bytes + len(s.list)*effectCost }

// budget bounds the memory for the effects of all bindings. Effects beyond the first
// MaxEffectsTotal bytes are not written, so they are not kept either.
type budget struct {
	order []*decision
	held  int
}

// grew records that the effects of a binding grew by n bytes.
func (b *budget) grew(n int) {
	if b.held += n; b.held <= 4*schemas.MaxEffectsTotal {
		return
	}
	b.trim()
}

// trim drops the effects that will not be written.
func (b *budget) trim() {
	b.held = 0
	sum := 0
	for _, d := range b.order {
		sum += d.effects.bytes
		if sum > schemas.MaxEffectsTotal {
			d.effects = effectSet{cut: d.effects.cut || len(d.effects.list) > 0}
		}
		b.held += d.effects.size()
	}
}

// take sorts the effects of a set and puts them into a binding.
func (s *effectSet) take(b *schemas.Binding) {
	slices.Sort(s.list)
	b.KernelEffects, b.EffectsCut = s.list, s.cut
}

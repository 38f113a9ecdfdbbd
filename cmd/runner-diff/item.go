package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/schemas"
)

// key is what an item is. Its texts are printable only after verdict.Printable.
type key struct {
	kind  uint8 // index in schemas.CapabilityKinds
	value string
	how   string
}

// item is one thing that a run did.
type item struct {
	key
	in    uint32 // in how many of the runs of its side
	of    uint32 // of a lock file: how many runs these were
	last  uint32 // the last run that had it
	line  uint32 // of the lock file
	count uint64
	more  uint64  // operations of others
	who   []tally // sorted, the first ones
}

// actor is who did something.
type actor struct {
	Executable string // "" is a process before its first exec
	ToolCall   string
}

// tally is how often an actor did it.
type tally struct {
	*actor
	Count uint64
}

// maxWho of an item are kept: the first ones in their order, so that the order of operations does not matter.
const maxWho = 4

func (k *key) name() string { return schemas.CapabilityKinds[k.kind].Name }

// insideWorkspace is what the value of an item in the folder of the fold workspace begins with.
const insideWorkspace = "<" + fold.Workspace + ">"

// group is the group of an item that was added.
func (k *key) group() string {
	g := schemas.CapabilityKinds[k.kind].Group
	if g == schemas.GroupOutside && (k.value == insideWorkspace || strings.HasPrefix(k.value, insideWorkspace+"/")) {
		return schemas.GroupWrite
	}
	return g
}

// fingerprint is the same for the same item in another comparison.
func (k *key) fingerprint() string { return string(k.appendFingerprint(nil)) }

func (k *key) appendFingerprint(dst []byte) []byte {
	var room [256]byte
	b := append(append(append(room[:0], k.name()...), 0), k.value...)
	sum := sha256.Sum256(append(append(b, 0), k.how...))
	return hex.AppendEncode(dst, sum[:16])
}

func compareKeys(a, b *key) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.value, b.value), strings.Compare(a.how, b.how))
}

func compareTallies(a, b tally) int {
	if a.actor == b.actor {
		return 0
	}
	return cmp.Or(strings.Compare(a.Executable, b.Executable), strings.Compare(a.ToolCall, b.ToolCall))
}

// by counts operations of one actor.
func (i *item) by(w tally) {
	at, found := slices.BinarySearchFunc(i.who, w, compareTallies)
	switch {
	case found:
		i.who[at].Count += w.Count
	case at == maxWho:
		i.more += w.Count
	default:
		if len(i.who) == maxWho {
			i.more += i.who[maxWho-1].Count
			i.who = i.who[:maxWho-1]
		}
		i.who = slices.Insert(i.who, at, w)
	}
}

// kindOf is the index of a kind; false if there is none of this name.
func kindOf(name string) (uint8, bool) {
	i := slices.IndexFunc(schemas.CapabilityKinds[:], func(k schemas.CapabilityKind) bool { return k.Name == name })
	return uint8(max(i, 0)), i >= 0
}

// mustKind is kindOf for the names of this program.
func mustKind(name string) uint8 {
	k, ok := kindOf(name)
	if !ok {
		panic("runner-diff: no kind " + name)
	}
	return k
}

//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestDropWhere: what is asked for is deleted and nothing else, also where the first walks have no room for entries of one hash:
// a single entry of these is as large as what a walk reads at first.
func TestDropWhere(t *testing.T) {
	type large [tableBytes]byte
	const entries = 64
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: tableBytes, MaxEntries: entries, Flags: 1 /* BPF_F_NO_PREALLOC */})
	if err != nil {
		testkit.Missing(t, "a hash table", err)
	}
	defer m.Close()
	for key := range uint64(entries) {
		testkit.Must(t, m.Put(key, &large{0: byte(key)}))
	}
	odd := func(key uint64, v *large) bool {
		if v[0] != byte(key) {
			t.Errorf("entry %d has the value of %d", key, v[0])
		}
		return key%2 == 1
	}
	if !dropWhere(m, odd) {
		t.Error("the table was not walked to its end")
	}
	for key := range uint64(entries) {
		var v large
		if err := m.Lookup(key, &v); (err == nil) != (key%2 == 0) {
			t.Errorf("entry %d: %v", key, err)
		}
	}
	if !dropWhere(m, func(uint64, *large) bool { return true }) || m.Iterate().Next(new(uint64), new(large)) {
		t.Error("something is left")
	}
	if !dropWhere(m, odd) {
		t.Error("an empty table has an end")
	}
}

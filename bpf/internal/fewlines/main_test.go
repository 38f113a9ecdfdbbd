package main

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The committed objects have one line for each function, and to take lines out once more changes nothing.
func TestObjects(t *testing.T) {
	objects, err := filepath.Glob("../objects/*_bpfel.o")
	testkit.Must(t, err)
	if len(objects) == 0 {
		t.Fatal("there are no objects")
	}
	for _, path := range objects {
		raw := testkit.Read(t, path)
		_, infos, err := btf.LoadSpecAndExtInfosFromReader(bytes.NewReader(raw))
		testkit.Must(t, err)
		for section, funcs := range infos.Funcs {
			if lines := infos.Lines[section]; len(lines) != len(funcs) {
				t.Errorf("%s: %s has %d lines for %d functions", path, section, len(lines), len(funcs))
			}
		}
		f, err := elf.NewFile(bytes.NewReader(raw))
		testkit.Must(t, err)
		data, err := f.Section(".BTF.ext").Data()
		testkit.Must(t, err)
		again := bytes.Clone(data)
		testkit.Must(t, fewLines(again))
		if !bytes.Equal(again, data) {
			t.Errorf("%s: there are lines to take out", path)
		}
	}
}

func FuzzFewLines(f *testing.F) {
	f.Add([]byte{0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := len(data)
		if err := fewLines(data); err == nil && len(data) != n {
			t.Error("the section has another length")
		}
	})
}

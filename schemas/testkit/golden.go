package testkit

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files from what comes out now")

// Update reports whether the golden files are to be rewritten.
func Update() bool { return *update }

// Golden compares got with the content of a file. With -update it rewrites the file.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	GoldenBut(t, path, got, func(b []byte) []byte { return b })
}

// GoldenBut is Golden for content in which a part may differ: same removes this part.
func GoldenBut(t testing.TB, path string, got []byte, same func([]byte) []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err == nil && bytes.Equal(same(got), same(want)) {
		return
	}
	if Update() {
		Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		Write(t, path, got)
		return
	}
	if err != nil {
		t.Errorf("%v (-update writes it)", err)
		return
	}
	t.Errorf("%s differs (-update rewrites it)", path)
	FirstDifference(t, path, got, want)
}

// FirstDifference shows the first line in which two texts differ.
func FirstDifference(t testing.TB, name string, got, want []byte) {
	t.Helper()
	x, y := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			t.Errorf("%s line %d:\n%s\n%s", name, i+1, Clip(string(x[i])), Clip(string(y[i])))
			return
		}
	}
	if len(x) != len(y) {
		t.Errorf("%s has %d lines, expected %d", name, len(x), len(y))
	}
}

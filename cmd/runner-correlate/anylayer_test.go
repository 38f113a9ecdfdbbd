package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/layertest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestAnyLayer: a row of the layer table is all that this stage needs of a layer whose
// lines say nothing about the others.
func TestAnyLayer(t *testing.T) {
	layertest.Add(t)
	lines := layertest.Line(testRun, 0, "a") + "\n" + layertest.Line(testRun, 1, "b") + "\n"
	path := filepath.Join(t.TempDir(), "log")
	testkit.Must(t, os.WriteFile(path, []byte(lines+"{}\n"), 0o666))
	code, out, msg := call(world{kernel: agent}.stream(t), "--"+layertest.Name, path)
	if code != 0 {
		t.Fatal(msg)
	}
	if text := string(out); !strings.Contains(text, lines) || !strings.Contains(text, "sensor: "+layertest.Counter+"=2") ||
		!strings.Contains(text, `"`+layertest.Counter+`":2`) {
		t.Error(text)
	}
}

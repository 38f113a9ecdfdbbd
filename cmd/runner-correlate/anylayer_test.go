package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/layertest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestAnyLayer: a row of the layer table is all that this stage needs of a layer whose
// lines are not compared with other layers. A fault of its log shows as a code.
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
		!strings.Contains(text, `"`+layertest.Counter+`":2`) || !strings.Contains(text, `"code":"`+layertest.Name+`_log_invalid:3:bad_field"`) {
		t.Error(text)
	}
	for text, want := range map[string]string{"": "_log_empty", lines + strings.Repeat("x", schemas.MaxLogLine+1): "_log_flooded"} {
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o666))
		if _, out, _ := call(world{kernel: agent}.stream(t), "--"+layertest.Name, path); !strings.Contains(string(out), `"code":"`+layertest.Name+want+`"`) {
			t.Errorf("no %s%s in %s", layertest.Name, want, out)
		}
	}
}

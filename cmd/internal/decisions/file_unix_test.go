//go:build unix

package decisions

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestLogInTheMiddleOfALine: a log that another proxy writes at this moment is no broken one.
func TestLogInTheMiddleOfALine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	testkit.Must(t, os.WriteFile(file, []byte(`{"type":"assay.tool.decision"}`+"\n{"), 0o600))
	if _, err := Open(file, 0); !errors.Is(err, errIncomplete) {
		t.Errorf("a broken one: %v", err)
	}
	other, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	testkit.Must(t, err)
	defer other.Close()
	defer time.AfterFunc(20*time.Millisecond, func() { other.WriteString("}\n") }).Stop()
	l, err := Open(file, 0)
	testkit.Must(t, err)
	l.Close()
}

// TestOtherFiles: a file that is no decision log is never appended to.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for text, ok := range map[string]bool{
		"schema: runner.policy.v0\ndefault: deny\n": false, "# Title\n": false, "x": false, "{}\n": false, "[]\n": false, "null\n": false,
		"{\n  \"name\": \"x\"\n}\n": false, `{"schema":"runner.stream_header.v0"}` + "\n": false, `{"type":"other"}` + "\n": false,
		"": true, "\n": true, `{"type":"runner.policy.session_started"}` + "\n": true, "\n" + `{"type":"assay.tool.decision"}` + "\n{}\n": true,
	} {
		file := filepath.Join(dir, "log")
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
		l, err := Open(file, 0)
		if err == nil {
			l.Close()
		}
		if ok != (err == nil) || err != nil && !errors.Is(err, errOther) || string(testkit.Read(t, file)) != text {
			t.Errorf("%q: %v", text, err)
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		testkit.Must(t, err)
		if _, err := Open("", int(f.Fd())); ok != (err == nil) {
			t.Errorf("%q as a descriptor: %v", text, err)
		}
		f.Close()
	}
}

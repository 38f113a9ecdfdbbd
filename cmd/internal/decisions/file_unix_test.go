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
	testkit.Must(t, os.WriteFile(file, []byte("{}\n{"), 0o600))
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

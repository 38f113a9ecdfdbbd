package tool

import (
	"io"
	"os"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The reader sees the end while the process still runs, and what comes later goes nowhere.
func TestWritten(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	defer r.Close()
	defer w.Close()
	e := &Env{Stdout: w}
	_, err = w.WriteString("all\n")
	testkit.Must(t, err)
	testkit.Must(t, e.Written())
	_, err = w.WriteString("more\n")
	testkit.Must(t, err)
	got, err := io.ReadAll(r)
	testkit.Must(t, err)
	if string(got) != "all\n" {
		t.Errorf("%q was read", got)
	}
}

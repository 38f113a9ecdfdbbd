//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestAcceptance runs every script that says of itself what it accepts, or that three
// runs are the same, on the real kernel.
func TestAcceptance(t *testing.T) {
	requireBPF(t)
	scripts, err := filepath.Glob("../scripts/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte("\n#   exit 0 accepted")) && !bytes.Contains(b, []byte("\n#   exit 0 same")) {
			continue
		}
		t.Run(filepath.Base(s), func(t *testing.T) {
			t.Parallel()
			script(t, "sh", s)
		})
	}
}

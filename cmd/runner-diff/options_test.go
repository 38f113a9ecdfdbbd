package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// TestStandardInputTwice: standard input is one archive; the second time it would be an empty one.
func TestStandardInputTwice(t *testing.T) {
	for _, args := range [][]string{{"-", "-"}, {"--base", "-", "-"}, {"--exact", "-", "-"}, {"--write-lock", t.TempDir() + "/lock", "-", "-"}} {
		var out, errs bytes.Buffer
		code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, args)
		if code != tool.ExitUsage || !strings.Contains(errs.String(), "- is named 2 times") || out.Len() > 0 {
			t.Errorf("%q: exit %d: %s", args, code, &errs)
		}
	}
}

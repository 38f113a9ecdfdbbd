package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// A wrong call says so on standard error, writes nothing else and exits with 2.
func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--cgroup"}, {"operand"}, {"--cgroup", "x", "--ring-size", "5"}, {"--cgroup", "x", "--run-id", "a/b"},
		{"--cgroup", "x", "--redundant", "perhaps"}, {"--cgroup", "x", "--grace", "-1s"}, {"--nonsense"},
		{"--cgroup", "x", "--cgroup", "y"},
	} {
		var out, errs bytes.Buffer
		if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, args); code != tool.ExitUsage || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

func TestParseRing(t *testing.T) {
	for in, want := range map[string]int{"4096": 4096, "4K": 4096, "16M": 16 << 20, "16m": 16 << 20, "1G": 1 << 30} {
		if got, err := parseRing(in); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "-1", "2K", "5000", "3M", "2G", "16MB", "x", "M", "99999999999999999999", "9223372036854775807G"} {
		if n, err := parseRing(in); err == nil {
			t.Errorf("%q was taken for %d", in, n)
		}
	}
}

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

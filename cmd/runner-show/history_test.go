package main

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/runner-evidence/runner/schemas"
)

// TestStarted: arguments are printable words that look like nothing else, whatever they are.
func TestStarted(t *testing.T) {
	for want, s := range map[string]*schemas.ProcessState{
		"/bin/ls":                             {File: "/bin/ls"},
		"/bin/busybox as ls":                  {File: "/bin/busybox", Arguments: &schemas.Arguments{Name: "ls", Count: 2}},
		"/bin/cat /a 'b c' ''":                {File: "/bin/cat", Arguments: &schemas.Arguments{Name: "cat", Argv: []string{"cat", "/a", "b c", ""}}},
		"/job started by /bin/sh /job":        {File: "/bin/dash", Script: "/job", Arguments: &schemas.Arguments{Name: "sh", Argv: []string{"/bin/sh", "/job"}}},
		`/bin/x '(root /)' '→' 'a\x27 \x20b'`: {File: "/bin/x", Arguments: &schemas.Arguments{Name: "x", Argv: []string{"x", "(root /)", "→", "a'  b"}}},
		"'/bin/x (user 0)'":                   {File: "/bin/x (user 0)"},
		"'?'":                                 {},
	} {
		if got := started(s); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	hostile := []string{"x", "\x1b[2J", "\u202egnp.exe", "a\nb", "  /etc/shadow", "\u2800", strings.Repeat("long ", 1000)}
	for i, raw := range hostile {
		hostile[i] = schemas.Text(raw)
	}
	line := started(&schemas.ProcessState{File: hostile[2], Arguments: &schemas.Arguments{Name: hostile[1], Argv: hostile}})
	if slices.Contains(strings.Split(line, "  "), "/etc/shadow") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == '\u2800' }) || columns(line) > maxShownItem+1 {
		t.Errorf("%q", line)
	}
}

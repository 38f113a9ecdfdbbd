package cmd_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// openTerminal opens a terminal: the side of the person who types, and the other one.
func openTerminal(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testkit.Missing(t, "terminals", err)
	}
	t.Cleanup(func() { person.Close() })
	testkit.Must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { terminal.Close() })
	return person, terminal
}

// A tool that would wait for what a person types says so, or refuses it.
func TestTerminalAsInput(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, "schema: runner.policy.v0\ndefault: deny\n")
	good := packed(t, "kernel-only", filepath.Join(dir, "good.tar.gz"))
	for _, tool := range []string{"runner-verify", "runner-show", "runner-lint", "runner-otel", "runner-diff", "runner-normalize", "runner-correlate", "runner-pack"} {
		_, terminal := openTerminal(t)
		c := command(t, tool)
		switch tool {
		case "runner-pack":
			c = command(t, tool, "--output", filepath.Join(dir, "x.tar.gz"))
		case "runner-otel":
			c = command(t, tool, "--traces", filepath.Join(dir, "x.jsonl"))
		case "runner-diff":
			c = command(t, tool, "-", good)
		}
		c.Stdin = terminal
		if o := call(t, c); o.code != 2 || !strings.Contains(o.stderr, "standard input is a terminal") || !strings.Contains(o.stderr, "hint: ") {
			t.Errorf("%s: %v", tool, o)
		}
	}
	person, terminal := openTerminal(t)
	c := command(t, "runner-policy", "--policy", policy, "--log", filepath.Join(dir, "log.ndjson"), "--", "cat")
	c.Stdin = terminal
	says, err := c.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	first, err := bufio.NewReader(says).ReadString('\n')
	if err != nil || !strings.Contains(first, "waiting for an MCP client's messages on standard input, which is a terminal; ^D ends") {
		t.Errorf("%q, %v", first, err)
	}
	_, err = person.Write([]byte{4}) // ^D
	testkit.Must(t, err)
	if err := c.Wait(); err != nil {
		t.Errorf("after ^D: %v", err)
	}
	for _, quiet := range []string{"-q", "<pipe>"} { // nobody has to be told
		c := command(t, "runner-policy", "--policy", policy, "--log", filepath.Join(dir, "log.ndjson"), "--", "cat")
		if quiet == "-q" {
			person, terminal := openTerminal(t)
			c.Args = append([]string{c.Args[0], quiet}, c.Args[1:]...)
			c.Stdin = terminal
			_, err := person.Write([]byte{4})
			testkit.Must(t, err)
		}
		if o := call(t, c); o.code != 0 || strings.Contains(o.stderr, "waiting") {
			t.Errorf("%s: %v", quiet, o)
		}
	}
	if testkit.Exists(filepath.Join(dir, "x.tar.gz")) {
		t.Error("an archive of nothing was made")
	}
}

// TestTerminalProgress: runner-soak says on a terminal how far it is, and takes the line away. -q and a
// pipe get nothing.
func TestTerminalProgress(t *testing.T) {
	archive := packed(t, "kernel-only", filepath.Join(t.TempDir(), "run.tar.gz"))
	for _, quiet := range []bool{false, true} {
		person, terminal := openTerminal(t)
		args := []string{"--target", archive, archive}
		if quiet {
			args = append([]string{"-q"}, args...)
		}
		c := command(t, "runner-soak", args...)
		c.Stderr = terminal
		if o := call(t, c); !strings.Contains(o.stdout, "2 runs: 2 passed") {
			t.Error(o)
		}
		_, err := terminal.WriteString("the end")
		testkit.Must(t, err)
		var seen strings.Builder
		for b := make([]byte, 4096); !strings.Contains(seen.String(), "the end"); {
			n, err := person.Read(b)
			testkit.Must(t, err)
			seen.Write(b[:n])
		}
		if text := seen.String(); quiet != (text == "the end") || !quiet && (!strings.Contains(text, "1 of 2 runs: 1 passed, 0 failed, about ") || !strings.HasSuffix(text, "\r\x1b[Kthe end")) {
			t.Errorf("quiet %t: %q", quiet, text)
		}
	}
}

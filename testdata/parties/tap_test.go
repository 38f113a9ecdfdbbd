package parties

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
)

// tap copies what two parties send to each other, byte for byte: FILE.in is from the
// client, FILE.out from the server.
func tap(file string, argv []string) error {
	in, err := os.Create(file + ".in")
	if err != nil {
		return err
	}
	out, err := os.Create(file + ".out")
	if err != nil {
		return err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		io.Copy(io.MultiWriter(in, stdin), os.Stdin)
		stdin.Close()
	}()
	if _, err := io.Copy(io.MultiWriter(out, os.Stdout), stdout); err != nil {
		return err
	}
	return c.Wait()
}

// tapped is a command that runs below tap.
func tapped(file string, argv ...string) []string {
	return append([]string{os.Args[0], "tap", file}, argv...)
}

func heard(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// without returns the lines of a that b lacks, in order. All lines of b must be in a, in
// the same order.
func without(t *testing.T, a, b []byte) (left []string) {
	t.Helper()
	rest := bytes.SplitAfter(b, []byte("\n"))
	for line := range bytes.Lines(a) {
		if bytes.Equal(line, rest[0]) {
			rest = rest[1:]
		} else {
			left = append(left, string(line))
		}
	}
	if len(rest) > 1 || len(rest[0]) > 0 {
		t.Errorf("not in the other, or in another order: %q", rest)
	}
	return left
}

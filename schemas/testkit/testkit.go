// Package testkit has the helpers that the tests of several packages share: ending a test
// on an error, golden files, calling a tool in process, and the message of a skip. No
// shipped program links it. It uses only the standard library, so that every package of
// the module can be tested with it.
package testkit

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Read is the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	Must(t, err)
	return b
}

// Write makes or replaces a file.
func Write(t testing.TB, path string, b []byte) {
	t.Helper()
	Must(t, os.WriteFile(path, b, 0o644))
}

// Names are the names in a directory, sorted.
func Names(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	Must(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// Exists reports whether a file of this name exists; a dangling symlink counts.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Await waits until cond holds, at most ten seconds.
func Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen within ten seconds", what)
		}
	}
}

// Clip shortens what a message shows.
func Clip(s string) string {
	const most = 4000
	if len(s) > most {
		return s[:most/2] + "\n…\n" + s[len(s)-most/2:]
	}
	return s
}

// Tool is a command that runs in process: tool.App is one.
type Tool interface {
	Call(ctx context.Context, in io.Reader, out, errw io.Writer, args []string) int
}

// Call runs a tool in process with in as its standard input.
func Call(tool Tool, in []byte, args ...string) (code int, stdout, stderr string) {
	var out, errw bytes.Buffer
	code = tool.Call(context.Background(), bytes.NewReader(in), &out, &errw, args)
	return code, out.String(), errw.String()
}

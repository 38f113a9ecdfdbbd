package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/schemas/stream"
)

const usage = `
usage: runner-test [flags] [FILE]

  --name X    a {{template}} is not one
	a tab	stays
`

// call runs a small app in process.
func call(run func(context.Context, *Env) error, args ...string) (code int, stdout, stderr string) {
	a := App{Name: "runner-test", Usage: usage, Run: run, Flags: []cli.Flag{
		&cli.StringFlag{Name: "name", Aliases: []string{"n"}},
		&cli.IntFlag{Name: "size"},
		&cli.BoolFlag{Name: "v"},
		&cli.StringSliceFlag{Name: "drop"},
	}}
	var out, errw bytes.Buffer
	code = a.Call(context.Background(), strings.NewReader("input"), &out, &errw, args)
	return code, out.String(), errw.String()
}

func nothing(context.Context, *Env) error { return nil }

// Standard output is a pipe to the next stage: a message there would damage the stream.
func TestUsageErrorsStayOffStdout(t *testing.T) {
	never := func(context.Context, *Env) error { t.Error("ran in spite of a usage error"); return nil }
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"--colour"}, "there is no flag --colour"},
		{[]string{"--size", "many"}, `--size "many": expected a whole number`},
		{[]string{"--size"}, "flag --size needs a value"},
		{[]string{"--name", "a", "--name", "b"}, "flag --name is given twice"},
		{[]string{"--name=a", "-n", "b"}, "flag --name is given twice"},
		{[]string{"-v", "-v"}, "flag --v is given twice"},
		{[]string{"--name=--name", "--name", "x"}, "flag --name is given twice"},
	} {
		code, out, errw := call(never, c.args...)
		if code != ExitUsage || out != "" || !strings.HasPrefix(errw, "runner-test: error: "+c.say) ||
			!strings.HasSuffix(errw, "runner-test: hint: runner-test --help\n") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", c.args, code, out, errw)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, arg := range []string{"--help", "-h"} {
		code, out, errw := call(nothing, arg)
		if code != 0 || out != usage[1:] || errw != "" {
			t.Errorf("%s: exit %d, stderr %q, stdout\n%s\nwant\n%s", arg, code, errw, out, usage[1:])
		}
	}
	code, out, errw := call(nothing, "--version")
	if want := "runner-test version " + Version() + "\n"; code != 0 || out != want || errw != "" {
		t.Errorf("--version: exit %d, stdout %q, stderr %q", code, out, errw)
	}
	if code, out, errw := call(nothing); code != 0 || out+errw != "" {
		t.Errorf("without arguments: exit %d, %q, %q", code, out, errw)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("it is full") }

// What cannot be printed is an error, also if the library prints it.
func TestHelpNotWritten(t *testing.T) {
	for _, arg := range []string{"--help", "-h", "--version"} {
		var errw bytes.Buffer
		a := App{Name: "runner-test", Usage: usage, Run: nothing}
		code := a.Call(context.Background(), strings.NewReader(""), full{}, &errw, []string{arg})
		if want := "runner-test: error: cannot write standard output: it is full\n"; code != ExitIO || errw.String() != want {
			t.Errorf("%s: exit %d, stderr %q", arg, code, errw.String())
		}
	}
}

// -v means verbose here; the library would print the version.
func TestVerbose(t *testing.T) {
	say := func(_ context.Context, env *Env) error {
		env.Infof("seen %d", 1)
		env.Warnf("odd: %s", "x")
		env.Sayf("done")
		return nil
	}
	const loud = "runner-test: warning: odd: x\nrunner-test: done\n"
	if _, out, errw := call(say); out != "" || errw != loud {
		t.Errorf("stdout %q, stderr %q", out, errw)
	}
	if _, out, errw := call(say, "-v"); out != "" || errw != "runner-test: seen 1\n"+loud {
		t.Errorf("stdout %q, stderr %q", out, errw)
	}
	(&Env{Stderr: io.Discard}).Infof("without flags")
}

// Operands reach the program as they are, whatever they look like.
func TestOperands(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{nil, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"--", "help", "me"}, []string{"help", "me"}},
		{[]string{"help"}, []string{"help"}},
		{[]string{"h"}, []string{"h"}},
		{[]string{"--", "--name", "x", "--name", "y"}, []string{"--name", "x", "--name", "y"}},
		{[]string{"-"}, []string{"-"}},
		{[]string{"--", "--"}, []string{"--"}},
		{[]string{"a", "--", "--name", "--"}, []string{"a", "--name", "--"}},
		{[]string{""}, []string{""}},
	} {
		var got []string
		code, out, errw := call(func(_ context.Context, env *Env) error { got = env.Args; return nil }, c.args...)
		if code != 0 || out+errw != "" || !slices.Equal(got, c.want) {
			t.Errorf("%q: exit %d, %q %q, operands %q", c.args, code, out, errw, got)
		}
	}
}

// A list flag may be repeated, and its values may contain commas.
func TestListFlags(t *testing.T) {
	var got []string
	code, _, errw := call(func(_ context.Context, env *Env) error { got = env.Flag.StringSlice("drop"); return nil },
		"--drop", "/a,b", "--name", "x", "--drop=c", "--drop=--drop")
	if want := []string{"/a,b", "c", "--drop"}; code != 0 || !slices.Equal(got, want) {
		t.Errorf("exit %d, %q, got %q, want %q", code, errw, got, want)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		stderr string
	}{
		{errors.New("broken"), ExitIO, "runner-test: error: broken\n"},
		{Fail(ExitCannot, errors.New("no BTF"), "use --no-kernel", "or another kernel"), ExitCannot,
			"runner-test: error: no BTF\nrunner-test: hint: use --no-kernel\nrunner-test: hint: or another kernel\n"},
		{fmt.Errorf("outer: %w", Failf(ExitInput, "inner")), ExitInput, "runner-test: error: outer: inner\n"},
		{Usagef("no %s", "file"), ExitUsage, "runner-test: error: no file\nrunner-test: hint: runner-test --help\n"},
		{Status(ExitNo), ExitNo, ""},
		{Status(ExitUsage), ExitUsage, ""},
		// The library would exit the process here, without the deferred calls.
		{cli.Exit("left", 9), ExitIO, "runner-test: error: left\n"},
	} {
		deferred := false
		code, out, errw := call(func(context.Context, *Env) error {
			defer func() { deferred = true }()
			return c.err
		})
		if code != c.code || out != "" || errw != c.stderr || !deferred {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.err, code, out, errw)
		}
	}
}

// TestExitCodesOfWrappers: a tool that runs a command ends with 125 for whatever is its own failure, said by itself or not, and
// with the command's code otherwise. Its words that run no command have the usual codes.
func TestExitCodesOfWrappers(t *testing.T) {
	for _, c := range []struct {
		err           error
		wraps, filter int
	}{
		{Said(ExitInput), ExitOwn, ExitInput},
		{fmt.Errorf("outer: %w", Said(ExitInput)), ExitOwn, ExitInput},
		{Usagef("x"), ExitOwn, ExitUsage},
		{Status(ExitInput), ExitInput, ExitInput}, // the command's
		{Failf(ExitNotFound, "x"), ExitNotFound, ExitNotFound},
		{nil, ExitOK, ExitOK},
	} {
		app := App{Name: "runner-test", Words: []string{"run", "show"}, Wraps: true, Filters: []string{"show"}, Run: func(context.Context, *Env) error { return c.err }}
		for word, want := range map[string]int{"run": c.wraps, "show": c.filter} {
			if code := app.Call(t.Context(), strings.NewReader(""), io.Discard, io.Discard, []string{word}); code != want {
				t.Errorf("%s: %v: exit %d, expected %d", word, c.err, code, want)
			}
		}
	}
}

func TestStreamError(t *testing.T) {
	for err, code := range map[error]int{
		stream.ErrRead: ExitIO, stream.ErrTruncated: ExitInput, stream.ErrForm: ExitInput, stream.ErrDigest: ExitInput,
		stream.ErrNotStream: ExitInput, stream.ErrCount: ExitInput, stream.ErrMixedRun: ExitInput, stream.ErrTrailing: ExitInput,
	} {
		wrapped := StreamError(fmt.Errorf("in:1: %w: cause", err))
		if got, e := codeOf(wrapped); got != code || !errors.Is(wrapped, err) || (len(e.Hints) > 0) != (err == stream.ErrTruncated) {
			t.Errorf("%v: code %d, hints %q", err, got, e.Hints)
		}
	}
	if StreamError(nil) != nil || StreamError(io.EOF) != nil {
		t.Error("the clean end of a stream is an error")
	}
}

// Why the tools check required flags themselves: the library prints the help to
// standard output, whatever OnUsageError says. When this test fails, the rule
// may go.
func TestRequiredFlagsPolluteStdout(t *testing.T) {
	a := App{Name: "runner-test", Usage: usage, Run: nothing, Flags: []cli.Flag{&cli.StringFlag{Name: "name", Required: true}}}
	var out bytes.Buffer
	if code := a.Call(context.Background(), nil, &out, io.Discard, nil); code == 0 || out.Len() == 0 {
		t.Errorf("exit %d, stdout %q: the library's fault is gone", code, out.String())
	}
}

// TestNearMisses: a misspelt flag is refused with the one that was meant, and a value that is another flag
// with the way to write it if it is meant.
func TestNearMisses(t *testing.T) {
	for _, c := range []struct {
		args []string
		hint string
	}{
		{[]string{"--nmae", "x"}, "did you mean --name? All flags: runner-test --help"}, {[]string{"--Size=1"}, "did you mean --size?"},
		{[]string{"--verison"}, "did you mean --version?"}, {[]string{"-z"}, "runner-test --help"},
		{[]string{"--name", "-v"}, "if it is the value: --name=-v"}, {[]string{"-n", "--size"}, "if it is the value: -n=--size"},
	} {
		code, out, errw := call(nothing, c.args...)
		if code != ExitUsage || out != "" || !strings.Contains(errw, "hint: "+c.hint) || strings.Count(errw, "\n") != 2 {
			t.Errorf("%q: exit %d, %q", c.args, code, errw)
		}
	}
	for _, args := range [][]string{{"--name", "-"}, {"--name", "-1"}, {"--name=-v"}, {"--", "-x"}, {"x", "--", "-x"}} {
		if code, _, errw := call(nothing, args...); code != 0 {
			t.Errorf("%q: exit %d, %q", args, code, errw)
		}
	}
}

// A name in a message does nothing to a terminal, and cannot begin a line that looks like a message of a tool.
func TestMessagesAreInert(t *testing.T) {
	const hostile = "a\x1b[31m\u202eb\nrunner-test: valid"
	for what, run := range map[string]func(context.Context, *Env) error{
		"reading": func(context.Context, *Env) error { _, err := ReadFile(hostile, 1); return err },
		"input":   func(_ context.Context, env *Env) error { _, _, err := OpenInput(env); return err },
		"writing": func(context.Context, *Env) error { return CannotWrite(hostile, io.ErrShortWrite) },
	} {
		_, _, errw := call(run, hostile)
		if want := `a\x1b[31m\u202eb\nrunner-test: valid: `; !strings.Contains(errw, want) || strings.Count(errw, "\n") != 1 {
			t.Errorf("%s: %q", what, errw)
		}
	}
	_, _, errw := call(func(_ context.Context, env *Env) error {
		env.Warnf("%s", hostile)
		return Fail(ExitNo, errors.New("one  \x1b\n  two"), hostile)
	})
	if want := "runner-test: warning: a\\x1b[31m\\u202eb\nrunner-test: valid\nrunner-test: error: one  \\x1b\n  two\nrunner-test: hint: a\\x1b[31m\\u202eb\nrunner-test: valid\n"; errw != want {
		t.Errorf("%q, expected %q", errw, want)
	}
}

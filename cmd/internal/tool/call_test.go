package tool

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// callWith runs a small app, of which each call has said how many operands stand before a command.
func callWith(words []string, program func(*Call) int, args []string) (code int, got, stderr string) {
	a := App{Name: "t", Usage: "the help", Words: words, Program: program, Run: func(_ context.Context, env *Env) error {
		if got = fmt.Sprintf("%s o=%s v=%t d=%q %q", env.Command, env.Flag.String("o"), env.Flag.Bool("v"), env.Flag.StringSlice("drop"), env.Args); slices.Contains(env.Args, "wrong") {
			return Missing("that", "t --help")
		}
		return nil
	}, Flags: []cli.Flag{&cli.StringFlag{Name: "o", Aliases: []string{"output"}}, &cli.BoolFlag{Name: "v"}, &cli.StringSliceFlag{Name: "drop"}}}
	var out, errw bytes.Buffer
	code = a.Call(context.Background(), strings.NewReader(""), &out, &errw, args)
	return code, got + out.String(), errw.String()
}

// TestOneRule: flags stand before, between and after operands, up to -- or the command. From there on no word is the tool's.
func TestOneRule(t *testing.T) {
	files := func(*Call) int { return NoProgram }
	after := func(c *Call) int { return 1 }
	asked := func(c *Call) int {
		if c.Has("v") {
			return NoProgram
		}
		return 0
	}
	words := func(c *Call) int { return map[string]int{"list": NoProgram, "run": 0, "again": 1}[c.Word] }
	for _, c := range []struct {
		program    func(*Call) int
		args, want string
	}{
		{nil, "a -o x", ` o=x v=false d=[] ["a"]`},
		{files, "a -o x b -v c", ` o=x v=true d=[] ["a" "b" "c"]`},
		{files, "--drop 1 a --drop=2 b --drop 3", ` o= v=false d=["1" "2" "3"] ["a" "b"]`},
		{files, "a - -v", ` o= v=true d=[] ["a" "-"]`},
		{files, "a -v -- -o x", ` o= v=true d=[] ["a" "-o" "x"]`},
		{files, "a --help", "the help"},
		{files, "a -o - b", ` o=- v=false d=[] ["a" "b"]`},
		{Runs, "-v make -o x -- --help", ` o= v=true d=[] ["make" "-o" "x" "--" "--help"]`},
		{Runs, "-v -- make -o x -- --help", ` o= v=true d=[] ["make" "-o" "x" "--" "--help"]`},
		{Runs, "-- -v make", ` o= v=false d=[] ["-v" "make"]`},
		{Runs, "-- -- make", ` o= v=false d=[] ["--" "make"]`},
		{Runs, "- -v", ` o= v=false d=[] ["-" "-v"]`},
		{after, "-v in -o x -- make -o y --help", ` o=x v=true d=[] ["in" "--" "make" "-o" "y" "--help"]`},
		{after, "in -o x make -o y --help", ` o=x v=false d=[] ["in" "--" "make" "-o" "y" "--help"]`},
		{after, "-- make -o y", ` o= v=false d=[] ["make" "-o" "y"]`},
		{after, "in -v", ` o= v=true d=[] ["in"]`},
		{asked, "-v a -o x", ` o=x v=true d=[] ["a"]`},
		{asked, "a -o x -v", ` o= v=false d=[] ["a" "-o" "x" "-v"]`},
		{words, "-o x list a -v", `list o=x v=true d=[] ["a"]`},
		{words, "-o x run -v list -o y", `run o=x v=true d=[] ["list" "-o" "y"]`},
		{words, "again -v in -o x -- run -v", `again o=x v=true d=[] ["in" "--" "run" "-v"]`},
		{words, "run list", `run o= v=false d=[] ["list"]`},
		{words, "--help", "the help"},
	} {
		var names []string
		if reflect.ValueOf(c.program).Pointer() == reflect.ValueOf(words).Pointer() {
			names = []string{"list", "run", "again"}
		}
		if code, got, errw := callWith(names, c.program, strings.Fields(c.args)); code != 0 || got != c.want || errw != "" {
			t.Errorf("%s: exit %d, %q, %s\nexpected %s", c.args, code, errw, got, c.want)
		}
	}
}

// What is wrong after an operand is said as it is before one, and nothing runs.
func TestWrongAfterAnOperand(t *testing.T) {
	for _, c := range []struct {
		words      []string
		program    func(*Call) int
		args, want string
	}{
		{nil, nil, "a --drpo x", "there is no flag --drpo\nt: hint: did you mean --drop?"},
		{nil, nil, "a -o", "flag -o needs a value\n"},
		{nil, nil, "a -o -v b", `flag -o needs a value, and "-v" looks like another flag`},
		{nil, nil, "a -o -- b", `flag -o needs a value, and "--" looks like another flag`},
		{nil, nil, "-o x a --output y", "flag --o is given twice\n"},
		{nil, nil, "a b -z", "there is no flag -z\n"},
		{[]string{"list", "run"}, Runs, "-v", "t is to do what? expected one of list, run, not nothing"},
		{[]string{"list", "run"}, Runs, "-v rnu", "not \"rnu\"\nt: hint: t run\n"},
		{[]string{"list", "run"}, Runs, "-- run", "not nothing"},
		{[]string{"list", "run"}, Runs, "-o x run", ""},
	} {
		code, got, errw := callWith(c.words, c.program, strings.Fields(c.args))
		if c.want != "" && (code != ExitUsage || got != "" || !strings.Contains(errw, c.want)) || c.want == "" && code != 0 {
			t.Errorf("%s: exit %d, %q, %q", c.args, code, got, errw)
		}
	}
}

// TestAstray: a wrong call of which a flag stands after the command is shown with the flag where it is the tool's.
func TestAstray(t *testing.T) {
	for _, c := range []struct {
		words      []string
		program    func(*Call) int
		args, want string
	}{
		{nil, Runs, "make wrong --output x -j 2", "--output comes after make, so that it goes to that command; for t itself: t --output x -- make wrong -j 2"},
		{nil, Runs, "--drop 1 wrong --drop=a;b --drop", "--drop comes after wrong, so that it goes to that command; for t itself: t --drop 1 '--drop=a;b' --drop -- wrong"},
		{[]string{"run"}, Runs, "run -v wrong --output x", "for t itself: t run -v --output x -- wrong"},
		{nil, func(*Call) int { return 1 }, "in wrong --output x", "for t itself: t --output x in -- wrong"},
		// These say nothing: the place of the command is clear, the flag is there already, or it is nothing to the tool.
		{nil, Runs, "-- wrong --output x", ""},
		{nil, Runs, "-o x wrong --output y", ""},
		{nil, Runs, "wrong --help --version --color -v", ""},
		{nil, Runs, "wrong --output " + strings.Repeat("x", mostAstray), ""},
		{nil, nil, "wrong --output x", ""},
	} {
		code, _, errw := callWith(c.words, c.program, strings.Fields(c.args))
		if code != ExitUsage || !strings.HasPrefix(errw, "t: error: that is missing\nt: hint: ") || !strings.Contains(errw, c.want) || strings.Contains(errw, "comes after") != (c.want != "") {
			t.Errorf("%.80s: exit %d, %q", c.args, code, errw)
		}
	}
}

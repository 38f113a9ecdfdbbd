// Package tool is the frame of every command: flags, messages, exit codes, and
// opening inputs. A tool is one function over readers and writers, so tests run
// it in process.
package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// App describes one command. Usage is the whole help text, written by hand.
type App struct {
	Name  string
	Usage string
	Words []string // what the tool can do, if it does several things: one of them is the first argument
	Flags []cli.Flag
	Build []string // what --version says beside version and commit
	// A tool that wraps a command leaves all exit codes but 125 to 127 to the command.
	Wraps   bool
	Filters []string // Words of such a tool that run no command
	Run     func(ctx context.Context, env *Env) error
	// Program is how many operands stand before the command that a call runs; NoProgram, as without the function, if it runs none.
	Program func(c *Call) int
}

// Env is what a running tool gets from outside.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Args           []string // operands
	Flag           *Flags
	Name           string
	Command        string // the one of App.Words that was given
}

// Warnf prints one warning line for people.
func (e *Env) Warnf(format string, a ...any) { e.say("warning: ", format, a...) }

// Infof prints one line for people, with -v only.
func (e *Env) Infof(format string, a ...any) {
	if e.Flag != nil && e.Flag.Bool("v") {
		e.say("", format, a...)
	}
}

// Sayf prints one line for people, unless -q is given.
func (e *Env) Sayf(format string, a ...any) {
	if e.Flag == nil || !e.Flag.Bool("q") {
		e.say("", format, a...)
	}
}

func (e *Env) say(kind, format string, a ...any) {
	fmt.Fprintf(e.Stderr, "%s: %s%s\n", e.Name, kind, inert(fmt.Sprintf(format, a...)))
}

// inert is a message in which no name does something to a terminal. Its lines and blanks stay.
func inert(message string) string {
	lines := strings.Split(message, "\n")
	for i := range lines {
		words := strings.Split(lines[i], " ")
		for j := range words {
			words[j] = verdict.Printable(words[j], len(words[j]))
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

// Version is the module version that the Go toolchain stamped, or devel.
func Version() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" {
		return bi.Main.Version
	}
	return "(devel)"
}

// commit is the commit that make build built, or "".
var commit string

// build is what --version prints: the module's version, the commit, and what the tool adds.
func (a App) build() string {
	parts := []string{Version()}
	if bi, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if commit != "" {
		parts = append(parts, "commit "+commit)
	}
	return strings.Join(append(parts, a.Build...), ", ")
}

// Main runs the app over the process's own streams and exits.
func Main(a App) {
	os.Exit(a.Call(context.Background(), os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

var setGlobals = sync.OnceFunc(func() {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}
	// The usage text is not a template: it is printed as it is written.
	cli.HelpPrinter = func(w io.Writer, text string, _ any) { io.WriteString(w, text) }
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print this help", DisableDefaultText: true}
})

// Call runs the app in process and returns its exit code.
func (a App) Call(ctx context.Context, in io.Reader, out, errw io.Writer, args []string) int {
	setGlobals()
	env := &Env{Stdin: in, Stdout: out, Stderr: errw, Name: a.Name}
	err := a.call(ctx, env, args)
	if err == nil {
		return ExitOK
	}
	code, e := codeOf(err)
	if e == nil || e.Err != nil {
		fmt.Fprintf(errw, "%s: error: %s\n", a.Name, inert(err.Error()))
	}
	if e != nil {
		for _, h := range e.Hints {
			fmt.Fprintf(errw, "%s: hint: %s\n", a.Name, inert(h))
		}
		// A status without an error comes from another program, which has printed the reason.
		if code == ExitUsage && e.Err != nil && len(e.Hints) == 0 {
			fmt.Fprintf(errw, "%s: hint: %s --help\n", a.Name, a.Name)
		}
	}
	if a.Wraps && !slices.Contains(a.Filters, env.Command) && code < ExitOwn && (e == nil || e.Err != nil || e.said) {
		return ExitOwn
	}
	return code
}

func (a App) call(ctx context.Context, env *Env, args []string) (err error) {
	printed := &Willing{W: env.Stdout} // the library forgets the errors of what it prints: the help and the version
	app := &cli.App{
		Name: a.Name, HelpName: a.Name, Version: a.build(), Flags: a.Flags,
		Reader: env.Stdin, Writer: printed, ErrWriter: env.Stderr,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return usageError(a.Flags, err)
		},
		CustomAppHelpTemplate: strings.TrimLeft(a.Usage, "\n"),
		Action: func(c *cli.Context) error {
			env.Flag, env.Args = NewFlags(c), c.Args().Slice()
			return a.Run(ctx, env)
		},
	}
	c, err := a.read(args)
	env.Command = c.Word
	if err != nil {
		return err
	}
	err = c.astray(app.RunContext(ctx, slices.Concat([]string{a.Name}, c.flags, c.operands)))
	if err == nil && printed.Err != nil {
		return CannotWrite("standard output", printed.Err)
	}
	return err
}

// badValue is what the library says of a value that a flag does not take.
var badValue = regexp.MustCompile(`^invalid value (".*") for flag -([^:]+): `)

// usageError says what a flag takes: the library only says "parse error".
func usageError(flags []cli.Flag, err error) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return Usagef("%v", err)
	}
	value, _ := strconv.Unquote(m[1])
	for _, f := range flags {
		if !slices.Contains(f.Names(), m[2]) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return Fail(ExitUsage, fmt.Errorf("--%s %q: expected a duration", m[2], value), "write a duration with its unit: --"+m[2]+" 500ms, 5s, 2m")
		case *cli.IntFlag, *cli.Int64Flag:
			return BadValue(m[2], value, "a whole number")
		case *cli.UintFlag, *cli.Uint64Flag:
			return BadValue(m[2], value, "a whole number from 0")
		case *cli.BoolFlag:
			return BadValue(m[2], value, "true or false, or no value")
		}
	}
	return Usagef("%v", err)
}

// StreamError turns an error of a stream reader into the right exit code: 5 when
// the reading itself failed, 3 when the input is not a whole stream.
func StreamError(err error) error {
	if err == nil || err == io.EOF {
		return nil
	}
	if errors.Is(err, stream.ErrRead) {
		return Fail(ExitIO, err)
	}
	if errors.Is(err, stream.ErrTruncated) {
		return Fail(ExitInput, err, "the previous stage did not finish; its own message says why")
	}
	return Fail(ExitInput, err)
}

package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
)

// NoProgram is what App.Program returns for a call that runs no command.
const NoProgram = -1

// Runs is the App.Program of a tool that always runs a command, and takes no operand before it.
func Runs(*Call) int { return 0 }

// Call are the arguments of a call, taken apart by the one rule of all tools: flags may stand before, between and after
// operands, up to -- or the command that the tool runs. From there on, no word is the tool's.
type Call struct {
	Word string // the one of App.Words

	app      App
	table    flagTable
	given    map[string]bool // flags, by the first of their names
	flags    []string        // with their values
	operands []string        // after a --, so that the library takes none for a flag; one more is before a command that has operands before it
	program  []string        // the command, if no -- says where it begins
}

// Has reports whether a flag stands before the place that is being read.
func (c *Call) Has(flag string) bool { return c.given[flag] }

// read takes the arguments of a call apart. It refuses what the library would take without a word, or refuse with one that
// does not help: a scalar flag given twice (it keeps the last), an unknown flag, and a value that is another flag.
func (a App) read(args []string) (*Call, error) {
	c := &Call{app: a, table: tableOf(a.Flags), given: map[string]bool{}}
	var operands []string
	for i := 0; i < len(args); i++ {
		s := args[i]
		if s == "--" {
			if len(operands) > 0 && c.before() > 0 {
				operands = append(operands, s)
			}
			operands = append(operands, args[i+1:]...)
			break
		}
		if strings.HasPrefix(s, "-") && s != "-" {
			n, err := c.flag(args[i:])
			if err != nil {
				return c, err
			}
			i += n
			continue
		}
		if len(a.Words) > 0 && c.Word == "" {
			if !slices.Contains(a.Words, s) {
				return c, a.noWord(fmt.Sprintf("%q", s), nearest.Word(s, a.Words))
			}
			c.Word = s
			continue
		}
		if n := c.before(); n >= 0 && len(operands) >= n {
			if c.program = args[i:]; n > 0 {
				operands = append(operands, "--")
			}
			operands = append(operands, c.program...)
			break
		}
		operands = append(operands, s)
	}
	// Flags without a word ask about the tool.
	if len(a.Words) > 0 && c.Word == "" && !c.given["help"] && !c.given["version"] && !c.given["probe"] {
		return c, a.noWord("nothing", "")
	}
	if len(operands) > 0 && !c.given["help"] { // the library looks for help about them
		c.operands = append([]string{"--"}, operands...)
	}
	return c, nil
}

// before is App.Program at the place that is being read.
func (c *Call) before() int {
	if c.app.Program == nil {
		return NoProgram
	}
	return c.app.Program(c)
}

// flag takes the flag with which args begin, and returns how many words after it are its value.
func (c *Call) flag(args []string) (int, error) {
	s := args[0]
	name, _, hasValue := strings.Cut(strings.TrimLeft(s, "-"), "=")
	first, known := c.table.canon[name]
	if !known {
		return 0, c.table.unknown(c.app.Name, name)
	}
	if c.given[first] && !c.table.list[first] {
		return 0, Usagef("flag --%s is given twice", first)
	}
	c.given[first] = true
	c.flags = append(c.flags, s)
	if !c.table.takes[name] || hasValue {
		return 0, nil
	}
	if len(args) == 1 {
		return 0, Usagef("flag %s needs a value", dashes(name))
	}
	v := args[1]
	if len(v) > 1 && v[0] == '-' && !strings.ContainsAny(v[1:2], "0123456789.") {
		err := fmt.Errorf("flag %s needs a value, and %q looks like another flag", dashes(name), v)
		if v == "--" {
			return 0, Fail(ExitUsage, err, c.app.Name+" --help")
		}
		return 0, Fail(ExitUsage, err, fmt.Sprintf("if it is the value: %s=%s, or in quotes if it has several words: %s='%s …'", dashes(name), v, dashes(name), v))
	}
	c.flags = append(c.flags, v)
	return 1, nil
}

// noWord is the error of a call that does not say what to do.
func (a App) noWord(given, near string) error {
	return Fail(ExitUsage, fmt.Errorf("%s is to do what? expected one of %s, not %s", a.Name, strings.Join(a.Words, ", "), given), a.Name+" "+cmp.Or(near, a.Words[0]))
}

// mostAstray is the longest call that a hint writes out, in bytes.
const mostAstray = 1000

// astray adds to the error of a call that lacks something where it may be: a flag of this tool that stands after the command
// is the command's. The hint is the call in which it is the tool's.
func (c *Call) astray(err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.missing || len(c.program) == 0 {
		return err
	}
	var moved, rest []string
	var flag string
	for i := 1; i < len(c.program); i++ {
		s := c.program[i]
		name, _, hasValue := strings.Cut(strings.TrimLeft(s, "-"), "=")
		first, known := c.table.canon[name]
		if !strings.HasPrefix(s, "--") || !known || first == "help" || first == "version" || c.given[first] && !c.table.list[first] {
			rest = append(rest, s)
			continue
		}
		flag = cmp.Or(flag, "--"+name)
		moved = append(moved, s)
		if c.table.takes[name] && !hasValue && i+1 < len(c.program) {
			i++
			moved = append(moved, c.program[i])
		}
	}
	before := c.operands[:len(c.operands)-len(c.program)] // what is not the command
	if len(before) > 1 {
		before = before[1:] // there is another -- before the command
	}
	call := slices.Concat([]string{c.app.Name}, c.flags, moved, before, c.program[:1], rest)
	if c.Word != "" {
		call = slices.Insert(call, 1, c.Word)
	}
	for i := range call {
		call[i] = ShellWord(call[i])
	}
	text := strings.Join(call, " ")
	if len(moved) == 0 || len(text) > mostAstray {
		return err
	}
	hint := fmt.Sprintf("%s comes after %s, so that it goes to that command; for %s itself: %s", flag, ShellWord(c.program[0]), c.app.Name, text)
	return Fail(e.Code, e.Err, append([]string{hint}, e.Hints...)...)
}

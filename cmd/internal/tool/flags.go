package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
)

// flagTable is what a tool's flags are, by every name that one has.
type flagTable struct {
	takes, list map[string]bool // it takes a value; it may be repeated
	canon       map[string]string
}

func tableOf(flags []cli.Flag) flagTable {
	t := flagTable{map[string]bool{}, map[string]bool{}, map[string]string{"help": "help", "h": "help", "version": "version"}}
	for _, f := range flags {
		d, ok := f.(cli.DocGenerationFlag)
		for _, n := range f.Names() {
			t.canon[n] = f.Names()[0]
			t.takes[n] = ok && d.TakesValue()
		}
		if s, ok := f.(cli.DocGenerationSliceFlag); ok && s.IsSliceFlag() {
			t.list[f.Names()[0]] = true
		}
	}
	return t
}

// dashes is a flag as a user writes it.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// checkFlags refuses what the library would take without a word, or refuse with one that does not help:
// a scalar flag given twice (it keeps the last), an unknown flag, and a value that is another flag.
func checkFlags(tool string, flags []cli.Flag, args []string) error {
	t := tableOf(flags)
	seen := map[string]bool{}
	for i := 0; i < len(args); i++ {
		s := args[i]
		if s == "--" || !strings.HasPrefix(s, "-") || s == "-" {
			return nil
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(s, "-"), "=")
		c, known := t.canon[name]
		if !known {
			return t.unknown(tool, name)
		}
		if seen[c] && !t.list[c] {
			return Usagef("flag --%s is given twice", c)
		}
		seen[c] = true
		if !t.takes[name] || hasValue {
			continue
		}
		if i++; i == len(args) {
			return Usagef("flag %s needs a value", dashes(name))
		}
		if v := args[i]; len(v) > 1 && v[0] == '-' && !strings.ContainsAny(v[1:2], "0123456789.") {
			err := fmt.Errorf("flag %s needs a value, and %q looks like another flag", dashes(name), v)
			if v == "--" {
				return Fail(ExitUsage, err, tool+" --help")
			}
			return Fail(ExitUsage, err, fmt.Sprintf("if it is the value: %s=%s, or in quotes if it has several words: %s='%s …'", dashes(name), v, dashes(name), v))
		}
	}
	return nil
}

// unknown is the error for a flag that a tool does not have.
func (t flagTable) unknown(tool, name string) error {
	var names []string
	for n := range t.canon {
		if len(n) > 1 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	err := fmt.Errorf("there is no flag %s", dashes(name))
	if near := nearest.Word(name, names); near != "" && len(name) > 1 {
		return Fail(ExitUsage, err, "did you mean --"+near+"? All flags: "+tool+" --help")
	}
	return Fail(ExitUsage, err, tool+" --help")
}

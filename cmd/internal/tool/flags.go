package tool

import (
	"fmt"
	"slices"

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

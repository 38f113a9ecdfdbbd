package tool

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// sorted puts the flags of a call before its operands: runner-replay run.tar.gz -o again.tar.gz. What follows -- is an operand.
func sorted(flags []cli.Flag, args []string) []string {
	var first, operands []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return slices.Concat(first, []string{"--"}, operands, args[i+1:])
		case a == "-" || !strings.HasPrefix(a, "-"):
			operands = append(operands, a)
		default:
			first = append(first, a)
			if name := strings.TrimLeft(a, "-"); takesValue(flags, name) && i+1 < len(args) {
				i++
				first = append(first, args[i])
			}
		}
	}
	return append(first, operands...)
}

// takesValue reports whether the next word is the value of a flag.
func takesValue(flags []cli.Flag, name string) bool {
	for _, f := range flags {
		if _, is := f.(*cli.BoolFlag); !is && slices.Contains(f.Names(), name) {
			return true
		}
	}
	return false
}

//go:build linux

// Attacks tries to get a false record: one that passes the gate and says what did not
// happen, or leaves out what did. The attacks are programs of this one; each runs in a
// measured run under the tools as they are, does something, and is judged against a witness
// that is not ours. One line of JSON is printed for each.
//
// All of it is Go, with raw system calls, and no C: who builds this repository has Go, git
// and make, and no C compiler.
//
//	attacks check BIN [--sure] [--rounds N] [NAME…]
//	                      runs the attacks as root with the tools in BIN. --sure leaves out those that
//	                      succeed by chance, which are tried N times otherwise
//	attacks differ BIN CALLS [SEED]
//	                      compares the record of random programs that make so many calls with what strace saw of them
//	attacks merge FILE    puts lines from stdin into a file of results
//	attacks marks BIN     runs ordinary programs with many threads, and prints how many lines of their records are in doubt
//	attacks list          prints the attacks
package main

import (
	"fmt"
	"os"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) >= 2 && args[0] == "check":
		os.Exit(check(args[1], args[2:]))
	case len(args) == 2 && args[0] == "merge":
		if err := merge(args[1], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "attacks: error:", err)
			os.Exit(1)
		}
	case len(args) >= 3 && args[0] == "differ":
		os.Exit(differ(args[1], args[2:]))
	case len(args) == 2 && args[0] == "marks":
		os.Exit(marks(args[1]))
	case len(args) == 1 && args[0] == "list":
		for _, a := range attacks() {
			fmt.Printf("%s\t%s\t%s\n", a.name, a.class, a.what)
		}
	case len(args) >= 2 && args[0] == "_all":
		driver(args[1], args[2:])
	case len(args) == 3 && args[0] == "_attack":
		measured(args[1], args[2])
	case len(args) >= 1 && helpers[args[0]] != nil:
		helpers[args[0]](args[1:])
	default:
		fmt.Fprintln(os.Stderr, "usage: attacks check BIN [--sure] [--rounds N] [NAME…] | differ BIN CALLS [SEED] | merge FILE | marks BIN | list")
		os.Exit(2)
	}
}

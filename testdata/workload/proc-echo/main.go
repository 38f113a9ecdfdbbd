// Command proc-echo writes its standard input to its standard output, while it reads it: the
// helper of the seed's suites for the process API.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "x07-proc-echo: io error:", err)
		os.Exit(1)
	}
}

// Listener accepts and closes connections on a loopback port of the kernel's
// choice, prints the address, and ends with its standard input. Fixtures start it
// outside the measured run.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "listener:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	io.Copy(io.Discard, os.Stdin)
}

// Listener is both ends of a connection on this machine. Without operands it
// accepts and closes connections on a free loopback port, prints the address, and
// ends when its standard input ends. Fixtures start it outside of the measured run.
// "listener dial ADDRESS" connects once.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "listener:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "dial" {
		c, err := net.Dial("tcp", args[1])
		if err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
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
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// server is the tool server's process. It shares our standard error.
type server struct {
	*child.Process
	in  *os.File // its standard input
	out *os.File // its standard output
}

// startServer starts the server's program with two pipes. It gets its own process group,
// so that the processes it starts can be ended with it. If the proxy is killed, the
// kernel kills the server too (Linux).
func startServer(o Options, environment []string) (*server, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, tool.Fail(tool.ExitOwn, err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		in.Close()
		return nil, tool.Fail(tool.ExitOwn, err)
	}
	child.WidenPipe(out)
	p, err := child.Start(child.Options{Name: o.Command[0], Program: o.Program, Args: o.Command,
		Env: environment, Files: []*os.File{childIn, childOut, os.Stderr}, OwnGroup: true, DieWithUs: true})
	childIn.Close()
	childOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, child.Refusal(err, nothingDone)
	}
	return &server{p, in, out}, nil
}

// nothingDone completes the error of a server that was not started.
const nothingDone = "nothing was run"

// serverEnvironment is our environment without the name of the log, which the server
// does not need.
func serverEnvironment() []string {
	return slices.DeleteFunc(child.Environ(), func(v string) bool { return strings.HasPrefix(v, logVariable+"=") })
}

// nameOf makes a server's name from its command.
func nameOf(command string) string {
	name := []byte(filepath.Base(command))
	for i, c := range name {
		if !nameByte(c) {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), maxServerName)])
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0
}

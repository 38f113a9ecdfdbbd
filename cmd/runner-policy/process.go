package main

import "os"

// ending is how the server ended.
type ending struct {
	code   int // exit status, valid if signal is 0
	signal int
}

// status is the exit code that stands for e.
func (e ending) status() int {
	if e.signal != 0 {
		return 128 + e.signal
	}
	return e.code
}

// server is the tool server's process. Its standard error is ours.
type server struct {
	process *os.Process
	in      *os.File         // its standard input
	out     *os.File         // its standard output
	state   *os.ProcessState // set when it was reaped
}

// startServer starts the program with two pipes.
func startServer(program string, argv, env []string) (*server, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		in.Close()
		return nil, err
	}
	widen(out)
	p, err := os.StartProcess(program, argv, &os.ProcAttr{
		Env: env, Files: []*os.File{childIn, childOut, os.Stderr}, Sys: apart(),
	})
	childIn.Close()
	childOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return &server{process: p, in: in, out: out}, nil
}

package jq

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Errors of a program that was ended.
var (
	ErrTime   = errors.New("it takes too long")
	ErrMemory = errors.New("it needs too much memory")
)

// Program is a program in a process of its own.
type Program struct {
	text string
	form Form
	uses *reading
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// Form is what is known of the input of a program, and what its process may take.
type Form struct {
	Shape  *Shape // of its one object; nil if it may have any keys
	Memory uint64 // bytes of the heap; 0 is 128 MiB
}

// NewProgram compiles a program. Its process starts with the first question.
func NewProgram(text string, form Form) (*Program, error) {
	c, err := compile(text, form.Shape)
	if err != nil {
		return nil, err
	}
	if form.Memory == 0 {
		form.Memory = defaultMemory
	}
	return &Program{text: text, form: form, uses: c.read}, nil
}

// Reads reports whether the program may read a key of its input.
func (p *Program) Reads(key string) bool { return p.uses == nil || p.uses.Key(key) }

// start starts the process.
func (p *Program) start() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = &exec.Cmd{Path: exe, Args: []string{workerName}, Env: []string{}}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return fmt.Errorf("starting a process for a jq program: %w", err)
	}
	return json.NewEncoder(p.in).Encode(question{Program: p.text, Form: p.form})
}

// Ask runs the program over one JSON value. The error is ErrTime, ErrMemory, that of the context or of
// the machine; what the program itself gets wrong is in the answer.
func (p *Program) Ask(ctx context.Context, input []byte, one bool, most time.Duration) (Answer, error) {
	var a Answer
	err := p.ask(ctx, question{Input: input, One: one}, most, &a)
	return a, err
}

// Show runs the program over one JSON value and returns its results as texts: the first so many, and how
// many there are. Its error is like that of Ask.
func (p *Program) Show(ctx context.Context, input []byte, results int, most time.Duration) (Shown, error) {
	var s Shown
	err := p.ask(ctx, question{Input: input, Show: results}, most, &s)
	return s, err
}

func (p *Program) ask(ctx context.Context, q question, most time.Duration, answer any) error {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, ErrTime)
	defer cancel()
	process := p.cmd.Process
	stop := context.AfterFunc(ctx, func() { process.Kill() })
	defer stop()
	var line []byte
	err := json.NewEncoder(p.in).Encode(q)
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = fmt.Errorf("%w: more than %d MiB", ErrMemory, p.form.Memory>>20)
	}
	p.Close()
	return err
}

// Close ends the process.
func (p *Program) Close() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.cmd = nil
}

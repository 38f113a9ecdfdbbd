// Command runner-proc runs processes by the process API: a request with its limits goes in,
// a result comes out, byte for byte as schemas/PROC.md says.
//
// A policy decides before anything is looked at: a request that is denied opens, lists and
// executes nothing, so that its result says nothing about what exists.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-proc runs processes by the process API, as a policy allows (schemas/PROC.md).

Usage:
  runner-proc run [flags] <request.bin >result.bin
  runner-proc serve [flags] <requests.ndjson >answers.ndjson
  runner-proc map --worker request.bin [flags] <items.bin >results.bin
  runner-proc encode <request.json >request.bin
  runner-proc decode [--as KIND] <request.bin|result.bin

run answers one request: with what the program did, or a code: 1 denied, 2 not valid, 3 not
started, 4 time is over, 5 too much output. serve answers lines of JSON, map gives jobs to
workers. No shell, no PATH, nothing inherited; descendants are killed.

Flags:
  --policy FILE   x07.os.process.policy@0.1.0 or x07.run-os-policy@0.1.0
  --world run-os  or run-os-sandboxed, which denies everything without a policy
  --err-width 9   bytes of a result that is a code; or 5, without its reserved word
  --fixtures DIR  a folder of recorded results
  --record        keep each result of run there; or --replay: answer from there, run nothing
  --log FILE|fd:N  a decision for each request (default that of the run, if there is one)
  --worker FILE   the request of map's workers; -n N: how many of them (default 1)
  --as KIND       what decode reads: frame, request, caps or result (default: what it is)
  -v              say why there is a code; -h, --help; --version

Exit codes: 0 a result was written, whatever it says   1 not recorded, or a worker failed
2 wrong call   3 not a frame, or a policy that is not valid   5 reading or writing failed

Examples:
  echo '{"argv":["/bin/echo","hi"],"caps":{"max_stdout_bytes":100}}' | runner-proc encode >r
  runner-proc run --policy policy.json <r | runner-proc decode
`

func main() {
	if proc.IsHelper() {
		proc.Help()
		return
	}
	tool.Main(app())
}

func app() tool.App {
	return tool.App{Name: "runner-proc", Usage: usage, Words: []string{"run", "serve", "map", "encode", "decode"}, Flags: []cli.Flag{
		&cli.StringFlag{Name: "policy"},
		&cli.StringFlag{Name: "world", Value: worldOpen},
		&cli.StringFlag{Name: "err-width", Value: "9"},
		&cli.StringFlag{Name: "fixtures"},
		&cli.BoolFlag{Name: "record"},
		&cli.BoolFlag{Name: "replay"},
		&cli.StringFlag{Name: "log"},
		&cli.StringFlag{Name: "worker"},
		&cli.IntFlag{Name: "n", Value: 1},
		&cli.StringFlag{Name: "as"},
		&cli.BoolFlag{Name: "v"},
	}, Run: run}
}

// Worlds.
const (
	worldOpen      = "run-os"
	worldSandboxed = "run-os-sandboxed"
)

func run(ctx context.Context, env *tool.Env) error {
	if err := env.NoOperands(); err != nil {
		return err
	}
	switch env.Command {
	case "encode":
		return encode(env)
	case "decode":
		return decode(env)
	case "serve":
		return serve(ctx, env)
	case "map":
		return mapJobs(env)
	}
	return runOne(env)
}

// parses is a parser of documents of one kind. Of its result only the error is asked.
type parses func(b []byte) error

func isFrame(b []byte) error {
	_, _, err := proc.ParseFrame(b)
	return err
}

// firstLook is how many bytes are looked at before the rest is read.
const firstLook = 64 << 10

// isForeign reports whether what begins so is refused, whatever follows.
func (p parses) isForeign(begins []byte) bool {
	err := p(begins)
	return err != nil && !proc.IsCut(err)
}

// read reads all of standard input; of what its parser refuses from the beginning on, an endless input or a large one that was named by
// mistake, only the beginning, of which the parser says the same.
func read(env *tool.Env, p parses) ([]byte, error) {
	if tool.IsTerminal(env.Stdin) {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("standard input is a terminal"), "runner-proc "+env.Command+" <FILE")
	}
	return readFrom(env.Stdin, "standard input", p)
}

func readFrom(in io.Reader, name string, p parses) ([]byte, error) {
	b, err := readAll(io.LimitReader(in, proc.MaxInput+1), sizeOf(in), p)
	switch {
	case err != nil:
		return nil, tool.CannotRead(name, err)
	case len(b) > proc.MaxInput:
		return nil, tool.Failf(tool.ExitInput, "%s has more than %d bytes", name, proc.MaxInput)
	}
	return b, nil
}

// sizeOf is how much a file has from here on, 0 if it is not known.
func sizeOf(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return min(max(st.Size()-at, 0), proc.MaxInput)
}

// readAll is io.ReadAll for a size that is known, about, and stops after the first look at what is foreign.
func readAll(r io.Reader, size int64, p parses) ([]byte, error) {
	room := make([]byte, 0, size+bytes.MinRead)
	proc.Huge(room)
	b := bytes.NewBuffer(room)
	n, err := b.ReadFrom(io.LimitReader(r, firstLook))
	if err == nil && n == firstLook && !p.isForeign(b.Bytes()) {
		_, err = b.ReadFrom(r)
	}
	return b.Bytes(), err
}

func write(env *tool.Env, b []byte) error {
	if _, err := env.Stdout.Write(b); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}

// options are those of run.
func options(env *tool.Env) (p *proc.Policy, width int, err error) {
	world, err := env.Word("world", worldOpen, worldSandboxed)
	if err != nil {
		return nil, 0, err
	}
	text, err := env.Word("err-width", "9", "5")
	if err != nil {
		return nil, 0, err
	}
	if width = proc.WideErr; text == "5" {
		width = proc.NarrowErr
	}
	if file := env.Flag.String("policy"); file != "" || env.Flag.IsSet("policy") {
		p, err = proc.OpenPolicy(file)
		return p, width, err
	}
	if world == worldSandboxed {
		p = proc.DenyAll()
	}
	return p, width, nil
}

// fixturesOf is the folder of recordings, "" for none.
func fixturesOf(env *tool.Env) (f proc.Fixtures, replay bool, err error) {
	f, replay = proc.Fixtures(env.Flag.String("fixtures")), env.Flag.Bool("replay")
	switch given := env.Flag.IsSet("fixtures"); {
	case replay && env.Flag.Bool("record"):
		return f, replay, tool.Usagef("--record and --replay exclude each other")
	case replay && env.Flag.IsSet("log"):
		return f, replay, tool.Usagef("--replay runs nothing, so that there is no decision for --log")
	case given != (replay || env.Flag.Bool("record")):
		return f, replay, tool.Fail(tool.ExitUsage, errors.New("--fixtures goes with --record or --replay"), "runner-proc run --fixtures DIR --record")
	case given:
		if err := f.Check(); err != nil {
			return f, replay, tool.Fail(tool.ExitUsage, fmt.Errorf("--fixtures: %w", err), "mkdir -p "+string(f))
		}
	}
	return f, replay, nil
}

// ending is whether a signal asked this program to end.
type ending struct {
	asked  chan struct{} // closed then
	number atomic.Int32
}

// endsWith lets a signal that ends this program end what it started too.
func endsWith(r *proc.Runner) *ending {
	signals, e := child.WatchEnding(), &ending{asked: make(chan struct{})}
	go func() {
		for sig := range signals.C {
			if n := child.AsksToEnd(sig); n != 0 && e.number.CompareAndSwap(0, int32(n)) {
				r.Stop()
				close(e.asked)
			}
		}
	}()
	return e
}

// status is the exit status after a signal, nil without one.
func (e *ending) status() error {
	if n := e.number.Load(); n != 0 {
		return tool.Status(128 + int(n))
	}
	return nil
}

// record makes a runner write its decisions to --log, or to the log of a run.
func record(env *tool.Env, r *proc.Runner) error {
	t, err := decisions.ParseTarget(env.Flag.String("log"), env.Flag.IsSet("log"))
	if err != nil || t.Name == "" {
		return err
	}
	to, err := t.Open(tool.ExitIO, "name one that can be written: --log FILE, or take "+decisions.Variable+" away")
	if err != nil {
		return err
	}
	if err := r.Record(to); err != nil {
		return tool.Failf(tool.ExitIO, "%s: %w", t.Name, err)
	}
	return nil
}

// recorded fails if a decision or the end of a session is missing in the log. It ends the runner.
func recorded(r *proc.Runner) error {
	if r.Close(); r.LogError() != nil {
		return tool.Fail(tool.ExitIO, r.LogError())
	}
	return nil
}

func runOne(env *tool.Env) error {
	// One request is soon over, and most of what it takes is needed to the end.
	if sizeOf(env.Stdin) < 64<<20 {
		debug.SetGCPercent(400)
	}
	p, width, err := options(env)
	if err != nil {
		return err
	}
	fixtures, replay, err := fixturesOf(env)
	if err != nil {
		return err
	}
	b, err := read(env, isFrame)
	if err != nil {
		return err
	}
	request, caps, err := proc.ParseFrame(b)
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("standard input: %w", err), "runner-proc encode makes one from JSON")
	}
	r := proc.NewRunner(p)
	defer r.Close()
	if !replay {
		if err := record(env, r); err != nil {
			return err
		}
	}
	asked := endsWith(r)
	o, limits := r.Decide(request, caps)
	switch {
	case o.Code != 0: // nothing to run
	case replay:
		s, err := fixtures.Replay(request, caps)
		if errors.Is(err, proc.ErrMiss) {
			return tool.Fail(tool.ExitNo, err, "record it: runner-proc run --fixtures "+string(fixtures)+" --record")
		} else if err != nil {
			return tool.Fail(tool.ExitInput, err)
		}
		o.Result = *s
	default:
		r.Run(o, limits)
	}
	if err := recorded(r); err != nil {
		return err
	}
	if status := asked.status(); status != nil {
		return status
	}
	if fixtures != "" && !replay {
		if err := fixtures.Record(request, caps, &o.Result); err != nil {
			return err
		}
	}
	if o.Code != 0 {
		env.Infof("%s: %s", o.Code, o.Why)
	}
	if len(o.Stdout)+len(o.Stderr) < 64<<10 {
		return write(env, o.Result.Append(nil, width))
	}
	for _, part := range o.Result.Parts(width) {
		if err := write(env, part); err != nil {
			return err
		}
	}
	return nil
}

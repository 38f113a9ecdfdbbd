package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goccy/go-json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// serveRequest is one line of serve (schemas/PROC.md, "Serve").
type serveRequest struct {
	ID     jsontext.Value `json:"id"`
	Op     string         `json:"op"`
	Frame  []byte         `json:"frame,omitzero"`
	Piped  bool           `json:"piped,omitzero"`
	Handle proc.Handle    `json:"handle,omitzero"`
	From   string         `json:"from,omitempty"`
	Max    *uint32        `json:"max,omitzero"`
	Data   []byte         `json:"data,omitzero"`
	Try    bool           `json:"try,omitzero"`
	Signal int            `json:"signal,omitzero"`
}

// serveAnswer is the line that answers one. Error is of a line that could not be served.
type serveAnswer struct {
	ID     jsontext.Value `json:"id"`
	Result *[]byte        `json:"result,omitzero"`
	Handle *proc.Handle   `json:"handle,omitzero"`
	Code   uint32         `json:"code,omitzero"`
	Why    string         `json:"why,omitempty"`
	Data   *[]byte        `json:"data,omitzero"`
	Ends   bool           `json:"ends,omitzero"`
	OK     *bool          `json:"ok,omitzero"`
	Ended  *bool          `json:"ended,omitzero"`
	Exit   *uint32        `json:"exit_code,omitzero"`
	Error  string         `json:"error,omitempty"`
}

// maxLine is the longest request of serve, in bytes; maxRuns how many runs wait for their turn before no more lines are
// read; maxWaits how many other requests wait at one time: further ones are an error.
const (
	maxLine  = 512 << 20
	maxRuns  = 1024
	maxWaits = 4096
)

// server serves requests until its input ends.
type server struct {
	pool  *proc.Pool
	width int
	mu    sync.Mutex // held while a line is written
	out   *bufio.Writer
	err   error
	runs  chan struct{}
	waits chan struct{}
	all   sync.WaitGroup
}

func serve(ctx context.Context, env *tool.Env) error {
	p, width, err := options(env)
	if err != nil {
		return err
	}
	s := &server{pool: &proc.Pool{Runner: proc.NewRunner(p)}, width: width, out: bufio.NewWriterSize(env.Stdout, 64<<10), runs: make(chan struct{}, maxRuns), waits: make(chan struct{}, maxWaits)}
	if err := record(env, s.pool.Runner); err != nil {
		return err
	}
	defer s.pool.Runner.Close()
	asked := endsWith(s.pool.Runner)
	in := bufio.NewReaderSize(env.Stdin, 64<<10)
	type read struct {
		line []byte
		err  error
	}
	reads := make(chan read)
	go func() {
		for r := (read{}); r.err == nil; {
			r.line, r.err = readLine(in)
			reads <- r
		}
	}()
	for err == nil {
		select {
		case r := <-reads:
			if err = r.err; err == nil || err == io.ErrUnexpectedEOF {
				s.line(r.line)
			}
		case <-asked.asked:
			err = io.EOF
		}
	}
	s.pool.Close()
	s.all.Wait()
	if err := recorded(s.pool.Runner); err != nil {
		return err
	}
	if status := asked.status(); status != nil {
		return status
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return tool.CannotWrite("standard output", s.err)
	case errors.Is(err, errLong):
		return tool.Fail(tool.ExitInput, err)
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return tool.CannotRead("standard input", err)
	}
	return nil
}

var errLong = fmt.Errorf("a line has more than %d bytes", maxLine)

// readLine reads a line without its LF. The last one may lack it (io.ErrUnexpectedEOF).
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errLong
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(line) > 0:
			return line, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		return line[:len(line)-1], nil
	}
}

// answer writes one line.
func (s *server) answer(a serveAnswer) {
	b, err := schemas.Marshal(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		_, err = s.out.Write(append(b, '\n'))
	}
	if err == nil {
		err = s.out.Flush()
	}
	if s.err == nil {
		s.err = err
	}
}

// line serves one request. What can take long is served beside the next ones.
func (s *server) line(line []byte) {
	q := serveRequest{ID: jsontext.Value("null")}
	if err := schemas.Unmarshal(line, &q); err != nil {
		s.answer(serveAnswer{ID: jsontext.Value("null"), Error: "not a request: " + schemas.Text(err.Error())})
		return
	}
	if len(q.ID) == 0 {
		q.ID = jsontext.Value("null")
	}
	a, room := serveAnswer{ID: q.ID}, s.waits
	if q.Op == "run" {
		room = s.runs
		room <- struct{}{}
	} else {
		select {
		case room <- struct{}{}:
		default:
			a.Error = "too many requests wait at one time"
			s.answer(a)
			return
		}
	}
	later, err := s.begin(&q, &a)
	if err != nil {
		a.Error = schemas.Text(err.Error())
	}
	if later == nil {
		<-room
		s.answer(a)
		return
	}
	s.all.Go(func() {
		if err := later(); err != nil {
			a.Error = schemas.Text(err.Error())
		}
		<-room
		s.answer(a)
	})
}

// begin does what is to be done in the order of the lines. What it returns does the rest.
func (s *server) begin(q *serveRequest, a *serveAnswer) (later func() error, err error) {
	ok := func(is bool, err error) error {
		if err == nil {
			a.OK = &is
		}
		return err
	}
	switch q.Op {
	case "run", "spawn":
		request, caps, err := proc.ParseFrame(q.Frame)
		if err != nil {
			return nil, err
		}
		if q.Op == "spawn" {
			h, o := s.pool.Spawn(request, caps, q.Piped)
			a.Handle, a.Code, a.Why = &h, uint32(o.Code), schemas.Text(o.Why)
			return nil, nil
		}
		return func() error {
			b := s.pool.Run(request, caps).Result.Append(nil, s.width)
			a.Result = &b
			return nil
		}, nil
	case "join":
		return func() error {
			o, err := s.pool.Join(q.Handle)
			if err == nil {
				b := o.Result.Append(nil, s.width)
				a.Result = &b
			}
			return err
		}, nil
	case "wait":
		wait := func(block bool) error {
			exit, code, ended, err := s.pool.Wait(q.Handle, block)
			if a.Ended = &ended; err != nil {
				a.Ended = nil
			} else if a.Code = uint32(code); ended && code == 0 {
				a.Exit = &exit
			}
			return err
		}
		if q.Try {
			return nil, wait(false)
		}
		return func() error { return wait(true) }, nil
	case "read":
		which, known := map[string]int{"stdout": 0, "stderr": 1}[q.From]
		if !known || q.Max == nil {
			return nil, errors.New("read needs from (stdout or stderr) and max")
		}
		b, ends, err := s.pool.Read(q.Handle, which, *q.Max)
		if err == nil {
			a.Data, a.Ends = &b, ends
		}
		return nil, err
	case "write", "close":
		turn, err := s.pool.Queue(q.Handle)
		if err != nil {
			return nil, err
		}
		data := q.Data
		if data == nil && q.Op == "write" {
			data = []byte{}
		} else if q.Op == "close" {
			data = nil
		}
		return func() error { return ok(turn(data), nil) }, nil
	case "kill":
		sig := unix.SIGKILL
		if q.Signal != 0 {
			sig = unix.Signal(q.Signal)
		}
		if sig < 1 || sig > 64 {
			return nil, fmt.Errorf("signal %d, expected 1 to 64", q.Signal)
		}
		return nil, ok(s.pool.Kill(q.Handle, sig))
	case "drop":
		return func() error { return ok(s.pool.Drop(q.Handle)) }, nil
	}
	return nil, fmt.Errorf("op is %q, expected one of run, spawn, join, wait, read, write, close, kill, drop", q.Op)
}

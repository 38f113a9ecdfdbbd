package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// capsJSON are limits as JSON. What is left out is 0.
type capsJSON struct {
	MaxStdout uint32 `json:"max_stdout_bytes,omitzero"`
	MaxStderr uint32 `json:"max_stderr_bytes,omitzero"`
	TimeoutMS uint32 `json:"timeout_ms,omitzero"`
	MaxTotal  uint32 `json:"max_total_bytes,omitzero"`
}

// requestJSON is a frame as JSON. Texts are bytes in text form.
type requestJSON struct {
	Argv  []string    `json:"argv"`
	Env   [][2]string `json:"env,omitzero"`
	Cwd   string      `json:"cwd,omitempty"`
	Stdin string      `json:"stdin,omitempty"`
	Caps  *capsJSON   `json:"caps,omitzero"`
}

// resultJSON is a result as JSON: with error and code, or with the rest.
type resultJSON struct {
	Error    string  `json:"error,omitempty"`
	Code     uint32  `json:"code,omitzero"`
	ExitCode *uint32 `json:"exit_code,omitzero"`
	Flags    uint32  `json:"flags,omitzero"`
	Stdout   *string `json:"stdout,omitzero"`
	Stderr   *string `json:"stderr,omitzero"`
}

// texts reads texts, and keeps the first fault.
type texts struct{ err error }

func (t *texts) bytes(what, s string) []byte {
	b, err := schemas.Untext(s)
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("%s: %w", what, err)
	}
	return []byte(b)
}

// request is the frame that JSON says.
func (j *requestJSON) request() (*proc.Request, *proc.Caps, error) {
	var t texts
	q := &proc.Request{Cwd: t.bytes("cwd", j.Cwd), Stdin: t.bytes("stdin", j.Stdin)}
	for i, a := range j.Argv {
		q.Argv = append(q.Argv, t.bytes(fmt.Sprintf("argv[%d]", i), a))
	}
	for i, e := range j.Env {
		q.Env = append(q.Env, proc.Var{Key: t.bytes(fmt.Sprintf("env[%d]", i), e[0]), Value: t.bytes(fmt.Sprintf("env[%d]", i), e[1])})
	}
	c := &proc.Caps{}
	if j.Caps != nil {
		*c = proc.Caps(*j.Caps)
	}
	if t.err != nil {
		return nil, nil, t.err
	}
	_, err := proc.ParseRequest(q.Append(nil)) // what could not be read again is not written
	return q, c, err
}

func requestOf(q *proc.Request) requestJSON {
	j := requestJSON{Argv: []string{}, Cwd: schemas.Text(string(q.Cwd)), Stdin: schemas.Text(string(q.Stdin))}
	for _, a := range q.Argv {
		j.Argv = append(j.Argv, schemas.Text(string(a)))
	}
	for _, v := range q.Env {
		j.Env = append(j.Env, [2]string{schemas.Text(string(v.Key)), schemas.Text(string(v.Value))})
	}
	return j
}

func resultOf(s *proc.Result) resultJSON {
	if s.Code != 0 {
		return resultJSON{Error: s.Code.String(), Code: uint32(s.Code), Flags: s.Flags}
	}
	out, errs := schemas.Text(string(s.Stdout)), schemas.Text(string(s.Stderr))
	return resultJSON{ExitCode: &s.ExitCode, Flags: s.RespFlags, Stdout: &out, Stderr: &errs}
}

// isObject fails for what no object begins with.
func isObject(b []byte) error {
	if b = bytes.TrimLeft(b, " \t\r\n"); len(b) > 0 && b[0] != '{' {
		return errors.New("no object of JSON")
	}
	return nil
}

func encode(env *tool.Env) error {
	b, err := read(env, isObject)
	if err != nil {
		return err
	}
	var j requestJSON
	if err = schemas.Unmarshal(b, &j); err == nil {
		var q *proc.Request
		var c *proc.Caps
		if q, c, err = j.request(); err == nil {
			return write(env, proc.AppendFrame(nil, q.Append(nil), c.Append(nil)))
		}
	}
	return tool.Fail(tool.ExitInput, fmt.Errorf("standard input: %w", err), `an example: {"argv":["/bin/echo","hi"],"env":[["LANG","C"]],"cwd":"/tmp","stdin":"","caps":{"max_stdout_bytes":100,"max_stderr_bytes":100,"timeout_ms":1000}}`)
}

// nothingError has the errors of both kinds, for proc.IsCut: what is cut can be one or the other.
type nothingError []error

func (nothingError) Error() string     { return "neither a frame nor a result" }
func (e nothingError) Unwrap() []error { return e }

// decode prints a frame, a part of one, or a result as one line of JSON.
func decode(env *tool.Env) error {
	kind := env.Flag.String("as")
	if env.Flag.IsSet("as") {
		if _, err := env.Word("as", "frame", "request", "caps", "result"); err != nil {
			return err
		}
	}
	b, err := read(env, func(b []byte) error {
		_, err := decoded(kind, b)
		return err
	})
	if err != nil {
		return err
	}
	v, err := decoded(kind, b)
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("standard input: %w", err))
	}
	line, err := schemas.Marshal(v)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return write(env, append(line, '\n'))
}

func decoded(kind string, b []byte) (v any, err error) {
	switch kind {
	case "caps":
		var c *proc.Caps
		if c, err = proc.ParseCaps(b); err == nil {
			v = capsJSON(*c)
		}
	case "request":
		var q *proc.Request
		if q, err = proc.ParseRequest(b); err == nil {
			v = requestOf(q)
		}
	case "result":
		var s *proc.Result
		if s, err = proc.ParseResult(b); err == nil {
			v = resultOf(s)
		}
	case "frame":
		var request, caps []byte
		var q *proc.Request
		var c *proc.Caps
		if request, caps, err = proc.ParseFrame(b); err == nil {
			q, err = proc.ParseRequest(request)
		}
		if err == nil {
			c, err = proc.ParseCaps(caps)
		}
		if err == nil {
			j := requestOf(q)
			j.Caps = (*capsJSON)(c)
			v = j
		}
	default:
		var errs nothingError
		for _, kind := range []string{"frame", "result"} {
			v, err := decoded(kind, b)
			if err == nil {
				return v, nil
			}
			errs = append(errs, err)
		}
		return nil, errs
	}
	return v, err
}

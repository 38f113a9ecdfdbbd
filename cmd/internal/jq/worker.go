package jq

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/itchyny/gojq"
)

// A program runs in a process of its own, because nothing within a process can stop it: it looks
// at no context while it matches a regular expression or multiplies, and one operation can take
// all memory. The process is this executable under another name.
const workerName = "runner-jq-program"

// Bounds, in bytes.
const (
	defaultMemory = 128 << 20 // of the heap of the process
	maxMessage    = 1 << 10
)

// soft is from where on the process collects harder.
func soft(memory uint64) uint64 { return memory / 8 * 5 }

// exitMemory is how the process ends that needs more memory, if the system does not end it.
const exitMemory = 9

func init() {
	if len(os.Args) == 1 && os.Args[0] == workerName {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// question is one line to the process. The first has only the program.
type question struct {
	Program string          `json:"program,omitempty"`
	Form    Form            `json:"form,omitzero"`
	Input   json.RawMessage `json:"input,omitempty"`
	One     bool            `json:"one,omitempty"` // one answer is expected
	Show    int             `json:"show,omitzero"` // so many results are wanted as texts
}

// Answer is what a program gives for one input.
type Answer struct {
	Count int    // results; counting ends at a result that decides
	Kind  string // jq type of the last result looked at
	True  bool   // that result is true
	Fault string // why the program failed, or ""
}

// Holds reports whether there was a result and each was true.
func (a *Answer) Holds() bool { return a.Fault == "" && a.Count > 0 && a.True }

// serve answers questions until the input ends.
func serve(in io.Reader, out io.Writer) int {
	questions := make(chan question)
	go ask(in, questions)
	e := json.NewEncoder(out)
	var code *compiled
	for q := range questions {
		if code == nil {
			memory := q.Form.Memory
			debug.SetMemoryLimit(int64(soft(memory)))
			bound(memory)
			go watchMemory(memory)
			var err error
			if code, err = compile(q.Program, q.Form.Shape); err != nil {
				return 2
			}
			continue
		}
		var err error
		if q.Show > 0 {
			err = e.Encode(show(code, q))
		} else {
			err = e.Encode(answer(code, q))
		}
		if err != nil {
			return 1
		}
	}
	return 0
}

// ask reads questions. It ends the process with the input, also while the program runs: who asked
// is gone.
func ask(in io.Reader, questions chan<- question) {
	d := json.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	for {
		var q question
		if err := d.Decode(&q); err != nil {
			os.Exit(0)
		}
		questions <- q
	}
}

// watchMemory ends the process where the system has no bound for its memory.
func watchMemory(memory uint64) {
	var m runtime.MemStats
	for range time.Tick(20 * time.Millisecond) {
		if runtime.ReadMemStats(&m); m.HeapSys-m.HeapReleased > memory+soft(memory) {
			os.Exit(exitMemory)
		}
	}
}

// run starts the program over an input.
func (c *compiled) run(text json.RawMessage) (gojq.Iter, error) {
	input, err := decode(text)
	if err != nil {
		return nil, err
	}
	c.take(input)
	return c.Run(input), nil
}

func answer(code *compiled, q question) (a Answer) {
	it, err := code.run(q.Input)
	if err != nil {
		return Answer{Fault: err.Error()}
	}
	defer func() {
		if code.lacks != nil { // also where the program caught the error
			a.Fault = code.lacks.Error()
		}
	}()
	for {
		v, ok := it.Next()
		if !ok {
			return a
		}
		if err, ok := v.(error); ok {
			a.Fault = fmt.Sprintf("%.*s", maxMessage, err)
			return a
		}
		a.Count++
		a.Kind, a.True = gojq.TypeOf(v), v == true
		if q.One && a.Count > 1 || !q.One && !a.True {
			return a
		}
	}
}

// Shown are the results of a program for one input, as texts: strings as they are, other values as JSON.
type Shown struct {
	Count int
	Texts []string // the first ones
	Fault string   // why the program failed, or ""
}

// maxShown bounds one text of a result, in bytes.
const maxShown = 4 << 10

func show(code *compiled, q question) (s Shown) {
	it, err := code.run(q.Input)
	if err != nil {
		return Shown{Fault: err.Error()}
	}
	defer func() {
		if code.lacks != nil {
			s.Fault = code.lacks.Error()
		}
	}()
	for {
		v, ok := it.Next()
		if !ok {
			return s
		}
		if err, ok := v.(error); ok {
			s.Fault = fmt.Sprintf("%.*s", maxMessage, err)
			return s
		}
		if s.Count++; len(s.Texts) == q.Show {
			continue
		}
		text, is := v.(string)
		if !is {
			b, err := gojq.Marshal(v)
			if err != nil {
				return Shown{Fault: err.Error()}
			}
			text = string(b)
		}
		s.Texts = append(s.Texts, text[:min(len(text), maxShown)])
	}
}

// decode reads one JSON value for gojq, integers exact.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return exact(v), nil
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

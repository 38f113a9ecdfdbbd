package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// source makes a layer of the table from its log.
type source interface {
	// line takes in one line of the log. The layer ends at the first bad one.
	line(l logLine)
	// close is called after the last line.
	close(f logFacts)
	// end returns how the log ended. It is valid after close.
	end() *logEnd
	// present reports whether the log held anything that makes the layer present.
	present() bool
	// count returns the number of the layer's lines.
	count() uint64
	// note returns the values of the layer's note.
	note() []any
	// each calls f with every line of the layer, in order.
	each(f func(line []byte) error) error
	// stamp returns when a line of the layer happened.
	stamp(line uint64) stamp
}

// logEnd is what is known of a log as a whole.
type logEnd struct {
	facts logFacts
	bad   problem // why the layer ends before its log does
}

func (e *logEnd) end() *logEnd { return e }

// logLayer is a row of the layer table with its source in this run.
type logLayer struct {
	*schemas.Layer
	source
	empty bool // its file has no bytes
}

// newSource makes the source of a layer. The lines of a layer that is not named here
// are not compared with other layers.
func (j *joiner) newSource(l *schemas.Layer) source {
	id := j.in.Header().RunID
	switch l.Name {
	case schemas.LayerPolicy:
		j.policy = newPolicyLog(id)
		return j.policy
	case schemas.LayerSDK:
		j.sdk = newSDKLog(id)
		return j.sdk
	case schemas.LayerIntents:
		return &plainLog{layer: l, runID: id, check: intentChecks()}
	}
	return &plainLog{layer: l, runID: id}
}

// readLogs reads the logs to their end. The kernel lines are compared with them later.
func (j *joiner) readLogs(opt Options) error {
	for i := range schemas.Layers {
		l := &schemas.Layers[i]
		path := opt.Logs[l.Name]
		if l.Log == nil || path == "" {
			continue
		}
		s := j.newSource(l)
		facts, err := readLog(path, l, j.in.Header().RunID, s.line)
		if err != nil {
			return err
		}
		if opt.Times && facts.untimed {
			return tool.Fail(tool.ExitInput, fmt.Errorf("%s has no times at which its lines were read, which --times needs", path),
				"collect the log with runner-exec --times --"+l.Name+"-log FILE")
		}
		s.close(facts)
		j.logs = append(j.logs, logLayer{l, s, facts.empty})
	}
	j.sdk.join(j.policy)
	if j.policy == nil {
		return nil
	}
	var err error
	if j.attribution, err = newAttribution(j.in.Header().RunID, j.policy); err != nil {
		return err
	}
	j.tree = j.attribution.tree
	return j.addDeclared()
}

// layerText holds the lines of a layer, in the form in which they will be written. They wait on
// disk: memory is for what is compared.
type layerText struct {
	file *os.File // made for the first line
	w    *bufio.Writer
	size int64
	n    uint64
	full bool  // there is no room for more
	err  error // of the file

	received []uint64 // of each line, where that is known
}

// add appends a line. It sets full and returns false when there is no room for it.
func (t *layerText) add(line []byte, received uint64, limit int64) bool {
	if t.size+int64(len(line)+len("\n")) > limit {
		t.full = true
		return false
	}
	t.size += int64(len(line) + len("\n"))
	t.write(line)
	t.n++
	if received > 0 {
		t.received = append(t.received, received)
	}
	return true
}

// write keeps the first error, which each returns.
func (t *layerText) write(line []byte) {
	if t.err == nil && t.file == nil {
		if t.file, t.err = tool.Spool(); t.err == nil {
			t.w = bufio.NewWriterSize(t.file, 64<<10)
		}
	}
	if t.err == nil {
		t.w.Write(line)
		t.err = t.w.WriteByte('\n')
	}
}

func (t *layerText) stamp(line uint64) stamp { return stamp{received: t.received[line]} }

func (t *layerText) count() uint64 { return t.n }

// each calls f for every line, once: then the file is gone.
func (t *layerText) each(f func(line []byte) error) error {
	if t.file == nil && t.err == nil {
		return nil
	}
	if t.file != nil {
		defer t.file.Close()
	}
	if t.err == nil {
		t.err = t.w.Flush()
	}
	if t.err != nil {
		return tool.ScratchError(t.err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, t.size), 64<<10)
	var line []byte
	for left := t.n; left > 0; left-- {
		line = line[:0]
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part...)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull {
				return tool.ScratchError(err)
			}
		}
		if err := f(line[:len(line)-1]); err != nil {
			return err
		}
	}
	return nil
}

// plainLog is a layer whose log holds the layer's own lines.
type plainLog struct {
	logEnd
	layerText
	layer *schemas.Layer
	runID string
	check func(value any) (why string) // what a line says that the parser cannot judge; nil: nothing
}

func (p *plainLog) line(l logLine) {
	if p.bad.line > 0 || p.full || len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	if why := p.take(l); why != "" {
		p.bad = problem{l.number, why}
	}
}

func (p *plainLog) take(l logLine) (why string) {
	if _, ok := object(l.text); !ok {
		return schemas.WhyJSON
	}
	e, err := p.layer.Parse(l.text)
	var fault *schemas.LineFault
	switch {
	case errors.As(err, &fault):
		return fault.Why
	case err != nil:
		return schemas.WhyField
	case e.RunID != p.runID:
		return schemas.WhyRunID
	case e.Seq != p.n:
		return schemas.WhySeq
	}
	if p.check != nil {
		if why := p.check(e.Value); why != "" {
			return why
		}
	}
	b, err := schemas.Marshal(e.Value)
	if err != nil {
		return schemas.WhyField
	}
	p.add(b, l.received, p.layer.MaxBytes)
	return ""
}

func (p *plainLog) close(f logFacts) {
	p.facts, p.bad = f, p.bad.unlessCut(f)
	p.facts.stopped = p.facts.stopped || p.full
}

func (p *plainLog) present() bool { return p.n > 0 }
func (p *plainLog) note() []any   { return []any{p.n} }

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// event is one event of a stream of server-sent events, or a comment.
type event struct {
	comment bool
	name    string // "" is message
	id      string
	hasID   bool
	retry   string // digits
	data    []byte
	hasData bool
}

// eventReader reads server-sent events as the HTML standard defines them: lines end with
// CR, LF or CRLF, and an event ends with an empty line. One that the stream does not end
// is no event.
type eventReader struct {
	r      *bufio.Reader
	max    int  // bytes of the lines of one event
	skipLF bool // the last line ended with CR
	begun  bool
	line   []byte
	ev     event
	size   int
}

var errEventTooLong = errors.New("an event of the stream is too long")

func newEventReader(r io.Reader, most int) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), max: most}
}

// next returns the next event or comment.
func (e *eventReader) next() (event, error) {
	for {
		if err := e.readLine(); err != nil {
			return event{}, err
		}
		line := e.line
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			ev := e.ev
			e.ev, e.size = event{}, 0
			if ev.hasData || ev.hasID || ev.retry != "" {
				return ev, nil
			}
			continue
		}
		if line[0] == ':' {
			return event{comment: true}, nil
		}
		if e.size += len(line) + 1; e.size > e.max {
			return event{}, errEventTooLong
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		e.field(string(name), bytes.TrimPrefix(value, []byte{' '}))
	}
}

func (e *eventReader) field(name string, value []byte) {
	switch name {
	case "data":
		if e.ev.hasData {
			e.ev.data = append(e.ev.data, '\n')
		}
		e.ev.data, e.ev.hasData = append(e.ev.data, value...), true
	case "event":
		e.ev.name = string(value)
	case "id":
		if !slices.Contains(value, 0) {
			e.ev.id, e.ev.hasID = string(value), true
		}
	case "retry":
		if len(value) > 0 && len(value) <= 9 && len(bytes.Trim(value, "0123456789")) == 0 {
			e.ev.retry = string(value)
		}
	}
}

// readLine reads one line without its end.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' && e.skipLF {
			e.skipLF = false
			continue
		}
		e.skipLF = c == '\r'
		if c == '\r' || c == '\n' {
			return nil
		}
		if e.line = append(e.line, c); len(e.line) > e.max {
			return errEventTooLong
		}
	}
}

// text is the event as it is written to the client.
func (ev event) text() []byte {
	if ev.comment {
		return []byte(":\n\n")
	}
	var b []byte
	field := func(name, value string) { b = append(append(append(append(b, name...), ": "...), value...), '\n') }
	if ev.name != "" {
		field("event", ev.name)
	}
	if ev.hasID {
		field("id", ev.id)
	}
	if ev.retry != "" {
		field("retry", ev.retry)
	}
	if ev.hasData {
		text := bytes.ReplaceAll(bytes.ReplaceAll(ev.data, []byte("\r\n"), []byte{'\n'}), []byte{'\r'}, []byte{'\n'})
		for line := range bytes.SplitSeq(text, []byte{'\n'}) {
			field("data", string(line))
		}
	}
	return append(b, '\n')
}

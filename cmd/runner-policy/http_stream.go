package main

import (
	"net/http"
	"sync"
	"time"
)

// writeLimit is how long a client may take to read what was written.
const writeLimit = 30 * time.Second

// eventWriter writes events to a client, whole ones only.
type eventWriter struct {
	mu sync.Mutex
	w  http.ResponseWriter
	rc *http.ResponseController
}

// streamTo begins a stream of events.
func streamTo(w http.ResponseWriter) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	e := &eventWriter{w: w, rc: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	e.rc.Flush()
	return e
}

func (e *eventWriter) send(ev event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rc.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, err := e.w.Write(ev.text()); err != nil {
		return false
	}
	return e.rc.Flush() == nil
}

// message sends one line as an event.
func (e *eventWriter) message(line []byte) bool {
	return e.send(event{name: "message", data: trimLF(line), hasData: true})
}

func trimLF(line []byte) []byte { return line[:len(line)-1] }

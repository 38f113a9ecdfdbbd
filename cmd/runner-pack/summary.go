package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// processes counts the processes of kernel lines. In run.joined those of one process are
// together, so another number is another process, also where the kernel gave a number twice.
type processes struct {
	n     uint64
	last  []byte // the digits of the line before
	start int    // how much of each line the reader has compared: up to the end of its run_id
}

var (
	seqKey = []byte(`,"seq":`)
	pidKey = []byte(`,"pid":`)
)

// add takes in the process of a kernel line. The key comes early, and nothing before it can hold its text.
func (p *processes) add(line []byte) {
	at := min(p.start, len(line))
	if bytes.HasPrefix(line[at:], seqKey) {
		at += len(seqKey)
		for at < len(line) && line[at]-'0' <= 9 {
			at++
		}
	}
	if !bytes.HasPrefix(line[at:], pidKey) { // not as runner-correlate writes it
		if at = bytes.Index(line, pidKey); at < 0 {
			return
		}
	}
	digits := line[at+len(pidKey):]
	end := 0
	for end < len(digits) && digits[end] != ',' && digits[end] != '}' {
		end++
	}
	if end == len(digits) || p.n > 0 && bytes.Equal(digits[:end], p.last) {
		return
	}
	p.last = append(p.last[:0], digits[:end]...)
	p.n++
}

// summary is the one line about an archive for people.
func (r *router) summary() string {
	n := func(n uint64, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.FormatUint(n, 10) + " " + many
	}
	processes := max(r.processes.n, r.layerLines(schemas.LayerProcess)) // that layer has also those that did nothing else, if it is there
	parts := []string{n(r.layerLines(schemas.LayerKernel), "event", "events"), n(processes, "process", "processes"),
		n(r.surface.entries[schemas.SetNetworkEndpoints], "endpoint", "endpoints")}
	if calls := r.layerLines(schemas.LayerPolicy); calls > 0 {
		parts = append(parts, n(calls, "tool call", "tool calls"))
	}
	return strings.Join(append(parts, r.state()), ", ")
}

// engines are the container engines that the causes of an incomplete layer name.
func (r *router) engines() string {
	for _, note := range r.health.Notes {
		if values, err := schemas.NoteLoss.Parse(note); err == nil {
			names, _ := values.Get(schemas.CauseEngines)
			return strings.ReplaceAll(names, ",", " and ")
		}
	}
	return ""
}

// state says whether the record is whole.
func (r *router) state() string {
	h := r.health
	switch {
	case h.CgroupCorrelation == schemas.CorrelationFailed:
		return "not complete: a task left the cgroup"
	case h.KernelLayer == schemas.LayerAbsent:
		return "without a kernel layer"
	case h.KernelLayer != schemas.LayerComplete && h.RingbufDrops > 0:
		return fmt.Sprintf("not complete: %d lost", h.RingbufDrops)
	case h.KernelLayer != schemas.LayerComplete && r.engines() != "":
		return "not complete: " + r.engines() + " worked outside of the cgroup"
	case h.KernelLayer != schemas.LayerComplete || h.CgroupCorrelation != schemas.CorrelationClean:
		return "not complete"
	case r.layerLines(schemas.LayerKernel) == 0:
		return "nothing was observed"
	}
	return "complete"
}

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
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

// summary is the one line about an archive for people, and whether its record is whole.
func (r *router) summary() (line string, whole bool) {
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
	state, whole := r.state()
	parts = append(parts, state)
	if status := r.report.Status; status != schemas.CorrelationClean {
		whole = false
		parts = append(parts, fmt.Sprintf("correlation %s (%s: runner-verify --explain)", status, n(r.parts.ambiguities, "ambiguity", "ambiguities")))
	}
	return strings.Join(parts, ", "), whole
}

// tell says what the archive holds. A record that is not whole, or in doubt, is a warning: -q does not hide it.
func (r *router) tell(env *tool.Env, path string) {
	if line, whole := r.summary(); whole {
		env.Sayf("%s: %s", schemas.Text(path), line)
	} else {
		env.Warnf("%s: %s", schemas.Text(path), line)
	}
}

// causes are the causes of an incomplete layer as its note has them, and the container engines among them.
func (r *router) causes() (text, engines string) {
	for _, note := range r.health.Notes {
		if values, err := schemas.NoteLoss.Parse(note); err == nil {
			_, text, _ = schemas.CutNote(note)
			engines, _ = values.Get(schemas.CauseEngines)
			return strings.TrimSpace(text), strings.ReplaceAll(engines, ",", " and ")
		}
	}
	return "its causes are not known", ""
}

// state says whether the record is whole, in words and as a value.
func (r *router) state() (words string, whole bool) {
	h := r.health
	causes, engines := r.causes()
	switch {
	case h.CgroupCorrelation == schemas.CorrelationFailed:
		lost := ""
		if h.RingbufDrops > 0 {
			lost = fmt.Sprintf("%d lost, and ", h.RingbufDrops)
		}
		return "not complete: " + lost + "a task left the cgroup, or may have: what it did afterwards may be missing, and runner-verify refuses this record", false
	case h.KernelLayer == schemas.LayerAbsent:
		return "without a kernel layer", true
	case h.KernelLayer != schemas.LayerComplete && h.RingbufDrops > 0:
		return fmt.Sprintf("not complete: %d lost", h.RingbufDrops), false
	case h.KernelLayer != schemas.LayerComplete && engines != "":
		return "not complete: " + engines + " worked outside of the cgroup", false
	case h.KernelLayer != schemas.LayerComplete || h.CgroupCorrelation != schemas.CorrelationClean:
		return "not complete: " + causes, false
	case r.layerLines(schemas.LayerKernel) == 0:
		return "nothing was observed", true
	}
	return "complete", true
}

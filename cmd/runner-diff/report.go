package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

type (
	// report is the document of --report.
	report struct {
		Version     string        `json:"schema_version"`
		GeneratedAt string        `json:"generated_at,omitempty"`
		Verdict     string        `json:"verdict"`
		Blocking    uint64        `json:"blocking"` // changes in the groups of --fail-on
		Base        reportSide    `json:"base"`
		New         reportSide    `json:"new"`
		Doubts      []doubt       `json:"inconclusive"`
		Folds       []string      `json:"folds"`
		FailOn      []string      `json:"fail_on"`
		Ignore      *ignoreReport `json:"ignore,omitempty"`
		Counts      counts        `json:"counts"`
		Flips       []flip        `json:"flips"`
		Added       []entry       `json:"added"`
		Removed     []entry       `json:"removed"`

		added, removed []change // from which the last two are written, one by one
	}
	reportSide struct {
		Runs []run       `json:"runs"`
		Lock *reportLock `json:"lock,omitempty"`
	}
	reportLock struct {
		File   string `json:"file"`
		Digest string `json:"sha256"`
	}
	counts struct {
		Same    uint64 `json:"same"`
		Added   uint64 `json:"added"`
		Removed uint64 `json:"removed"`
		Flaky   uint64 `json:"flaky"`
		Ignored uint64 `json:"ignored"`
	}
	entry struct {
		Kind        string `json:"kind"`
		Group       string `json:"group"`
		Value       string `json:"value"`
		How         string `json:"how,omitempty"`
		Blocks      bool   `json:"blocks"`
		In          uint32 `json:"in"` // in how many of the runs of its side
		Of          uint32 `json:"of"`
		Count       uint64 `json:"count"`
		Who         []who  `json:"who"`
		Others      uint64 `json:"others,omitzero"`
		Fingerprint string `json:"fingerprint"`
	}
	who struct {
		Executable string `json:"executable"` // "" is a process before its first exec
		ToolCall   string `json:"tool_call,omitempty"`
		Count      uint64 `json:"count"`
	}
)

func sideOf(s *side) reportSide {
	r := reportSide{Runs: s.runs}
	if r.Runs == nil {
		r.Runs = []run{}
	}
	if s.lock != nil {
		r.Lock = &reportLock{s.lock.name, s.lock.digest}
	}
	return r
}

// newReport is the comparison as a document.
func newReport(c *comparison, opt *Options) *report {
	return &report{Version: schemas.VersionCapabilityDiff, GeneratedAt: opt.GeneratedAt, Verdict: c.verdict, Blocking: c.blocking,
		Base: sideOf(c.base), New: sideOf(c.fresh), Doubts: c.doubts, Folds: opt.Folds.Names(), FailOn: opt.FailOn, Ignore: opt.Ignore.report(),
		Counts: counts{c.same, uint64(len(c.added)), uint64(len(c.removed)), c.flaky, c.ignored}, Flips: c.flips,
		Added: []entry{}, Removed: []entry{}, added: c.added, removed: c.removed}
}

// Where a report without entries has none.
const noAdded, noRemoved = `"added":[`, `],"removed":[`

// write writes the report in little memory: there can be many entries.
func (r *report) write(w io.Writer) error {
	b, err := schemas.Marshal(r)
	if err != nil {
		return err
	}
	head, tail, ok := bytes.Cut(b, []byte(noAdded+noRemoved))
	if !ok {
		return errors.New("a report that does not end with its entries")
	}
	out := bufio.NewWriterSize(w, 64<<10)
	out.Write(append(inert(head), noAdded...))
	writeEntries(out, r.added)
	out.WriteString(noRemoved)
	writeEntries(out, r.removed)
	out.Write(append(tail, '\n'))
	return out.Flush() // it has the error of any write
}

// partEntries are encoded together.
const partEntries = 1 << 10

// writeEntries encodes parts of the list at the same time, and writes them in their order.
func writeEntries(out *bufio.Writer, list []change) {
	parts := make(chan chan []byte, runtime.GOMAXPROCS(0))
	go func() {
		defer close(parts)
		for from := 0; from < len(list); from += partEntries {
			part := make(chan []byte, 1)
			parts <- part
			go func() { part <- encode(list[from:min(from+partEntries, len(list))], from > 0) }()
		}
	}()
	for part := range parts {
		out.Write(<-part)
	}
}

// encode is the JSON of entries; more of a list that others are before.
func encode(list []change, more bool) []byte {
	b := make([]byte, 0, 384*len(list))
	for i := range list {
		if i > 0 || more {
			b = append(b, ',')
		}
		b = list[i].appendEntry(b)
	}
	return inert(b)
}

// appendEntry appends the JSON of an entry.
func (c *change) appendEntry(b []byte) []byte {
	text := func(key, value string) { b = schemas.AppendQuote(append(b, key...), value) }
	number := func(key string, n uint64) { b = strconv.AppendUint(append(b, key...), n, 10) }
	text(`{"kind":`, c.name())
	text(`,"group":`, c.group)
	text(`,"value":`, c.value)
	if c.how != "" {
		text(`,"how":`, c.how)
	}
	b = strconv.AppendBool(append(b, `,"blocks":`...), c.blocks)
	number(`,"in":`, uint64(c.in))
	number(`,"of":`, uint64(c.of))
	number(`,"count":`, c.count)
	b = append(b, `,"who":[`...)
	for i, w := range c.who {
		if i > 0 {
			b = append(b, ',')
		}
		text(`{"executable":`, w.Executable)
		if w.ToolCall != "" {
			text(`,"tool_call":`, w.ToolCall)
		}
		number(`,"count":`, w.Count)
		b = append(b, '}')
	}
	b = append(b, ']')
	if c.more > 0 {
		number(`,"others":`, c.more)
	}
	b = c.appendFingerprint(append(b, `,"fingerprint":"`...))
	return append(b, `"}`...)
}

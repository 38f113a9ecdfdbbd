package main

import (
	"io"

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

func entries(list []change) []entry {
	out := []entry{}
	for i := range list {
		c := &list[i]
		e := entry{c.name(), c.group, c.value, c.how, c.blocks, c.in, c.of, c.count, c.who, c.more, c.fingerprint()}
		if e.Who == nil {
			e.Who = []who{}
		}
		out = append(out, e)
	}
	return out
}

// newReport is the comparison as a document.
func newReport(c *comparison, opt *Options) *report {
	return &report{Version: schemas.VersionCapabilityDiff, GeneratedAt: opt.GeneratedAt, Verdict: c.verdict, Blocking: c.blocking,
		Base: sideOf(c.base), New: sideOf(c.fresh), Doubts: c.doubts, Folds: opt.Folds.Names(), FailOn: opt.FailOn, Ignore: opt.Ignore.report(),
		Counts: counts{c.same, uint64(len(c.added)), uint64(len(c.removed)), c.flaky, c.ignored}, Flips: c.flips,
		Added: entries(c.added), Removed: entries(c.removed)}
}

func (r *report) write(w io.Writer) error {
	b, err := schemas.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(inert(b), '\n'))
	return err
}

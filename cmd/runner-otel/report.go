package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// report is the mapping report.
type report struct {
	Version  string    `json:"schema_version"`
	RunID    string    `json:"run_id"`
	Identity string    `json:"archive_identity"`
	Target   target    `json:"target"`
	Records  records   `json:"records"`
	Totals   numbers   `json:"totals"`
	Mapped   []mapped  `json:"mapped"`
	Dropped  []dropped `json:"dropped"`
	Unknown  []unknown `json:"unknown_events"`
	More     uint64    `json:"unknown_events_more,omitzero"`
	Sent     *delivery `json:"sent,omitempty"`
}

type target struct {
	OTLP       string `json:"otlp_version"`
	Repository string `json:"semconv_repository"`
	Commit     string `json:"semconv_commit"`
	Status     string `json:"semconv_status"`
}

type records struct {
	Spans uint64 `json:"spans"`
	Logs  uint64 `json:"log_records"`
}

type numbers struct {
	In      uint64 `json:"fields_in"`
	Mapped  uint64 `json:"mapped"`
	Dropped uint64 `json:"dropped"`
}

type mapped struct {
	Source string `json:"source"`
	Field  string `json:"field"`
	To     string `json:"attribute"`
	Count  uint64 `json:"count"`
}

type dropped struct {
	Source string `json:"source"`
	Field  string `json:"field"`
	Why    string `json:"reason"`
	Count  uint64 `json:"count"`
}

type unknown struct {
	Type  uint32 `json:"event_type"`
	Count uint64 `json:"count"`
}

type delivery struct {
	Requests map[string]uint64 `json:"requests"`
	Rejected map[string]uint64 `json:"rejected"`
}

// report makes the report. Its order is that of the table.
func (x *exporter) report(s *sent) *report {
	t := x.totals()
	r := &report{Version: schemas.VersionOTelMapping, RunID: x.e.Report.RunID, Identity: x.e.Report.Identity,
		Target:  target{otlpVersion, semconvRepository, semconvCommit, semconvStatus},
		Records: records{x.traces.Records, x.logs.Records}, Totals: numbers{In: t.in, Mapped: t.mapped, Dropped: t.in - t.mapped}}
	for _, src := range sources {
		m := x.members[src.member]
		if m == nil {
			continue
		}
		for i := range m.rules {
			rule, c := &m.rules[i], m.counts[i]
			if c.mapped > 0 {
				r.Mapped = append(r.Mapped, mapped{m.member, rule.field, x.place(rule), c.mapped})
			}
			if c.dropped > 0 {
				r.Dropped = append(r.Dropped, dropped{m.member, rule.field, rule.why, c.dropped})
			}
			if c.null > 0 {
				r.Dropped = append(r.Dropped, dropped{m.member, rule.field, reasonNull, c.null})
			}
		}
	}
	r.More = x.unknownMore
	for _, n := range slices.Sorted(maps.Keys(x.unknown)) {
		r.Unknown = append(r.Unknown, unknown{n, x.unknown[n]})
	}
	if s != nil {
		r.Sent = &delivery{s.state.Requests, s.state.Rejected}
	}
	return r
}

// place is where a field went.
func (x *exporter) place(r *rule) string {
	switch {
	case r.to == "":
		return strings.ReplaceAll(sensitiveName(r.field), "[]", "")
	case r.field == "pid":
		return x.pid
	}
	return strings.ReplaceAll(r.to, "[]", "")
}

// totals are the sums.
type totals struct {
	in, mapped uint64
	dropped    map[string]uint64 // by reason
}

func (x *exporter) totals() totals {
	t := totals{dropped: map[string]uint64{}}
	for _, m := range x.members {
		for i, c := range m.counts {
			t.in += c.mapped + c.dropped + c.null
			t.mapped += c.mapped
			if c.dropped > 0 {
				t.dropped[m.rules[i].why] += c.dropped
			}
			if c.null > 0 {
				t.dropped[reasonNull] += c.null
			}
		}
	}
	return t
}

// reasons are those that occur, sorted.
func (t totals) reasons() []string { return slices.Sorted(maps.Keys(t.dropped)) }

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// doubt is why a comparison is inconclusive.
type doubt struct {
	Side string `json:"side"` // base, new or both
	Code string `json:"code"` // one of the codes
	What string `json:"what"`
}

// Codes of doubts.
const (
	doubtKernel   = "kernel_layer"
	doubtCgroup   = "cgroup_correlation"
	doubtCoverage = "coverage"
	doubtItems    = "too_many_items"
)

// observe takes in how well a run was observed, and what could not be.
func (s *side) observe(r *verdict.Report) {
	rec := r.Record
	if rec.KernelLayer != schemas.LayerComplete {
		s.doubts = append(s.doubts, doubt{Code: doubtKernel, What: r.Archive + ": the kernel layer is " + rec.KernelLayer})
	}
	if rec.CgroupCorrelation != schemas.CorrelationClean {
		s.doubts = append(s.doubts, doubt{Code: doubtCgroup, What: r.Archive + ": the cgroup correlation is " + rec.CgroupCorrelation})
	}
	for _, c := range coverageOf(rec) {
		s.covered[c]++
	}
}

// finish compares the coverage of the side's runs, and puts everything in an order that does not depend on
// that of the runs.
func (s *side) finish() {
	for c, n := range s.covered {
		s.coverage = append(s.coverage, c)
		if n < len(s.runs) {
			s.doubts = append(s.doubts, doubt{Code: doubtCoverage, What: fmt.Sprintf("only in %d of %d runs: %s", n, len(s.runs), c)})
		}
	}
	slices.Sort(s.coverage)
	slices.SortFunc(s.doubts, func(a, b doubt) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.What, b.What))
	})
	slices.SortFunc(s.runs, func(a, b run) int {
		return cmp.Or(strings.Compare(a.Digest, b.Digest), strings.Compare(a.Archive, b.Archive))
	})
}

// countSuffix is how often something was met that cannot be observed.
var countSuffix = pattern.New(` \([0-9]+\)$`)

// coverageOf is what a run could not observe or left out, and which layers it has.
func coverageOf(rec *verdict.Record) []string {
	list := []string{"platform " + rec.Platform, "policy layer " + rec.PolicyLayer, "SDK layer " + rec.SDKLayer}
	for _, note := range rec.Notes {
		if v, err := schemas.NoteBlind.Parse(note); err == nil {
			for i := range v {
				list = append(list, "not seen: "+countSuffix.ReplaceAllString(v[i].Value, ""))
			}
		}
		if v, err := schemas.NoteNoise.Parse(note); err == nil {
			table, _ := v.Get(schemas.KeyTable)
			list = append(list, "left out: noise by "+table)
		}
		if v, err := schemas.NoteDrop.Parse(note); err == nil {
			program, _ := v.Get(schemas.KeySHA256)
			list = append(list, "left out: by a program with the digest "+program)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// difference is what only one of two sorted lists has.
func difference(a, b []string) (list []string) {
	for _, x := range a {
		if _, there := slices.BinarySearch(b, x); !there {
			list = append(list, x)
		}
	}
	for _, x := range b {
		if _, there := slices.BinarySearch(a, x); !there {
			list = append(list, x)
		}
	}
	slices.Sort(list)
	return list
}

// doubtful is why two sides cannot be compared; nothing, if they can.
func doubtful(base, fresh *side) []doubt {
	list := []doubt{}
	for _, x := range []struct {
		name string
		side *side
	}{{sideBase, base}, {sideNew, fresh}} {
		for _, d := range x.side.doubts {
			d.Side = x.name
			list = append(list, d)
		}
		if x.side.lost > 0 {
			list = append(list, doubt{x.name, doubtItems, fmt.Sprintf("%d operations are on items beyond the %d that are kept", x.side.lost, x.side.items.count)})
		}
	}
	for _, d := range difference(base.coverage, fresh.coverage) {
		_, in := slices.BinarySearch(base.coverage, d)
		where := sideNew
		if in {
			where = sideBase
		}
		list = append(list, doubt{sideBoth, doubtCoverage, "only " + where + ": " + d})
	}
	return list
}

// Names of sides.
const (
	sideBase = "base"
	sideNew  = "new"
	sideBoth = "both"
)

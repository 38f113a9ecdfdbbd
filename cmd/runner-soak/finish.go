package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// finish says what the runs add up to, or why that is not known.
func (s *session) finish() error {
	if s.fatal != nil || s.signal != 0 {
		if s.folder != nil {
			useful := s.signal != 0 && s.folder.had+s.folder.made > 0
			if s.fatal != nil && s.folder.had+s.folder.made == 0 {
				s.folder.undo()
			} else {
				s.folder.close(useful)
			}
			if useful {
				s.env.Sayf("no report was written. The same call with --dir %s goes on where this one was", schemas.Text(s.folder.path))
			}
		}
		if s.fatal != nil {
			return s.fatal
		}
		return tool.Status(128 + s.signal)
	}
	if len(s.refused) > 0 {
		return s.refusals()
	}
	w := &whole{plan: s.opt.Plan, generated: s.opt.GeneratedAt}
	left := 0
	for _, f := range s.faults {
		kept, rest := counted(f.runs, w.plan.Policy)
		left += len(rest)
		w.faults = append(w.faults, FaultResult{Name: f.Name, Wrapper: f.Wrapper, Runs: orNone(kept), Results: results(kept, &w.plan), Drift: f.seen.drift(kept)})
	}
	code, err := w.write(s.env, s.opt, s.reasons())
	if s.folder != nil {
		s.folder.close(code != tool.ExitOK || err != nil)
		s.tellFolder(code, left)
	}
	if s.over {
		s.env.Warnf("the time budget of %v is used up", s.opt.Budget)
	}
	if err == nil && code != tool.ExitOK {
		err = tool.Status(code)
	}
	return err
}

func orNone(runs []Run) []Run {
	if runs == nil {
		return []Run{}
	}
	return runs
}

// tellFolder says what is in the folder, where that is not plain.
func (s *session) tellFolder(code, left int) {
	if left > 0 {
		s.env.Sayf("%s had begun when the soak stopped: kept in %s, and counted nowhere", runs(left), schemas.Text(s.folder.path))
	}
	switch {
	case s.begun == 0:
		s.env.Sayf("%s had all runs already: nothing was run. For new ones give another --dir", schemas.Text(s.folder.path))
	case s.folder.had > 0:
		s.env.Sayf("%s had %s already, the others were made now: %d", schemas.Text(s.folder.path), runs(s.folder.had), s.begun)
	}
	if s.folder.fresh && code != tool.ExitOK {
		s.env.Sayf("archives and output are in %s; --dir chooses the place", schemas.Text(s.folder.path))
	}
}

// refusals prints what runner-verify found, archive by archive.
func (s *session) refusals() error {
	code := tool.ExitInput
	for _, i := range slices.Sorted(maps.Keys(s.refused)) {
		r := s.refused[i]
		io.WriteString(s.env.Stderr, r.printed)
		if r.code != tool.ExitInput {
			code = r.code
		}
	}
	return tool.Status(code)
}

// reasons are why runs did not pass, of each fault by the number of the run.
func (s *session) reasons() map[string]map[int]string {
	list := map[string]map[int]string{}
	for _, f := range s.faults {
		list[f.Name] = map[int]string{}
		for i, text := range f.how {
			where := ""
			if s.folder != nil {
				where = s.folder.file(f.Name, i, "")
				if _, err := os.Stat(where + archiveEnd); err == nil {
					where += archiveEnd
				} else {
					where += outputEnd
				}
			} else {
				where = s.opt.Targets[i-1]
			}
			list[f.Name][i] = text + " (" + schemas.Text(filepath.Clean(where)) + ")"
		}
	}
	return list
}

// whole is a soak with all its faults, from runs or from the reports of shards.
type whole struct {
	plan      Plan
	generated string
	faults    []FaultResult
	bare      bool // made of reports: without faults and drift
}

// write writes the report and the surface, prints the text, and returns the exit code.
func (w *whole) write(env *tool.Env, opt *Options, reasons map[string]map[int]string) (int, error) {
	base := &w.faults[0]
	report := Report{Version: schemas.VersionSoakReport, Mode: modeSoak, GeneratedAt: w.generated, Plan: w.plan, Results: base.Results, Runs: base.Runs}
	b, err := schemas.MarshalShown(report)
	if err != nil {
		return 0, tool.Fail(tool.ExitIO, err)
	}
	if opt.Surface != "" {
		surface, err := schemas.MarshalShown(Surface{Version: schemas.VersionSoakSurface, GeneratedAt: w.generated, Plan: w.plan, Faults: w.faults})
		if err != nil {
			return 0, tool.Fail(tool.ExitIO, err)
		}
		if err := writeWhole(opt.Surface, surface); err != nil {
			return 0, err
		}
	}
	if opt.Report != "" {
		if err := writeWhole(opt.Report, b); err != nil {
			return 0, err
		}
	}
	if opt.JUnit != "" {
		if err := tool.WriteFile(opt.JUnit, func(out io.Writer) error { return w.junit(out, reasons) }); err != nil {
			return 0, err
		}
	}
	answer := tool.Bytes(append(b, '\n'))
	if !opt.JSON {
		var text bytes.Buffer
		w.text(&text, reasons)
		answer = tool.Bytes(text.Bytes())
	}
	return w.code(), env.WriteOutput("-", answer)
}

// code is the exit code: what any fault shows counts.
func (w *whole) code() int {
	code := tool.ExitOK
	for i := range w.faults {
		switch r := &w.faults[i].Results; {
		case r.Failures > 0:
			return tool.ExitNo
		case !r.PassAll:
			code = tool.ExitCannot
		}
	}
	return code
}

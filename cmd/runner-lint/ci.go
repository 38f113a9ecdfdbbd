package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/sarif"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// levels of SARIF, by severity.
var levels = map[string]string{
	pack.Error.String(): sarif.LevelError, pack.Warning.String(): sarif.LevelWarning, pack.Info.String(): sarif.LevelNote,
}

// sarif has one result for each thing found, so that each is the same one in the next run. The file to show
// it at is the pack, if that is a file: nothing else in a repository says what is allowed.
func (r *result) sarif(w io.Writer) error {
	out := sarif.Report{Tool: "runner-lint", Version: tool.Version()}
	files := map[string]string{}
	for _, p := range r.opt.Packs {
		files[p.Name+"@"+p.Version] = p.File()
	}
	for i := range r.report.Results {
		x := &r.report.Results[i]
		out.Rules = append(out.Rules, sarif.Rule{ID: x.Rule, Text: x.Message, Help: x.Fix})
		if !isFinding(x) {
			continue
		}
		of, _, _ := strings.Cut(x.Rule, ":")
		found := x.Evidence
		if len(found) == 0 {
			found = []string{""}
		}
		for _, value := range found {
			sum := sha256.Sum256([]byte(x.Rule + "\x00" + x.Outcome + "\x00" + value))
			out.Findings = append(out.Findings, sarif.Finding{Rule: x.Rule, Level: levels[x.Severity], Message: sentence(x, value),
				File: files[of], Logical: value, Fingerprint: hex.EncodeToString(sum[:])})
		}
	}
	return out.Write(w)
}

// sentence is what a finding says. What a rule warns of was not seen where it could not be decided.
func sentence(x *schemas.LintResult, value string) string {
	switch {
	case x.Outcome == schemas.RuleUndecided:
		return "Not decided: " + x.Why
	case value != "":
		return x.Message + " Found: " + value
	}
	return x.Message
}

// junit has one case for each rule. A rule that could not be decided is an error, or skipped below the
// severity that fails: nothing reads as passed that was not looked at.
func (r *result) junit(w io.Writer) error {
	s := junit.Suite{Name: "runner-lint"}
	for i := range r.report.Results {
		x := &r.report.Results[i]
		of, id, _ := strings.Cut(x.Rule, ":")
		c := junit.Case{Name: id, Class: "runner-lint." + of}
		severity, _ := pack.ParseSeverity(x.Severity)
		fails := severity >= r.opt.FailOn
		switch {
		case x.Outcome == schemas.RuleViolated && fails:
			c.Outcome = junit.Failed
		case x.Outcome == schemas.RuleUndecided && fails:
			c.Outcome = junit.Broken
		case x.Outcome == schemas.RuleUndecided:
			c.Outcome = junit.Skipped
		}
		if c.Outcome != junit.Passed {
			c.Message, c.Text = sentence(x, ""), x.Why+"\n"+strings.Join(x.Evidence, "\n")
		}
		s.Cases = append(s.Cases, c)
	}
	return s.Write(w)
}

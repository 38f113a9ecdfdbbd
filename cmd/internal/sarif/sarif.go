// Package sarif writes findings as SARIF 2.1.0, the form in which GitHub and editors show them
// at lines of files.
package sarif

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Levels of findings.
const (
	LevelError   = "error"
	LevelWarning = "warning"
	LevelNote    = "note"
)

// MaxFindings are written of one run. GitHub refuses files with more than 25,000 and shows 5,000. The file
// says how many it leaves out.
const MaxFindings = 5000

// maxText is the length of one text of a finding, in characters.
const maxText = 1000

// schemaURI names the schema of the format. Nothing fetches it.
const schemaURI = "https://json.schemastore.org/sarif-2.1.0.json"

// Begins is how each file that Write writes begins.
const Begins = `{"$schema":"` + schemaURI + `"`

// FingerprintKey names the fingerprint of this runner's findings.
const FingerprintKey = "runnerFinding/v1"

// Rule is a kind of findings.
type Rule struct {
	ID   string
	Text string // one sentence
	Help string // what to do; may be empty
}

// Finding is one result. Its texts may be anything: they are made inert.
type Finding struct {
	Rule        string // the id of one of the rules
	Level       string // one of the levels
	Message     string
	File        string // path in the repository, with slashes; "" is no place
	Line        int    // from 1; 0 is the whole file
	Logical     string // what it is about, where that is no place in a file
	Fingerprint string // the same for the same finding of another run
}

// Report are the findings of one tool.
type Report struct {
	Tool     string
	Version  string
	Rules    []Rule
	Findings []Finding
}

type (
	text struct {
		Text string `json:"text"`
	}
	rule struct {
		ID               string `json:"id"`
		ShortDescription text   `json:"shortDescription"`
		Help             *text  `json:"help,omitempty"`
	}
	driver struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		Rules   []rule `json:"rules"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		StartLine int `json:"startLine"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   *region  `json:"region,omitempty"`
	}
	logical struct {
		Name string `json:"fullyQualifiedName"`
	}
	location struct {
		Physical *physical `json:"physicalLocation,omitempty"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	result struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      text              `json:"message"`
		Locations    []location        `json:"locations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints,omitempty"`
	}
	notification struct {
		Level   string `json:"level"`
		Message text   `json:"message"`
	}
	invocation struct {
		Successful    bool           `json:"executionSuccessful"`
		Notifications []notification `json:"toolExecutionNotifications,omitempty"`
	}
	run struct {
		Tool struct {
			Driver driver `json:"driver"`
		} `json:"tool"`
		Invocations []invocation `json:"invocations"`
		Results     []result     `json:"results"`
	}
	log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
)

// Write writes the report. The same report gives the same bytes.
func (r *Report) Write(w io.Writer) error {
	var one run
	one.Tool.Driver = driver{Name: r.Tool, Version: r.Version, Rules: []rule{}}
	one.Results = []result{}
	index := map[string]int{}
	for i, x := range r.Rules {
		index[x.ID] = i
		entry := rule{ID: x.ID, ShortDescription: text{Inert(x.Text)}}
		if x.Help != "" {
			entry.Help = &text{Inert(x.Help)}
		}
		one.Tool.Driver.Rules = append(one.Tool.Driver.Rules, entry)
	}
	for i := range r.Findings[:min(len(r.Findings), MaxFindings)] {
		f := &r.Findings[i]
		at, ok := index[f.Rule]
		if !ok {
			return fmt.Errorf("sarif: finding of the unknown rule %q", f.Rule)
		}
		one.Results = append(one.Results, f.result(at))
	}
	done := invocation{Successful: true}
	if n := len(r.Findings) - MaxFindings; n > 0 {
		done.Notifications = []notification{{LevelWarning, text{fmt.Sprintf("%d more findings are left out: a file has at most %d", n, MaxFindings)}}}
	}
	one.Invocations = []invocation{done}
	b, err := schemas.Marshal(log{schemaURI, "2.1.0", []run{one}})
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func (f *Finding) result(rule int) result {
	out := result{RuleID: f.Rule, RuleIndex: rule, Level: f.Level, Message: text{Inert(f.Message)}}
	var at location
	if f.File != "" {
		at.Physical = &physical{Artifact: artifact{(&url.URL{Path: f.File}).EscapedPath()}}
		if f.Line > 0 {
			at.Physical.Region = &region{f.Line}
		}
	}
	if f.Logical != "" {
		at.Logical = []logical{{verdict.Printable(f.Logical, maxText)}}
	}
	if at.Physical != nil || at.Logical != nil {
		out.Locations = []location{at}
	}
	if f.Fingerprint != "" {
		out.Fingerprints = map[string]string{FingerprintKey: f.Fingerprint}
	}
	return out
}

// links are what makes a link or a placeholder of the text of a message (SARIF 2.1.0, 3.11.5 and 3.11.6).
var links = strings.NewReplacer(`[`, `\[`, `]`, `\]`, `{`, `{{`, `}`, `}}`)

// Inert is a text of a message in which nothing is a link, a placeholder or invisible.
func Inert(s string) string { return links.Replace(verdict.Printable(s, maxText)) }

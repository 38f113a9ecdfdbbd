// Package junit writes results as the XML that test reports of CI systems are made of.
package junit

import (
	"encoding/xml"
	"io"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// MaxText is the length of one text, in characters. What is longer is cut, with … at its end.
const MaxText = 4000

// Begins is how each file that Write writes begins.
const Begins = xml.Header + "<testsuites>"

// Outcomes of a case.
const (
	Passed  = ""
	Failed  = "failure" // what was checked does not hold
	Broken  = "error"   // it could not be checked
	Skipped = "skipped" // there was nothing to check
)

// Case is one result. Its texts may be anything: they are made inert.
type Case struct {
	Name    string
	Class   string
	Outcome string // one of the outcomes
	Message string // in a line
	Text    string // more of it; may be empty
}

// Suite are the results of one tool.
type Suite struct {
	Name  string
	Cases []Case
}

type (
	detail struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	testcase struct {
		Class   string  `xml:"classname,attr"`
		Name    string  `xml:"name,attr"`
		Failure *detail `xml:"failure"`
		Error   *detail `xml:"error"`
		Skipped *detail `xml:"skipped"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   suite    `xml:"testsuite"`
	}
)

// Write writes the suite. The same suite gives the same bytes.
func (s *Suite) Write(w io.Writer) error {
	out := suite{Name: verdict.Printable(s.Name, MaxText), Tests: len(s.Cases)}
	for i := range s.Cases {
		c := &s.Cases[i]
		one := testcase{Class: verdict.Printable(c.Class, MaxText), Name: verdict.Printable(c.Name, MaxText)}
		d := &detail{verdict.Printable(c.Message, MaxText), verdict.Printable(c.Text, MaxText)}
		switch c.Outcome {
		case Failed:
			one.Failure, out.Failures = d, out.Failures+1
		case Broken:
			one.Error, out.Errors = d, out.Errors+1
		case Skipped:
			one.Skipped, out.Skipped = d, out.Skipped+1
		}
		out.Cases = append(out.Cases, one)
	}
	b, err := xml.MarshalIndent(suites{Suite: out}, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(append([]byte(xml.Header), b...), '\n'))
	return err
}

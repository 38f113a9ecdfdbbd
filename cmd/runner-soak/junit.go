package main

import (
	"io"

	"github.com/runner-evidence/runner/cmd/internal/junit"
)

// junit is one case for each run: one that failed is a failure, one that could not be judged an error.
func (w *whole) junit(out io.Writer, why map[string]map[int]string) error {
	s := junit.Suite{Name: "runner-soak"}
	for i := range w.faults {
		f := &w.faults[i]
		for j := range f.Runs {
			run := &f.Runs[j]
			c := junit.Case{Name: f.title(run), Class: "runner-soak." + f.Name}
			switch run.Status {
			case statusFail:
				c.Outcome = junit.Failed
			case statusInfra:
				c.Outcome = junit.Broken
			}
			if c.Outcome != junit.Passed {
				c.Message = reason(run, why[f.Name])
			}
			s.Cases = append(s.Cases, c)
		}
	}
	return s.Write(out)
}

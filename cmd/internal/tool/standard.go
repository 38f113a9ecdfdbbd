package tool

import (
	"os"

	"github.com/runner-evidence/runner/schemas"
)

// Files are standard input, output and error, for a program that is started.
func (e *Env) Files() []*os.File {
	return []*os.File{asFile(e.Stdin, os.Stdin), asFile(e.Stdout, os.Stdout), asFile(e.Stderr, os.Stderr)}
}

func asFile(v any, fallback *os.File) *os.File {
	if f, ok := v.(*os.File); ok {
		return f
	}
	return fallback
}

// feature is one line of --probe of a wrapper.
type feature struct {
	Feature string `json:"feature"`
	Works   bool   `json:"works"`
	Why     string `json:"why,omitempty"`
}

// Feature prints whether something works here. err says why not.
func (e *Env) Feature(name string, err error) error {
	f := feature{Feature: name, Works: err == nil}
	if err != nil {
		f.Why = err.Error()
	}
	line, failed := schemas.Marshal(f)
	if failed != nil {
		return failed
	}
	if _, failed = e.Stdout.Write(append(line, '\n')); failed != nil {
		return CannotWrite("standard output", failed)
	}
	return nil
}

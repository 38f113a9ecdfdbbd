package tool

import "io"

// Willing is a writer to somebody who may go: what is written then is lost there, and nowhere else. Err says whether it was.
type Willing struct {
	W   io.Writer
	Err error
}

// Write never fails.
func (c *Willing) Write(b []byte) (int, error) {
	if c.Err == nil {
		_, c.Err = c.W.Write(b)
	}
	return len(b), nil
}

// Print prints on standard output what a function writes that returns no error, as text for people is written. What could not be
// written is an error all the same.
func (e *Env) Print(write func(io.Writer)) error {
	w := &Willing{W: e.Stdout}
	if write(w); w.Err != nil {
		return CannotWrite("standard output", w.Err)
	}
	return nil
}

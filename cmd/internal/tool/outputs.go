package tool

import (
	"io"
	"path/filepath"
)

// Output is a file that a flag names.
type Output struct {
	Flag string
	What string               // what the tool writes there: a lint report
	Ours func(io.Reader) bool // whether a file that exists is one
}

// Outputs checks the files that flags name, before anything is done: each flag names a file of its own or a
// device, a file that exists is replaced only if the tool wrote it, or by --force, and a file can be made there. An empty name is no file.
func (e *Env) Outputs(list ...Output) error {
	flags := map[string]string{}
	for _, o := range list {
		name := e.Flag.String(o.Flag)
		if name == "" {
			continue
		}
		if name == "-" {
			return BadValue(o.Flag, name, "the name of a file")
		}
		if other := flags[filepath.Clean(name)]; other != "" && !IsDevice(name) {
			return Usagef("--%s and --%s name one file: expected a file for each", other, o.Flag)
		}
		flags[filepath.Clean(name)] = o.Flag
		if err := Replaceable(e.Flag.Bool("force"), name, o.What, o.Ours); err != nil {
			return err
		}
		probe, err := CreateAtomic(name)
		if err != nil {
			return CannotWrite(name, err)
		}
		probe.Abort()
	}
	return nil
}

// Begins recognizes a file by its first bytes.
func Begins(head string) func(io.Reader) bool {
	return func(r io.Reader) bool {
		b := make([]byte, len(head))
		_, err := io.ReadFull(r, b)
		return err == nil && string(b) == head
	}
}

// WriteFile writes a file, whole or not at all.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := CreateAtomic(name)
	if err != nil {
		return CannotWrite(name, err)
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return CannotWrite(name, err)
	}
	if err := f.Commit(); err != nil {
		return CannotWrite(name, err)
	}
	return nil
}

// WriteOutput is WriteFile for an output that may be "-": standard output.
func (e *Env) WriteOutput(name string, write func(io.Writer) error) error {
	if name != "-" {
		return WriteFile(name, write)
	}
	if err := write(e.Stdout); err != nil {
		return CannotWrite("standard output", err)
	}
	return nil
}

// Bytes writes bytes, for those who write an output.
func Bytes(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

package gatepolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/words"
	"github.com/runner-evidence/runner/schemas"
)

// drainTime is how long the output of a command may stay open after its end.
const drainTime = 5 * time.Second

// command is a policy that is a program: the input is its standard input, the decision its standard output.
type command struct {
	program string // the file
	words   []string
	digest  string
	errw    *os.File // its standard error; nil: nobody reads it
}

// NewExec is a policy that is a command: words as in a shell, without anything that a shell would act on. Its error has an
// exit code.
func NewExec(line string, errw *os.File) (*External, error) {
	list, err := words.Split(line)
	if err != nil || len(list) == 0 {
		if err == nil {
			err = errors.New("there are none")
		}
		return nil, tool.Usagef("--policy-exec: expected the words of a command: %w", err)
	}
	c := &command{words: list, errw: errw}
	if c.program, err = child.Look(list[0]); err != nil {
		return nil, child.Refusal(err, "nothing was decided")
	}
	if c.digest, err = c.sum(); err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	return &External{ref: gate.PolicyRef{Kind: gate.PolicyExec, Digest: c.digest}, evaluator: c, bound: externalTime}, nil
}

// sum is the digest of what decides: the words, the bytes of the program, and those of each file that a word names, as the
// script of an interpreter.
func (c *command) sum() (string, error) {
	program, err := digestOf(c.program)
	if err != nil {
		return "", err
	}
	files := []string{program}
	for _, w := range c.words[1:] {
		sum := ""
		if st, err := os.Stat(w); err == nil && st.Mode().IsRegular() {
			if sum, err = digestOf(w); err != nil {
				return "", err
			}
		}
		files = append(files, sum)
	}
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		texts[i] = schemas.Text(w)
	}
	b, err := schemas.Marshal([2][]string{texts, files})
	return schemas.DigestOf(b), err
}

// digestOf is the digest of a file.
func digestOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", tool.CannotRead(schemas.Text(file), err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", tool.CannotRead(schemas.Text(file), err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// errChanged is of a program that is not the one that the policy is named by.
var errChanged = errors.New("its program, or a file that its words name, has changed")

// Eval runs the command. Its program has to be the same before and after.
func (c *command) Eval(ctx context.Context, input []byte) ([]byte, error) {
	if now, err := c.sum(); err != nil || now != c.digest {
		return nil, errChanged
	}
	out, err := c.run(ctx, input)
	if now, e := c.sum(); err == nil && (e != nil || now != c.digest) {
		return nil, errChanged
	}
	return out, err
}

// run gives the command its input, and returns all that it writes.
func (c *command) run(ctx context.Context, input []byte) ([]byte, error) {
	errw := c.errw
	if errw == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		errw = null
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inWrite.Close()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		inRead.Close()
		return nil, err
	}
	defer outRead.Close()
	p, err := child.Start(child.Options{Name: c.words[0], Program: c.program, Args: c.words, Env: child.Environ(),
		Files: []*os.File{inRead, outWrite, errw}, OwnGroup: true})
	inRead.Close()
	outWrite.Close()
	if err != nil {
		return nil, err
	}
	go func() {
		inWrite.Write(input) // a command need not read all of it
		inWrite.Close()
	}()
	read := make(chan output, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(outRead, maxAnswer+1))
		if len(b) > maxAnswer {
			err = errLong
			outRead.Close()
		}
		read <- output{b, err}
	}()
	stop := context.AfterFunc(ctx, p.Kill)
	p.AwaitExit()
	stop()
	return waitFor(read, p.Reap()) // what the command left has its output too
}

type output struct {
	b   []byte
	err error
}

// waitFor is what the command wrote, if it ended well.
func waitFor(read <-chan output, end child.Ending) ([]byte, error) {
	select {
	case out := <-read:
		switch {
		case out.err != nil:
			return nil, out.err
		case end.Status() != 0:
			return nil, fmt.Errorf("the command %s", end)
		}
		return out.b, nil
	case <-time.After(drainTime):
		return nil, errors.New("the output of the command was still open after its end")
	}
}

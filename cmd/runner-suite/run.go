package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/schemas"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 1 << 30

// runner runs one suite.
type runner struct {
	o       *Options
	s       *suite
	out     *output
	ownExec bool // the program is the caller's
}

// run runs all cases. It returns how many did not pass; the error is one of writing.
func (r *runner) run(ctx context.Context) (failed int, err error) {
	report := suiteReport{Status: statusOK, SuiteID: r.s.id, World: r.s.world, Mem: empty{}, Sched: empty{}}
	for i := range r.s.cases {
		c := &r.s.cases[i]
		line := caseLine{Schema: schemas.SchemaSuiteCase, SuiteID: r.s.id, TaskID: c.task, Name: c.name}
		if report.Error != nil {
			line.Outcome, line.Why = notRun, "an earlier case could not run"
		} else {
			line = r.one(ctx, c, line)
		}
		if line.Error != nil && line.Outcome != passed {
			report.Status, report.Error = statusRunner, line.Error
		} else if line.Outcome == broken && report.Status == statusOK {
			report.Status, report.Stderr = statusRuntime, line.Why
		}
		if report.Cases++; line.Outcome == passed {
			report.Passed++
		} else {
			failed++
		}
		if err := r.out.line(&line); err != nil {
			return failed, err
		}
	}
	report.Failed = uint64(failed)
	return failed, r.out.report(&report)
}

// one runs one case.
func (r *runner) one(ctx context.Context, c *testCase, line caseLine) caseLine {
	if r.s.world == worldOpen {
		if e := preflight(r.o.Root, c.requires); e != nil || c.preflight != 0 {
			line.Error = e
			switch {
			case e == nil:
				line.Outcome, line.Why = failedCase, fmt.Sprintf("the required files are there, expected %d", c.preflight)
			case e.CodeU32 == c.preflight:
				line.Outcome = passed
			default:
				line.Outcome, line.Why = broken, e.Message
			}
			return line
		}
	}
	answer, err := r.execute(ctx, c.input)
	if err != nil {
		line.Outcome, line.Why = broken, err.Error()
		return line
	}
	line.Outcome, line.Why = compare(answer, c)
	if line.Outcome != passed {
		line.Expected, line.Actual = &c.expected, &answer
	}
	return line
}

// execute gives a case to the program.
func (r *runner) execute(ctx context.Context, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	argv := slices.Clone(r.o.Command)
	if !r.ownExec && r.s.policy != "" {
		argv = append(argv, "--policy", "{policy}")
	}
	fill := strings.NewReplacer("{world}", r.s.world, "{policy}", r.s.policy, "{program}", r.s.program)
	for i := range argv {
		argv[i] = fill.Replace(argv[i])
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = r.o.Root, bytes.NewReader(input), time.Second
	var out, errs limited
	out.most, errs.most = maxAnswer, 4096
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the program was still running after %v", r.o.Timeout)
	case err != nil:
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return nil, errors.New(strings.TrimSuffix(argv[0]+": "+err.Error()+": "+said, ": "))
	}
	return out.Bytes(), nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	if room := l.most - l.Len(); len(b) > room {
		l.Buffer.Write(b[:room])
		return len(b), nil
	}
	return l.Buffer.Write(b)
}

// compare compares an answer with what is expected: results by what they mean, because a result without a response has
// two widths; everything else by its bytes.
func compare(answer []byte, c *testCase) (outcome, why string) {
	want, err := proc.ParseResult(c.expected)
	have, haveErr := proc.ParseResult(answer)
	switch {
	case c.code != 0 && haveErr != nil:
		return failedCase, fmt.Sprintf("the answer is no result: %v", haveErr)
	case c.code != 0 && uint32(have.Code) != c.code:
		return failedCase, fmt.Sprintf("the code is %d, expected %d", have.Code, c.code)
	case bytes.Equal(answer, c.expected):
		return passed, ""
	case err != nil:
		return failedCase, "the answer has other bytes"
	case haveErr != nil:
		return failedCase, fmt.Sprintf("the answer is no result: %v", haveErr)
	case have.Code != want.Code || have.Flags != want.Flags:
		return failedCase, fmt.Sprintf("it is %s, expected %s", said(have), said(want))
	case have.Code != 0:
		return passed, ""
	}
	for _, x := range []struct {
		what       string
		have, want string
	}{
		{"exit code", fmt.Sprint(have.ExitCode), fmt.Sprint(want.ExitCode)}, {"flags", fmt.Sprint(have.RespFlags), fmt.Sprint(want.RespFlags)},
		{"standard output", string(have.Stdout), string(want.Stdout)}, {"standard error", string(have.Stderr), string(want.Stderr)},
	} {
		if x.have != x.want {
			return failedCase, fmt.Sprintf("%s is %.200q, expected %.200q", x.what, x.have, x.want)
		}
	}
	return passed, ""
}

// said is a result in a word.
func said(s *proc.Result) string {
	if s.Code == 0 {
		return "a response"
	}
	return s.Code.String()
}

// Outcomes of a case, with those of JUnit.
const (
	passed     = "passed"
	failedCase = "failed"  // the answer is another
	broken     = "broken"  // there is no answer
	notRun     = "skipped" // an earlier case could not run
)

var junitOutcomes = map[string]string{passed: junit.Passed, failedCase: junit.Failed, broken: junit.Broken, notRun: junit.Skipped}

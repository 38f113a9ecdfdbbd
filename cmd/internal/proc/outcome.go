package proc

import (
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/clock"
)

// Outcome is what became of a request.
type Outcome struct {
	Result
	Request *Request // nil if it is not valid
	Verdict Verdict
	Why     string // for people, of a result without a response
	PID     int    // of the process; 0 if none was started
	Tool    string // as which the request is recorded

	start uint64 // when it came, CLOCK_MONOTONIC in ns
}

// Tools, as the decision log names them.
const (
	ToolRun     = "os.process.run_capture"
	ToolCapture = "os.process.spawn_capture"
	ToolPiped   = "os.process.spawn_piped"
	ToolPool    = "os.process.pool"
)

func (o *Outcome) fail(c Code, why string) *Outcome {
	o.Code, o.Why = c, why
	return o
}

// Decide parses a request and its limits and asks the policy. It looks at no file. The result has a code if there
// is nothing to run.
func (r *Runner) Decide(request, caps []byte) (*Outcome, *Caps) {
	return r.decide(ToolRun, request, caps)
}

// decide decides a request that is recorded as that of a tool.
func (r *Runner) decide(tool string, request, caps []byte) (*Outcome, *Caps) {
	o, c := r.judge(&Outcome{Tool: tool, start: clock.Monotonic()}, request, caps)
	return r.refused(o), c
}

func (r *Runner) judge(o *Outcome, request, caps []byte) (*Outcome, *Caps) {
	q, err := ParseRequest(request)
	if err != nil {
		return o.fail(InvalidRequest, err.Error()), nil
	}
	c, err := ParseCaps(caps)
	if err != nil {
		return o.fail(InvalidRequest, err.Error()), nil
	}
	o.Request = q
	o.Verdict = Verdict{Allow: true, Program: string(q.Argv[0]), TimeoutMS: c.TimeoutMS}
	if r.Policy != nil {
		if o.Verdict = r.Policy.Decide(q, c); !o.Verdict.Allow {
			return o.fail(PolicyDenied, o.Verdict.Why), nil
		}
	}
	return o, c
}

// limit is one of what a process may write, for people who are to find what to change.
type limit struct{ of, key string }

var (
	stdoutLimit = limit{"standard output has", "max_stdout_bytes"}
	stderrLimit = limit{"standard error has", "max_stderr_bytes"}
	totalLimit  = limit{"both outputs have", "max_total_bytes"}
)

// over says that a limit was passed.
func (l limit) over(most uint64) string {
	return fmt.Sprintf("%s more than %d bytes (%s in the caps of the request)", l.of, most, l.key)
}

// overTime says that the time was over, and whose limit that was: a policy gives a request one that has none.
func (c *Caps) overTime(ms uint32) string {
	if c.TimeoutMS == 0 {
		return fmt.Sprintf("still running after %d ms (the bound of the policy: the request has no timeout_ms in its caps)", ms)
	}
	return fmt.Sprintf("still running after %d ms (timeout_ms in the caps of the request)", ms)
}

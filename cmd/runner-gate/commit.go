package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// change is one commit.
type change struct {
	archive   string
	plan      *gate.Plan
	digest    string // of the plan
	pol       *policies
	keys      []*attestation.PublicKey // that may approve
	approvals []*gate.Approval
	to        string
	journal   string
	sender    *sender
}

// commit makes the changes of a plan.
func commit(ctx context.Context, env *tool.Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, terminate)
	defer stop()
	c, err := commitOptions(ctx, env)
	if err != nil {
		return err
	}
	defer c.pol.close()
	res, err := c.commit(ctx, env)
	if err != nil {
		return err
	}
	return printResult(env, res)
}

func commitOptions(ctx context.Context, env *tool.Env) (*change, error) {
	const example = "runner-gate commit run.tar.gz --plan plan.json --policy gate.yaml --approval approval.jsonl --to DIR --journal JDIR"
	f := env.Flag
	if err := env.NotEmpty("plan", "to", "journal", "policy", "policy-wasm", "policy-exec", "data", "entrypoint"); err != nil {
		return nil, err
	}
	file, err := env.One("the archive", example)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"plan", "to", "journal"} {
		if f.String(name) == "" {
			return nil, tool.Missing("--"+name, example)
		}
	}
	c := &change{archive: file, to: f.String("to"), journal: f.String("journal")}
	if c.sender, err = newSender(env); err != nil {
		return nil, err
	}
	extra, err := attestation.ReadPublic(f.StringSlice("public-key"))
	if err != nil {
		return nil, err
	}
	if c.plan, _, c.digest, err = readPlan(f.String("plan")); err != nil {
		return nil, err
	}
	if c.pol, err = readPolicies(ctx, env, false); err != nil {
		return nil, err
	}
	c.keys = append(c.pol.keys(), extra...)
	if c.pol.none() && (len(extra) == 0 || len(f.StringSlice("approval")) == 0) {
		c.pol.close()
		return nil, tool.Fail(tool.ExitUsage, errors.New("nothing here says that the decision of the plan is right: expected the policy, or an approval and the key that made it"), example)
	}
	if c.approvals, err = readApprovals(f.StringSlice("approval"), c.plan, c.digest, c.keys, time.Now()); err != nil {
		c.pol.close()
		return nil, err
	}
	return c, nil
}

// commit checks that the plan is that of the archive, allowed and approved, and makes its changes.
func (c *change) commit(ctx context.Context, env *tool.Env) (*journal.Result, error) {
	r, err := open(ctx, env, c.archive)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := c.same(ctx, r); err != nil {
		return nil, err
	}
	if refused := c.plan.Refused(); len(refused) > 0 {
		return nil, tool.Fail(tool.ExitNo, fmt.Errorf("%w: %s", gate.ErrDenied, strings.Join(refused, "; ")))
	}
	required := c.plan.Approvals
	if c.pol.none() { // the decision is only the word of who approved it
		required = append(required, gate.Requirement{Why: "a commit without the policy", Count: 1})
	}
	if err := gate.Enough(required, c.approvals, c.keys); err != nil {
		return nil, tool.Fail(tool.ExitNo, err, "runner-gate approve --plan plan.json --key KEY -o approval.jsonl")
	}
	if err := c.pol.stillAllowed(ctx, c.plan, time.Now()); err != nil {
		return nil, tool.Fail(tool.ExitNo, err)
	}
	tx, err := c.transaction(r)
	if err != nil {
		return nil, err
	}
	d, err := c.driver()
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(outside("journal", c.journal, c.to), writable(c.to)); err != nil {
		return nil, err
	}
	j, err := journal.Open(c.journal)
	if err != nil {
		return nil, journalError(err)
	}
	defer j.Close()
	res, err := j.Commit(ctx, tx, d)
	for _, lost := range notKept(res) {
		env.Warnf("not kept: %s", lost)
	}
	return res, journalError(err)
}

// same checks that the plan is what the archive and the policies give now.
func (c *change) same(ctx context.Context, r *recorded) error {
	stale := func(format string, a ...any) error {
		return tool.Fail(tool.ExitNo, fmt.Errorf("%w: %s", gate.ErrStale, fmt.Sprintf(format, a...)), "make a plan again, and let it be approved")
	}
	if r.identity != c.plan.Archive {
		return stale("the plan is about the archive %s, this one is %s", c.plan.Archive, r.identity)
	}
	now, err := r.makePlan(c.plan.AcceptPartial)
	if err != nil {
		return err
	}
	if c.pol.none() {
		now.Policies, now.Decision, now.Approvals = c.plan.Policies, c.plan.Decision, c.plan.Approvals
		for i := range min(len(now.Intents), len(c.plan.Intents)) {
			now.Intents[i].Rollback = c.plan.Intents[i].Rollback
		}
	} else if refs := c.pol.refs(); !sameRefs(refs, c.plan.Policies) {
		return stale("other policies decided about the plan than those given here: was a policy edited?")
	} else if err := c.pol.decide(ctx, now); err != nil {
		return err
	}
	b, err := now.Bytes()
	if err != nil {
		return tool.Fail(tool.ExitInput, err)
	}
	own, err := c.plan.Bytes()
	if err != nil {
		return tool.Fail(tool.ExitInput, err)
	}
	if !bytes.Equal(b, own) {
		return stale("the archive and the policies give another plan now: was the plan edited, or made by another release?")
	}
	return nil
}

// notKept is what could not be kept of what was replaced.
func notKept(r *journal.Result) []string {
	if r == nil {
		return nil
	}
	return r.NotKept
}

// journalError gives an error of the journal its exit code and its stable code.
func journalError(err error) error {
	var conflict *journal.ConflictError
	var coded *tool.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.As(err, &conflict):
		var lines []string
		for _, x := range conflict.Conflicts {
			lines = append(lines, x.Path+": "+x.Why)
		}
		if more := conflict.Count - len(lines); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
		return tool.Fail(tool.ExitNo, &inConflict{conflict, strings.Join(lines, "; ")}, "record the run again with a base that is as the directory is now")
	case errors.Is(err, journal.ErrState):
		return tool.Fail(tool.ExitNo, err)
	case errors.Is(err, journal.ErrUnsupported):
		return tool.Fail(tool.ExitCannot, err)
	}
	return tool.Fail(tool.ExitIO, err)
}

// inConflict is gate.ErrConflict with all that is in conflict.
type inConflict struct {
	*journal.ConflictError
	all string
}

func (c *inConflict) Error() string {
	return gate.ErrConflict.Error() + ": nothing was changed, the directory is not as the plan has it: " + c.all
}

func (c *inConflict) Unwrap() []error { return []error{gate.ErrConflict, c.ConflictError} }

// content opens the bytes of new files: blobs of the archive, and what intents write.
func (c *change) content(r *recorded, written map[string][]byte) func(string) (io.ReadCloser, error) {
	return func(digest string) (io.ReadCloser, error) {
		if b, ok := written[digest]; ok {
			return io.NopCloser(bytes.NewReader(b)), nil
		}
		if digest == schemas.DigestOf("") {
			return io.NopCloser(strings.NewReader("")), nil
		}
		return os.Open(r.blob(digest))
	}
}

package rego

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// grace is what an evaluation has to end after its time is over. Code of the module stops at once; only
// the compilation and a builtin that is at work do not.
const grace = time.Second

// fault ends an evaluation: something that must not become an undefined value.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

func faultf(format string, a ...any) error { return &fault{fmt.Sprintf(format, a...)} }

func isFault(err error) bool {
	var own *fault
	return errors.As(err, &own)
}

// bounded runs f alone and within the time. If f does not end, the policy is of no more use.
func (p *Policy) bounded(ctx context.Context, f func(context.Context) error) error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.stuck {
		return &Error{Err: errors.New("an earlier evaluation of this policy still runs")}
	}
	if p.closed {
		return &Error{Err: errors.New("the policy is closed")}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Time, fmt.Errorf("the policy did not end within %s", p.options.Time))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("the policy could not be run: %v", v)
			}
		}()
		done <- f(ctx)
	}()
	select {
	case err := <-done:
		return p.explained(ctx, err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return p.explained(ctx, err)
	case <-time.After(grace):
		p.stuck = true
		return &Error{Err: context.Cause(ctx)}
	}
}

// explained is the error of a run in words for people.
func (p *Policy) explained(ctx context.Context, err error) error {
	var known *Error
	var own *fault
	var exit *sys.ExitError
	switch {
	case err == nil, errors.Is(err, ErrUndefined):
		return err
	case errors.As(err, &known):
		return known
	case errors.As(err, &exit), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		if ctx.Err() != nil {
			return &Error{Err: context.Cause(ctx)}
		}
		return &Error{Err: errors.New("the module was stopped")}
	case errors.As(err, &own):
		return &Error{Err: errors.New(own.text)}
	}
	return &Error{Err: fmt.Errorf("the policy failed: %s", firstLine(err))}
}

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// readRules reads what is to be enforced. With any fault in it, nothing starts.
func readRules(file string) (*schemas.NetworkRules, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, schemas.MaxRulesSize+1))
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	rules, err := schemas.ParseNetworkRules(b)
	if err != nil {
		return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("cannot enforce here: %s: %w", file, err))
	}
	return rules, nil
}

// refusals adds what the kernel counted. Without rules there is nothing to add.
func (r *captureRun) refusals(counters map[string]uint64) error {
	by, err := r.ses.Blocked()
	if err != nil || r.opt.rules == nil {
		return err
	}
	counters[schemas.CounterBlocked] = 0
	for number, n := range by {
		counters[fmt.Sprint(schemas.CounterBlockedByRule, number)] = n
		counters[schemas.CounterBlocked] += n
	}
	counters[schemas.CounterNetworkRules] = r.opt.rules.Numbers()
	return nil
}

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// ruleSet is a set of rules for the whole run.
type ruleSet interface {
	*schemas.NetworkRules | *schemas.FileRules
	Numbers() uint64
	Policy() string
	IDs() schemas.RuleIDs
}

// readRules reads what is to be enforced, nothing without a file. With any fault in it,
// nothing starts.
func readRules[T ruleSet](file string, parse func([]byte) (T, error)) (T, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, schemas.MaxRulesSize+1))
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	rules, err := parse(b)
	if err != nil {
		return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("cannot enforce here: %s: %w", file, err))
	}
	return rules, nil
}

// refusals adds what was refused under rules of one kind, by their numbers.
func refusals[T ruleSet](counters map[string]uint64, e *schemas.Enforcement, rules T, by map[uint32]uint64) {
	if rules == nil {
		return
	}
	counters[e.Blocked] = 0
	for number, n := range by {
		counters[fmt.Sprint(e.ByRule, number)] = n
		counters[e.Blocked] += n
	}
	counters[e.Rules] = rules.Numbers()
}

// enforcing says in the facts which rules of one kind are in force.
func enforcing[T ruleSet](facts map[string]string, e *schemas.Enforcement, rules T) {
	facts[e.State] = schemas.RulesOff
	if rules != nil {
		facts[e.State], facts[e.Policy], facts[e.IDs] = schemas.RulesEnforced, rules.Policy(), rules.IDs().Fact()
	}
}

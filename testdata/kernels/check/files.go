//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/kernels/limits"
)

// tried is one line of the workload bypass.
type tried struct {
	Attempt, Op, Outcome, Why string
}

// fileRules runs every attempt to get around file rules under one mechanism. What gets
// through must be what the table of limits says, and each refusal must be in the record.
func fileRules(m *machine, mechanism string) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	table, err := limits.Read()
	if err != nil {
		return "", err
	}
	dir := m.dir()
	chosen := table.Attempts(mechanism)
	if o, err := call(m.command("bypass", append([]string{"_setup", dir}, chosen...)...)); err != nil || o.code != 0 {
		return "", fmt.Errorf("bypass _setup: %v %v", o, err)
	}
	o, err := call(m.command("bypass", append([]string{"_policy", dir}, chosen...)...))
	if err != nil || o.code != 0 {
		return "", fmt.Errorf("bypass _policy: %v %v", o, err)
	}
	if err := os.WriteFile(dir+"/policy.yaml", []byte(o.stdout), 0o644); err != nil {
		return "", err
	}
	flags := []string{"--policy", dir + "/policy.yaml", "--file-mechanism", mechanism}
	r, err := m.measure(flags, append([]string{m.tool("bypass"), dir}, chosen...)...)
	if r != nil && r.code == 4 {
		return "", absent(strings.TrimSpace(r.stderr))
	}
	if err != nil {
		return "", err
	}
	return r.compareFiles(table, mechanism)
}

// compareFiles compares the outcome of each attempt with the table and with the record.
func (r *record) compareFiles(table limits.Table, mechanism string) (string, error) {
	var all []tried
	for l := range strings.Lines(r.stdout) {
		var t tried
		if err := json.Unmarshal([]byte(l), &t); err != nil {
			return "", err
		}
		all = append(all, t)
	}
	numbers := ruleNumbers(all)
	var wrong, impossible []string
	count := map[string]int{}
	for _, t := range all {
		count[t.Outcome]++
		want := table.Outcome(t.Attempt, mechanism)
		if t.Outcome == limits.Cannot {
			impossible = append(impossible, t.Attempt+" ("+t.Why+")")
		} else if t.Outcome != want {
			wrong = append(wrong, fmt.Sprintf("%s: %s, expected %s %s", t.Attempt, t.Outcome, want, t.Why))
		}
		if why := r.blockedAs(t, numbers[t.Op], mechanism); why != "" {
			wrong = append(wrong, t.Attempt+": "+why)
		}
	}
	if len(all) != len(table.Attempts(mechanism)) {
		wrong = append(wrong, fmt.Sprintf("%d attempts of %d were made", len(all), len(table.Attempts(mechanism))))
	}
	wrong = append(wrong, r.blockedSums()...)
	if len(wrong) > 0 {
		return "", fmt.Errorf("%d of %d are not as expected: %s", len(wrong), len(all), strings.Join(wrong, "; "))
	}
	detail := fmt.Sprintf("%d attempts: %d refused, each with its line; %d got through, as the table of limits says", len(all), count[limits.Refused], count[limits.Through])
	if len(impossible) > 0 {
		detail += "; not possible here: " + strings.Join(impossible, ", ")
	}
	return detail, r.complete()
}

// ruleNumbers are the numbers of the rules by operation: those of the policy file that the
// workload prints, in its order.
func ruleNumbers(all []tried) map[string]uint32 {
	numbers := map[string]uint32{}
	for _, op := range schemas.RuleOps {
		if slices.ContainsFunc(all, func(t tried) bool { return t.Op == op }) {
			numbers[op] = uint32(len(numbers) + 1)
		}
	}
	return numbers
}

// blockedAs says what is wrong with the refusals that the record has of an attempt.
func (r *record) blockedAs(t tried, rule uint32, mechanism string) string {
	var own []blocked
	for _, b := range r.blocked {
		if strings.Contains(b.path+"/", "/"+t.Attempt+"/") {
			own = append(own, b)
		}
	}
	switch {
	case t.Outcome == limits.Refused && len(own) == 0:
		return "refused, and the record has no file_blocked"
	case t.Outcome == limits.Through && len(own) > 0:
		return fmt.Sprintf("got through, and the record says that it was blocked: %v", own)
	}
	for _, b := range own {
		if b.rule != rule || b.source != mechanism || b.hook != t.Op && b.hook != schemas.HookMove {
			return fmt.Sprintf("recorded as %v, expected rule %d by %s", b, rule, mechanism)
		}
	}
	return ""
}

// blockedSums compares the refusals of the raw stream, the lines and the counters.
func (r *record) blockedSums() (wrong []string) {
	lines := r.having(schemas.EventFileBlocked, "")
	counted := r.capture.Counters[schemas.CounterFileBlocked]
	if lines != len(r.blocked) || counted != uint64(lines) {
		wrong = append(wrong, fmt.Sprintf("%d refusals in the raw stream, %d lines, %d counted", len(r.blocked), lines, counted))
	}
	return wrong
}

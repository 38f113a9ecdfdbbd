//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/kernels/limits"
	"github.com/runner-evidence/runner/testdata/workload/modules"
)

// tried is one line of the workload bypass.
type tried struct {
	Attempt, Op, Outcome, Why string
}

// fileRules runs every attempt to get around file rules under one mechanism. What gets
// through must be what the table of limits says, and each refusal must be in the record.
func fileRules(m *machine, name string) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	table, err := limits.Read()
	if err != nil {
		return "", err
	}
	mechanism, ok := table.Lookup(name)
	if !ok {
		return "", fmt.Errorf("limits.json has no mechanism %s", name)
	}
	chosen, impossible, err := possible(m, table.Of(name))
	if err != nil {
		return "", err
	}
	r, err := m.bypass(mechanism, mechanism.Policy, chosen)
	if r != nil && r.code == 4 {
		return "", m.missing(name, strings.TrimSpace(r.stderr))
	}
	if err != nil {
		return "", err
	}
	detail, err := r.compareFiles(table, mechanism, len(chosen))
	if err != nil {
		return "", err
	}
	if len(impossible) > 0 {
		detail += "; not possible here: " + strings.Join(impossible, ", ")
	}
	return detail, errors.Join(r.complete(), m.starts(table, mechanism))
}

// missing is the error of a mechanism that does not enforce the rules: absent if this kernel
// does not have it, or an older form of it.
func (m *machine) missing(mechanism, why string) error {
	module := map[string]string{schemas.SourceLSM: "bpf", schemas.SourceLandlock: "landlock"}[mechanism]
	said, _ := probe(m)
	attached := strings.Contains(said, "file rules by "+mechanism+": "+schemas.CaptureAttached)
	if (attached || modules.Has(module)) && !strings.Contains(why, " before ABI ") && !strings.Contains(why, "bpf_loop") {
		return fmt.Errorf("this kernel has it: %s; %s", why, said)
	}
	return absent(why)
}

// possible are the attempts that get through on this machine without rules.
func possible(m *machine, all []string) (chosen, impossible []string, err error) {
	if m.free == nil {
		if m.free, err = m.unruled(); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range m.free {
		switch {
		case !slices.Contains(all, t.Attempt):
		case t.Outcome == limits.Through:
			chosen = append(chosen, t.Attempt)
		default:
			impossible = append(impossible, t.Attempt+" ("+t.Why+")")
		}
	}
	return chosen, impossible, nil
}

// unruled makes all attempts without rules.
func (m *machine) unruled() ([]tried, error) {
	dir := m.dir()
	if err := m.setup(dir, nil); err != nil {
		return nil, err
	}
	o, err := call(m.command("bypass", dir))
	if err != nil || o.code != 0 {
		return nil, fmt.Errorf("bypass: %v %v", o, err)
	}
	return parseTried(o.stdout)
}

func (m *machine) setup(dir string, chosen []string) error {
	o, err := call(m.command("bypass", append([]string{"_setup", dir}, chosen...)...))
	if err != nil || o.code != 0 {
		return fmt.Errorf("bypass _setup: %v %v", o, err)
	}
	return nil
}

// bypass makes attempts under a form of policy.
func (m *machine) bypass(mechanism limits.Mechanism, form string, chosen []string) (*record, error) {
	dir := m.dir()
	work, policy := dir+"/w", dir+"/policy.yaml"
	if err := m.setup(work, chosen); err != nil {
		return nil, err
	}
	o, err := call(m.command("bypass", append([]string{"_" + form, work}, chosen...)...))
	if err != nil || o.code != 0 {
		return nil, fmt.Errorf("bypass _%s: %v %v", form, o, err)
	}
	if err := os.WriteFile(policy, []byte(o.stdout), 0o644); err != nil {
		return nil, err
	}
	// The log of the run is where the rules deny everything, and bypass writes to it.
	logs := work + "/logs/secret"
	flags := []string{"--policy", policy, "--file-mechanism", mechanism.Name, "--agent-shim", schemas.ShimOpenAIAgents, "--sdk-log", dir + "/sdk.log"}
	r, err := m.normalized(m.captureIn(logs, dir+"/raw", "", flags, append([]string{m.tool("bypass"), work}, chosen...)))
	if err == nil && r.health.Counters[schemas.CounterFileRulesAuto] != 1 {
		err = fmt.Errorf("expected one automatic rule: %v", r.health.Counters)
	}
	return r, err
}

// starts checks that rules which the mechanism cannot enforce keep the command from
// starting. Those that it can enforce are among the attempts.
func (m *machine) starts(table limits.Table, mechanism limits.Mechanism) error {
	for _, s := range table.Starts {
		if !slices.Contains(s.RefusedBy, mechanism.Name) {
			continue
		}
		r, err := m.bypass(mechanism, s.Policy, s.Attempts)
		if r == nil {
			return err
		}
		if r.code != 4 || r.stdout != "" {
			return fmt.Errorf("%s, under %s: expected exit 4: %v", s.Rules, mechanism.Name, r.outcome)
		}
	}
	return nil
}

func parseTried(stdout string) (all []tried, err error) {
	for l := range strings.Lines(stdout) {
		var t tried
		if err := json.Unmarshal([]byte(l), &t); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// compareFiles compares the outcome of each attempt with the table and with the record.
func (r *record) compareFiles(table limits.Table, mechanism limits.Mechanism, made int) (string, error) {
	all, err := parseTried(r.stdout)
	if err != nil {
		return "", err
	}
	var wrong []string
	count := map[string]int{}
	for _, t := range all {
		count[t.Outcome]++
		if passes := table.Passes(t.Attempt, mechanism.Name); passes != (t.Outcome == limits.Through) {
			wrong = append(wrong, strings.TrimSpace(fmt.Sprintf("%s: %s %s", t.Attempt, t.Outcome, t.Why)))
		}
		if why := r.blockedAs(t, mechanism, table); why != "" {
			wrong = append(wrong, t.Attempt+": "+why)
		}
	}
	if len(all) != made {
		wrong = append(wrong, fmt.Sprintf("%d attempts of %d were made", len(all), made))
	}
	lines, counted := r.having(schemas.EventFileBlocked), r.health.Counters[schemas.CounterFileBlocked]
	if lines != len(r.blocked) || counted != uint64(lines) {
		wrong = append(wrong, fmt.Sprintf("%d refusals in the raw stream, %d lines, %d counted", len(r.blocked), lines, counted))
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("%d of %d are not as expected: %s", len(wrong), len(all), strings.Join(wrong, "; "))
	}
	return fmt.Sprintf("%d attempts: %d refused, each with its line; %d stopped before that; %d got through, as the table of limits says",
		len(all), count[limits.Refused], count[limits.Stopped], count[limits.Through]), nil
}

// blockedAs says what is wrong with the refusals that the record has of an attempt.
func (r *record) blockedAs(t tried, mechanism limits.Mechanism, table limits.Table) string {
	silent := table.Silent(t.Attempt, mechanism.Name)
	var own []blocked
	for _, b := range r.blocked {
		if slices.Contains(strings.Split(filepath.Clean(b.path), "/"), t.Attempt) {
			own = append(own, b)
		}
	}
	switch {
	case silent && len(own) > 0:
		return fmt.Sprintf("has a line, which limits.json does not expect: %v", own)
	case t.Outcome == limits.Refused && len(own) == 0 && !silent:
		return fmt.Sprintf("refused (%s), and the record has no file_blocked", t.Why)
	case t.Outcome == limits.Through && len(own) > 0:
		return fmt.Sprintf("got through, and the record says that it was blocked: %v", own)
	}
	rule, hooks := ruleOf(t.Op, mechanism.Policy)
	for _, b := range own {
		if b.rule != rule || b.source != mechanism.Name || !slices.Contains(hooks, b.hook) {
			return fmt.Sprintf("recorded as %+v, expected rule %d by %s", b, rule, mechanism.Name)
		}
	}
	return ""
}

// ruleOf is the number of the rule that refuses an operation in a form of policy, and the
// hooks that may report it. What one rule denies together may be reported as any of it.
func ruleOf(op, form string) (rule uint32, hooks []string) {
	hooks = []string{op, schemas.HookMove}
	if form != "each" {
		hooks = append(hooks, schemas.RuleOps[:]...)
	}
	switch {
	case form == "each":
		rule = uint32(slices.Index(schemas.RuleOps[:], op) + 1)
	case form == "all" && op == schemas.HookExec:
		rule = 2
	case form == "all":
		rule = 1
	}
	return rule, hooks
}

// having is how many lines a record has of a type.
func (r *record) having(typ int) (n int) {
	for _, l := range r.lines {
		if l.Type == typ {
			n++
		}
	}
	return n
}

package schemas

import (
	"errors"
	"slices"
)

// ruleLogs is the id of automatic rules.
const ruleLogs = "run-logs"

// AllowLogs returns the rules with automatic ones before them: what runner-exec itself gives
// to the command to write to can be written to, without a rule of the policy file. paths are
// those of the run's logs, as bytes and without symbolic links; those that may be written to
// anyway need no rule.
func (f *FileRules) AllowLogs(paths []string) *FileRules {
	out := *f
	out.Rules = nil
	for _, p := range paths {
		if _, denied := f.decide(p, HookWrite); denied {
			out.Rules = append(out.Rules, FileRule{ID: ruleLogs, Action: DecisionAllow, Path: Text(p), On: []string{HookWrite}})
		}
	}
	out.Rules = append(out.Rules, f.Rules...)
	return &out
}

// Automatic is how many of the rules are automatic. They come first, and refuse nothing.
func (f *FileRules) Automatic() (n uint64) {
	for i := range f.Rules {
		if f.Rules[i].Automatic() {
			n++
		}
	}
	return n
}

// Automatic reports whether runner-exec made the rule, and not the policy file.
func (r *FileRule) Automatic() bool { return r.Number == 0 }

func (r *FileRule) checkAutomatic() error {
	err := first(oneOf("id of an automatic rule", r.ID, ruleLogs), oneOf("its action", r.Action, DecisionAllow))
	if err == nil && !slices.Equal(r.On, []string{HookWrite}) {
		err = errors.New("an automatic rule is about writing only")
	}
	return err
}

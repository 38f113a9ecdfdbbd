package schemas

import (
	"errors"
	"fmt"
)

// MaxRulesSize is the most bytes of a rule set for the kernel.
const MaxRulesSize = 1 << 20

// parseRules parses what runner-exec passes to runner-capture for enforcement. runner-capture
// decides whether this kernel can enforce it.
func parseRules[T interface{ Check() error }](b []byte, what string, rules T) (T, error) {
	var none T
	if len(b) > MaxRulesSize {
		return none, fmt.Errorf("%s: %d bytes, at most %d", what, len(b), MaxRulesSize)
	}
	err := decode(b, rules)
	if err == nil {
		err = rules.Check()
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return rules, nil
}

// ruleHead is what all rules for the kernel have. A rule of the policy file that names several
// things is several rules with one head.
type ruleHead struct {
	number     uint32 // place of the rule in the policy file, from 1
	id, action string
}

func (r ruleHead) check() error {
	switch {
	case r.number == 0:
		return errors.New("number is 0, expected the rule's place in the policy file, from 1")
	case r.number > MaxRuleNumber:
		return fmt.Errorf("number is %d, at most %d", r.number, MaxRuleNumber)
	case !ValidRuleID(r.id):
		return fmt.Errorf("id is %.100q, expected 1 to %d of A-Z a-z 0-9 _ . -", r.id, MaxRuleID)
	}
	return oneOf("action", r.action, DecisionAllow, DecisionDeny)
}

// after says why a rule cannot follow the last one.
func (r ruleHead) after(last ruleHead) error {
	switch {
	case r.number < last.number:
		return fmt.Errorf("number %d after %d, expected the order of the policy file", r.number, last.number)
	case r.number == last.number && r != last && last != (ruleHead{}):
		return fmt.Errorf("number %d is rule %q above", r.number, last.id)
	}
	return nil
}

// highest is the highest number of the rules of a set, which are in the order of the policy
// file: as many rules as that has, even where a set leaves some out. A record that counts
// fewer could name a rule that it does not have.
func highest(rules int, number func(int) uint32) uint64 {
	if rules == 0 {
		return 0
	}
	return uint64(number(rules - 1))
}

package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// RuleID is the number of a rule, which kernel lines name, with the rule's id in the policy
// file. The fact of a capture and the note have them in the order of the numbers.
type RuleID struct {
	Number uint32
	ID     string
}

// RuleIDs is the ids of the rules of one kind.
type RuleIDs []RuleID

// ruleIDs are the ids of rules, in the order of their numbers. Automatic rules have number 0 and
// are in no policy file.
func ruleIDs(rules int, head func(int) ruleHead) (ids RuleIDs) {
	for i := range rules {
		if h := head(i); h.number > 0 && (len(ids) == 0 || ids[len(ids)-1].Number != h.number) {
			ids = append(ids, RuleID{h.number, h.id})
		}
	}
	return ids
}

// IDs are the ids of the rules, by number.
func (n *NetworkRules) IDs() RuleIDs {
	return ruleIDs(len(n.Rules), func(i int) ruleHead { return n.Rules[i].head() })
}

// IDs are the ids of the rules, by number.
func (f *FileRules) IDs() RuleIDs {
	return ruleIDs(len(f.Rules), func(i int) ruleHead { return f.Rules[i].head() })
}

// words are the ids as NUMBER=ID.
func (r RuleIDs) words() (list []string) {
	for _, x := range r {
		list = append(list, strconv.FormatUint(uint64(x.Number), 10)+"="+x.ID)
	}
	return list
}

// Fact is how a capture reports the ids.
func (r RuleIDs) Fact() string { return strings.Join(r.words(), " ") }

// Texts are the texts of the note.
func (r RuleIDs) Texts() (list []any) {
	for _, w := range r.words() {
		list = append(list, w)
	}
	return list
}

// Of is the id of a number, "" if there is none.
func (r RuleIDs) Of(number uint32) string {
	for _, x := range r {
		if x.Number == number {
			return x.ID
		}
	}
	return ""
}

// ParseRuleIDs reads what Fact writes.
func ParseRuleIDs(fact string) (RuleIDs, error) {
	if fact == "" {
		return nil, nil
	}
	return parseRuleIDs(strings.Split(fact, " "))
}

// RuleIDsOf are the ids in the texts of a note.
func RuleIDsOf(v NoteValues) (RuleIDs, error) {
	var words []string
	for i := range v {
		words = append(words, v[i].Value)
	}
	return parseRuleIDs(words)
}

// IDsIn are the ids of the rules of one kind in the notes of a record, nil where it does not have them.
func (e *Enforcement) IDsIn(notes []string) RuleIDs {
	for _, note := range notes {
		if v, err := e.IDsNote.Parse(note); err == nil {
			ids, _ := RuleIDsOf(v) // Parse has read it before
			return ids
		}
	}
	return nil
}

// parseRuleIDs reads words in the order of their numbers.
func parseRuleIDs(words []string) (ids RuleIDs, err error) {
	last := uint32(0)
	for _, w := range words {
		digits, id, _ := strings.Cut(w, "=")
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != digits || uint32(n) <= last || n > MaxRuleNumber || !ValidRuleID(id) {
			return nil, fmt.Errorf("says %.100q, expected NUMBER=ID, in the order of the numbers", w)
		}
		last = uint32(n)
		ids = append(ids, RuleID{last, id})
	}
	return ids, nil
}

// MaxRuleNumber is the highest number of a rule.
const MaxRuleNumber = 1<<16 - 1

// MaxRuleID is the most bytes of a rule's id.
const MaxRuleID = 64

// ValidRuleID reports whether a rule of a policy file can have an id.
func ValidRuleID(id string) bool {
	return id != "" && len(id) <= MaxRuleID && strings.IndexFunc(id, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

func checkRuleIDs(v NoteValues) error {
	_, err := RuleIDsOf(v)
	return err
}

package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// condition is one function of a rule and the moment at which it runs: for every line
// of a member, after a member, or after the last member. Exactly one of line and
// run is set.
type condition struct {
	member string // "" with run: after the last member; "" with line: of every member
	line   func(*verifier, *archive.Line)
	run    func(*verifier)
	needs  needs
	notes  bool // it finds nothing, and takes notes for a later check
}

// needs says what a check after the last member compares. It does not run where
// that could only repeat other findings: without the documents, or with faults in
// the lines.
type needs int

const (
	needsNothing needs = iota
	needsLayers        // sound layers
	needsHealth        // and the health
	needsReport        // and the report
)

// lines is a check of every line of a member that holds an event of type E.
func lines[E any](member string, f func(*verifier, *archive.Line, E)) condition {
	return condition{member: member, line: func(v *verifier, l *archive.Line) {
		if e, ok := l.Event.(E); ok {
			f(v, l, e)
		}
	}}
}

// noting is a function of the lines that takes notes for a later check.
func noting[E any](member string, f func(*verifier, *archive.Line, E)) condition {
	c := lines(member, f)
	c.notes = true
	return c
}

// anyLine is a check of every line of every member.
func anyLine(f func(*verifier, *archive.Line)) condition { return condition{line: f} }

// after is a check that runs when a member was read to its end.
func after(member string, f func(*verifier)) condition { return condition{member: member, run: f} }

// ofLayers is a check of what follows from the layers, after the last member.
func ofLayers(f func(*verifier)) condition { return condition{run: f, needs: needsLayers} }

// ofHealth is a check of the health, after the last member.
func ofHealth(f func(*verifier)) condition { return condition{run: f, needs: needsHealth} }

// ofReport is a check of the correlation report, after the last member.
func ofReport(f func(*verifier)) condition { return condition{run: f, needs: needsReport} }

// eachCondition calls f for the checks that hold for an archive, in table order.
func eachCondition(writtenByRunner bool, f func(condition)) {
	for _, r := range ruleTable {
		own := r.contract
		if writtenByRunner {
			own = r.profile
		}
		for _, c := range r.every {
			f(c)
		}
		for _, c := range own {
			f(c)
		}
	}
}

// lineConditions are the checks of one member's lines.
func lineConditions(member string, writtenByRunner bool) (out []func(*verifier, *archive.Line)) {
	eachCondition(writtenByRunner, func(c condition) {
		if c.line != nil && (c.member == "" || c.member == member) {
			out = append(out, c.line)
		}
	})
	return out
}

// runConditions runs the checks of one moment.
func (v *verifier) runConditions(now func(condition) bool) {
	eachCondition(v.writtenByRunner(), func(c condition) {
		if c.run != nil && now(c) {
			c.run(v)
		}
	})
}

// derive runs the checks of what follows from several members, after the last one.
// An optional layer does not decide whether the others can be compared.
func (v *verifier) derive() error {
	sound := v.sound(schemas.MemberEvents)
	for i := range schemas.Layers {
		if l := &schemas.Layers[i]; !l.Optional {
			sound = sound && v.sound(l.Member)
		}
	}
	health := sound && v.health != nil
	there := map[needs]bool{needsLayers: sound, needsHealth: health, needsReport: health && v.report != nil}
	v.runConditions(func(c condition) bool { return there[c.needs] })
	return v.err
}

// sound reports whether the member is there and its lines are without faults.
func (v *verifier) sound(member string) bool {
	if _, there := v.members[member]; !there {
		return false
	}
	for key := range v.alike {
		if key[1] == member && key[0] != archive.RuleSize && key[0] != archive.RuleDigest {
			return false
		}
	}
	return true
}

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// attack is one way to get a false record. To add one, write a file AREA.go in this folder
// with
//
//	func init() {
//		add(attack{name: "…", class: "A1", what: "…", run: …, judge: …})
//	}
//
// run does the thing, in a process of its own in the measured cgroup, as root, on a locked
// thread, with an empty working directory of its own. What the program itself can witness
// (getsockname, a CQE, a return value) it tells with world.say; an error of run means that
// the thing could not be tried and is a failure, unless it is notHere.
//
// judge is called after the run, outside. It first asks the witness that the thing happened
// as it claims (the file system, evidence.said, a server's log), and then says what the record
// makes of it. compare does this for most: it is given what happened, and nothing else of
// these types may be in the lines of the attack's processes. Verdicts: exact, declared (in
// the line or the notes of this archive), lie, failed (the witness does not bear the attack out).
//
// The attacks of one check run one after the other in one measured run, because each start costs
// time. So an attack whose effect on the record goes beyond its own lines is alone: counters and
// notes are those of the whole archive.
type attack struct {
	name  string // unique; letters, digits, blanks, "-", "_"
	class string // the class of lie that it is a variant of
	what  string // one sentence for the table

	run   func(w *world) error
	judge func(e *evidence) verdict

	chance   bool           // succeeds by chance: several rounds, and only in make attack
	alone    bool           // needs a run of its own
	ordinary bool           // an ordinary act: the record must not become doubtful by it
	user     bool           // runs without privileges
	flags    []string       // further flags of runner-exec; DIR is the attack's directory. Needs alone
	outside  func(o *world) // runs meanwhile in a process outside of the measured cgroup, in the same directory
	needs    func() string  // why this machine cannot show it, "" if it can

	// open says why the record still lies here. Such a row is listed and does not fail. When it
	// no longer lies, take this away.
	open string
}

// Verdicts.
const (
	isExact    = "exact"    // the record tells it as it was
	isDeclared = "declared" // the archive says that this is not known, or not exact
	isLie      = "LIE"      // the record passes for whole, and is wrong
	isFailed   = "failed"   // the attack could not be judged
	isNotHere  = "not here" // this kernel does not have what the attack needs
	isDoubtful = "DOUBTFUL" // an ordinary act, and the record does not pass for whole
)

type verdict struct{ result, detail string }

func exact() verdict { return verdict{isExact, ""} }

func declared(how string, args ...any) verdict {
	return verdict{isDeclared, fmt.Sprintf(how, args...)}
}

func lie(how string, args ...any) verdict { return verdict{isLie, fmt.Sprintf(how, args...)} }

func failed(how string, args ...any) verdict { return verdict{isFailed, fmt.Sprintf(how, args...)} }

// notHere is the error of run on a kernel that has no such thing.
type notHere string

func (n notHere) Error() string { return string(n) }

var registered []attack

func add(a attack) { registered = append(registered, a) }

// attacks are all attacks by class and name.
func attacks() []attack {
	slices.SortStableFunc(registered, func(a, b attack) int {
		if a.class != b.class {
			return cmp.Or(strings.Compare(a.class[:1], b.class[:1]), number(a.class)-number(b.class))
		}
		return strings.Compare(a.name, b.name)
	})
	return registered
}

// number is the number in a class like A12, 0 without.
func number(class string) (n int) {
	fmt.Sscanf(class[1:], "%d", &n)
	return n
}

func find(name string) *attack {
	for i := range registered {
		if registered[i].name == name {
			return &registered[i]
		}
	}
	return nil
}

// helpers are the programs that attacks start from this executable, by their first argument,
// which begins with "_".
var helpers = map[string]func(args []string){}

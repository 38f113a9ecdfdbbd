package testkit

import (
	"fmt"
	"os"
	"testing"
)

// Skipped begins every skip. `make test` prints these lines last, so that nobody takes a
// test that did not run for one that passed.
const Skipped = "SKIPPED, NOT TESTED"

// required is set where nothing of the kernel may be left out.
const required = "RUNNER_REQUIRE_BPF"

// Required reports whether a test that needs the kernel must run here: a skip is then
// a failure.
func Required() bool { return os.Getenv(required) == "1" }

// Skip ends a test that cannot run here and says what was not tested and why.
func Skip(t testing.TB, what string, why ...any) {
	t.Helper()
	t.Skip(reason(what, why))
}

// Note says that a part of a test did not run; the test goes on.
func Note(t testing.TB, what string, why ...any) {
	t.Helper()
	t.Log(reason(what, why))
}

// Missing is Skip for what this kernel, its privileges or an installed program must
// give: where everything must run it is a failure.
func Missing(t testing.TB, what string, why ...any) {
	t.Helper()
	SkipUnless(t, required, what, why...)
}

// SkipUnless is Skip where the environment variable is not 1: where it is, a test that
// cannot run is a failure.
func SkipUnless(t testing.TB, variable, what string, why ...any) {
	t.Helper()
	if os.Getenv(variable) == "1" {
		t.Fatalf("%s=1: %s must be tested here: %s", variable, what, fmt.Sprint(why...))
	}
	Skip(t, what, why...)
}

func reason(what string, why []any) string {
	if len(why) == 0 {
		return Skipped + ": " + what
	}
	return Skipped + ": " + what + ": " + fmt.Sprint(why...)
}

package testkit

import (
	"fmt"
	"os"
	"testing"
)

// Skipped is the beginning of every skip message. `make test` prints these lines last, so
// that nobody believes that a skipped test has passed.
const Skipped = "SKIPPED, NOT TESTED"

// required is set if every test that needs the kernel must run.
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

// Missing is Skip for a test that needs a feature of the kernel, privileges or an installed
// program. If Required, it is a failure.
func Missing(t testing.TB, what string, why ...any) {
	t.Helper()
	SkipUnless(t, required, what, why...)
}

// SkipUnless is Skip, except if the environment variable is 1: then a test that cannot run
// is a failure.
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

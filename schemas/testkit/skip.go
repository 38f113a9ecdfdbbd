package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Programs ends a test that calls programs which are not installed. RUNNER_REQUIRE_PROGRAMS=1
// makes this a failure: scripts/needs.sh installs them where it may.
func Programs(t testing.TB, what string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			SkipUnless(t, "RUNNER_REQUIRE_PROGRAMS", what, name, " is not installed")
		}
	}
}

// corpora names the folder of data that others wrote, which is not in the repository.
const corpora = "RUNNER_CORPORA"

// Corpora is a path in that folder. Without it the test is skipped; where it is, all of it must be.
func Corpora(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv(corpora)
	if root == "" {
		Skip(t, "data of another implementation", corpora, " names no folder with it")
	}
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(corpora, "=", root, ": ", err)
	}
	return path
}

func reason(what string, why []any) string {
	if len(why) == 0 {
		return Skipped + ": " + what
	}
	return Skipped + ": " + what + ": " + fmt.Sprint(why...)
}

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// toolsIn are the tools of this folder: a new one cannot be forgotten.
func toolsIn(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir(".")
	testkit.Must(t, err)
	for _, e := range list {
		if e.IsDir() && e.Name() != "internal" {
			names = append(names, e.Name())
		}
	}
	if len(names) < 20 {
		t.Fatalf("only %q were found", names)
	}
	return names
}

// placed is one way to call a tool. Flags and operands are in words of a command line; {r} is an archive.
type placed struct {
	word, flags, operands string // the word may be a flag that says that there is no command
	runs                  bool   // a command comes after the operands
}

// waysToCall are the ways to call each tool that differ in what their operands are.
var waysToCall = map[string][]placed{
	"runner-attest":    {{"", "--key no-key", "{r}", false}, {"", "--predicate test-result --key {k} -o -", "{r}", false}},
	"runner-box":       {{"", "--base no-base --run-id r", "", true}},
	"runner-capture":   {{"", "--probes own --redundant none", "spare", false}},
	"runner-clock":     {{"", "--seed 1 --start 2026-01-01T00:00:00Z", "", true}},
	"runner-correlate": {{"", "--checksum none", "{r}", false}},
	"runner-diff":      {{"", "--format json", "{r} {r}", false}, {"", "--lock no-lock", "{r}", false}, {"", "--exact", "{r} {r}", false}},
	"runner-exec":      {{"", "-q --archive {d}/no/run.tar.gz", "", true}},
	"runner-gate": {{"plan", "--json --policy no-policy", "{r}", false}, {"show", "--json", "no-plan", false}, {"approve", "--plan no-plan --key no-key", "spare", false},
		{"commit", "--plan no-plan --to no-dir", "{r}", false}, {"revert", "--journal no-journal", "spare", false}, {"status", "--json --journal no-journal", "spare", false},
		{"log", "--journal no-journal", "spare", false}, {"serve", "--dir no-dir", "spare", false}},
	"runner-lint": {{"", "--json --fail-on warning", "{r}", false}},
	"runner-net": {{"record", "--run-id r --upstream no", "", true}, {"deny", "--run-id r --live-ca no", "", true}, {"replay", "--run-id r --match-header a", "no-record", true},
		{"har", "--run-id r", "{r}", false}, {"prompts", "--run-id r", "{r}", false}},
	"runner-normalize": {{"", "--noise none --filtered", "no-stream", false}},
	"runner-otel":      {{"", "--generated-at 2026-01-01T00:00:00Z --traces /dev/null", "{r}", false}},
	"runner-pack":      {{"", "-q -o {d}/packed.tar.gz", "no-stream", false}},
	"runner-policy": {{"", "--policy no-policy", "", true}, {"--check no-policy", "--call {}", "spare", false}, {"--suggest no-log", "-q", "spare", false},
		{"--http 127.0.0.1:0", "--policy no-policy --upstream http://127.0.0.1:1/", "spare", false}},
	"runner-proc": {{"run", "--policy no-policy", "spare", false}, {"serve", "--policy no-policy", "spare", false}, {"map", "--worker no-worker", "spare", false},
		{"encode", "-v", "spare", false}, {"decode", "--as request", "spare", false}},
	"runner-replay": {{"", "--json --base no-base", "{r}", false}},
	"runner-show":   {{"", "--json --writes", "{r}", false}, {"", "--top 3", "{r}", false}},
	"runner-soak":   {{"", "--iterations 0 --seed 1", "", true}, {"--target {r}", "--json --seed 1", "{r} {r}", false}, {"--merge no-report", "-q", "no-other", false}},
	"runner-suite":  {{"", "--json --root no-root", "no-suite.json", false}},
	"runner-verify": {{"", "--json --explain", "{r}", false}, {"", "--require events>0 -v", "{r}", false}},
}

// TestFlagPlaces: in every tool, flags may stand before, between and after operands, up to -- or the command. What stands
// after those is never the tool's.
func TestFlagPlaces(t *testing.T) {
	dir := shortDir(t)
	joined, err := filepath.Abs("../testdata/runs/kernel-only/3-joined.ndjson")
	testkit.Must(t, err)
	archive, key := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "key.pem")
	for _, args := range [][]string{{"runner-pack", "-q", "-o", archive, joined}, {"runner-attest", "--generate-key", key}} {
		if o := call(t, command(t, args[0], args[1:]...)); o.code != 0 {
			t.Fatalf("%q: %s", args, o)
		}
	}
	fill := strings.NewReplacer("{r}", archive, "{d}", dir, "{k}", key)
	run := func(tool string, args ...string) outcome {
		c := command(t, tool, args...)
		c.Dir = dir
		return call(t, c)
	}
	all := toolsIn(t)
	for tool := range waysToCall {
		if !slices.Contains(all, tool) {
			t.Errorf("%s is no tool", tool)
		}
	}
	for _, tool := range all {
		if len(waysToCall[tool]) == 0 {
			t.Errorf("%s: this test does not know how it is called", tool)
		}
		for _, p := range waysToCall[tool] {
			flags, operands, word := strings.Fields(fill.Replace(p.flags)), strings.Fields(fill.Replace(p.operands)), strings.Fields(fill.Replace(p.word))
			var tail []string
			if p.runs {
				tail = []string{"--", "true", "--help", "--json"}
			}
			want := run(tool, slices.Concat(word, flags, operands, tail)...)
			if strings.Contains(want.stderr, "no flag") || strings.Contains(want.stderr, "comes after") || strings.HasPrefix(want.stdout, tool+" ") {
				t.Errorf("%s %v: %s", tool, p, want)
			}
			orders := [][]string{slices.Concat(word, operands, flags, tail), slices.Concat(flags, word, operands, tail)}
			if len(operands) > 1 {
				orders = append(orders, slices.Concat(word, operands[:1], flags, operands[1:], tail))
			}
			if p.runs { // the command begins where it stands
				orders = append(orders, slices.Concat(word, flags, operands, tail[1:]))
			}
			for _, args := range orders {
				if got := run(tool, args...); got != want {
					t.Errorf("%s %s:\n%s\nexpected\n%s", tool, strings.Join(args, " "), got, want)
				}
			}
			if p.runs {
				continue
			}
			for args, say := range map[string]string{"--no-such-flag": "there is no flag --no-such-flag", "--no-such-flag=1": "there is no flag --no-such-flag"} {
				if got := run(tool, slices.Concat(word, operands, []string{args})...); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, say) {
					t.Errorf("%s %s %s %s: %s", tool, p.word, p.operands, args, got)
				}
			}
			if got := run(tool, slices.Concat(word, operands, []string{"--help"})...); got.code != 0 || !strings.HasPrefix(got.stdout, tool+" ") {
				t.Errorf("%s %s %s --help: %s", tool, p.word, p.operands, got)
			}
		}
	}
}

// TestCommandKeepsItsFlags: the flags of a command that a tool runs reach it, also those that the tool has itself.
func TestCommandKeepsItsFlags(t *testing.T) {
	const printed = "--help -v -o x --version -- --run-id y\n"
	tail := append([]string{"sh", "-c", `echo "$@"`, "sh"}, strings.Fields(printed)...)
	calls := map[string][]string{"runner-clock": {"--seed", "1", "--start", "2026-01-01T00:00:00Z"}, "runner-box": {}, "runner-net": {"deny"}, "runner-exec": {"-q", "--archive", filepath.Join(t.TempDir(), "run.tar.gz")}}
	for tool, args := range calls {
		probed := tool
		if tool == "runner-exec" {
			probed = "runner-capture"
		}
		if o := call(t, command(t, probed, "--probe")); o.code != 0 {
			t.Logf("%s does not work here: %s", tool, o.stderr)
			continue
		}
		for _, mark := range [][]string{nil, {"--"}} {
			if o := call(t, command(t, tool, slices.Concat(args, mark, tail)...)); o.code != 0 || o.stdout != printed {
				t.Errorf("%s %q: %s", tool, mark, o)
			}
		}
	}
}

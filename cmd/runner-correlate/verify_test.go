package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestVerified: runner-verify accepts the archives of random worlds, and of the worlds
// of each code.
func TestVerified(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "building the other tools takes seconds; run without -short")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/runner-evidence/runner/cmd/runner-pack", "github.com/runner-evidence/runner/cmd/runner-verify")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	verify := func(name string, w world) {
		t.Helper()
		archive := filepath.Join(dir, "x.tar.gz")
		pack := exec.Command(filepath.Join(dir, "runner-pack"), "-o", archive)
		pack.Stdin = bytes.NewReader(w.run(t).out)
		if out, err := pack.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			return
		}
		if out, err := exec.Command(filepath.Join(dir, "runner-verify"), archive).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\nkernel\n%s\npolicy\n%s\nsdk\n%s", name, err, out, w.kernel, w.policy, w.sdk)
		}
	}
	verify("intents", asked(world{kernel: agent, policy: one, sdk: oneSDK, intents: oneIntent}))
	verify("no intents", asked(world{kernel: agent, intents: "\n", intentLog: &logHealth{}}))
	for seed := range uint64(60) {
		verify(fmt.Sprint("seed ", seed), randomWorld(rand.New(rand.NewPCG(seed, 77))))
	}
	for _, r := range append(statusRuns(t, "ordinary.txt"), statusRuns(t, "dishonest.txt")...) {
		verify(r.name, asked(r.world))
	}
	for name, c := range joinCases {
		verify(name, asked(joinWorld(c.policy, c.sdk)))
	}
	for _, c := range append(logCodeCases(), codeCases...) {
		if c.code != schemas.AmbiguityCgroupFailed { // runner-verify refuses such a record
			verify(c.code, asked(c.world))
		}
	}
}

// asked is the world of a run for which the logs that it has were requested. One to which nobody wrote is a sealed stream then.
func asked(w world) world {
	seal := func(text string, log **logHealth) {
		if *log == nil && strings.TrimSpace(text) == "" {
			*log = &logHealth{}
		}
	}
	w.capture.shim, w.capture.envKeys = schemas.ShimNone, []string{}
	w.capture.failed = !strings.Contains(w.kernel, " exec ") // a command that did not start cannot succeed
	if w.policy != "" || w.policyLog != nil {
		seal(w.policy, &w.policyLog)
		w.capture.envKeys = append(w.capture.envKeys, schemas.EnvPolicyLog)
	}
	if w.sdk != "" || w.sdkLog != nil {
		seal(w.sdk, &w.sdkLog)
		w.capture.shim = schemas.ShimOpenAIAgents
		w.capture.envKeys = append(w.capture.envKeys, schemas.EnvSDKLog, schemas.EnvSDKSchema)
	}
	if w.intents != "" {
		seal(w.intents, &w.intentLog)
		w.capture.envKeys = append(w.capture.envKeys, schemas.EnvIntentLog, schemas.EnvIntentSchema)
	}
	if len(w.capture.envKeys) > 0 {
		w.capture.envKeys = append(w.capture.envKeys, schemas.EnvRunID)
		slices.Sort(w.capture.envKeys)
	}
	return w
}

// possible changes what no kernel would say: a program that was started did start, and a script starts a
// program. It returns how many calls were not decoded.
func (m *model) possible() (undecoded uint64) {
	var lines []modelLine
	for _, l := range m.lines {
		switch l.verb {
		case "uring":
			undecoded++
		case "exec":
			l.fail = false
		case "script":
			l.fail = false
			program := l
			program.verb, program.value = "exec", "/bin/t"
			lines = append(lines, program)
		}
		lines = append(lines, l)
	}
	m.lines = lines
	return undecoded
}

// randomWorld is the world of a random model, with an SDK log, and sometimes with
// faults.
func randomWorld(rnd *rand.Rand) world {
	m := randomModel(rnd)
	undecoded := m.possible()
	w := m.world(rnd)
	w.capture.facts = map[string]string{"file_mechanism": schemas.SourceLandlock, "confined": schemas.ConfinedLandlock}
	w.capture.counters = map[string]uint64{"file_inserted": 0, schemas.CounterIOUringUnmapped: undecoded}
	for _, e := range schemas.Enforcements {
		n := uint64(strings.Count(w.kernel, schemas.KindOf(e.Event)))
		w.capture.facts[e.State], w.capture.facts[e.Policy] = "enforced", digestA
		w.capture.counters[e.Rules], w.capture.counters[e.Blocked], w.capture.counters[e.ByRule+"1"] = 2, n, n
	}
	var sdk strings.Builder
	for range rnd.IntN(6) {
		fmt.Fprintf(&sdk, "%s tc_%d %s\n", []string{"started", "completed"}[rnd.IntN(2)], rnd.IntN(6), []string{"tool", "other"}[rnd.IntN(5)/4])
	}
	sdk.WriteString([]string{"failed\n", "finished\n", "finished\n", ""}[rnd.IntN(4)])
	if rnd.IntN(6) == 0 {
		sdk.WriteString("bad\n")
	}
	if rnd.IntN(3) > 0 {
		w.sdk = sdk.String()
	}
	switch rnd.IntN(8) {
	case 0:
		w.policy += "foreign x t allow\n"
	case 1:
		w.policy += "broken\n"
	case 2:
		w.untimed = true
	case 3:
		w.capture.counters["dropped"] = 2
	case 4:
		w.policyLog = &logHealth{facts: map[string]string{"unterminated": "yes"}}
	}
	return asked(w)
}

package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// script runs a script that takes the tools from BIN. Exit 40 says that something that the
// script needs is missing.
func script(t *testing.T, name string, args ...string) {
	t.Helper()
	c := command(t, name, args...)
	c.Env = append(os.Environ(), "BIN="+bin)
	o := call(t, c)
	for line := range strings.Lines(o.stdout) {
		if strings.Contains(line, testkit.Skipped) {
			t.Log(strings.TrimSpace(line))
		}
	}
	switch {
	case o.code == 40 && os.Getenv("RUNNER_REQUIRE_NODE") != "1":
		t.Skip(o.stdout)
	case o.code != 0:
		t.Error(o)
	}
}

// requireNode skips a test with a real agent if Node or the fixture's packages are missing.
func requireNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		if _, err = os.Stat("../testdata/fixtures/openai-agents/node_modules"); err != nil {
			err = errors.New("npm ci --prefix testdata/fixtures/openai-agents")
		}
	}
	switch {
	case err != nil && os.Getenv("RUNNER_REQUIRE_NODE") == "1":
		t.Fatal(err)
	case err != nil:
		testkit.Skip(t, "a real agent", err)
	}
}

// TestShim tests what the shim reports, without the SDK and with two versions of it.
func TestShim(t *testing.T) {
	requireNode(t)
	for _, dir := range []string{"../scripts/openai-agents", "../testdata/fixtures/openai-agents"} {
		c := command(t, "node", "--test")
		c.Dir = dir
		if o := call(t, c); o.code != 0 {
			t.Error(o)
		}
	}
}

// TestParties tests the policy proxy between clients and servers that others wrote. Without
// Node it says which of them it skips.
func TestParties(t *testing.T) {
	script(t, "sh", "../scripts/parties.sh")
}

// TestElsewhere: the runs that need no kernel layer, where TestAcceptance cannot run them.
func TestElsewhere(t *testing.T) {
	if probe() == nil {
		t.Log("this kernel can be observed: TestAcceptance runs them")
		return
	}
	for _, name := range []string{"raw-run-on-non-linux", "openai-agents-sdk-policy-correlation"} {
		t.Run(name, func(t *testing.T) {
			script(t, "sh", "../scripts/acceptance/"+name+".sh")
		})
	}
}

// Package parties tests the policy proxy between clients and servers that others wrote:
// those of the official Go SDK and of the TypeScript SDK, and the file server from npm,
// in both eras of the protocol, over pipes and over HTTP. It is a separate module, so that the tools do not
// depend on them.
package parties

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const fixture = "../fixtures/openai-agents/"

var proxy string

func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		err = serve(len(os.Args) > 2)
	case len(os.Args) > 3 && os.Args[1] == "tap":
		err = tap(os.Args[2], os.Args[3:])
	default:
		if proxy, err = filepath.Abs(filepath.Join(os.Getenv("BIN"), "runner-policy")); err == nil {
			os.Exit(m.Run())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// node returns the argv of a script of the fixture. If Node is required, its
// absence is a failure.
func node(t *testing.T, script string) []string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(fixture + "node_modules")
	}
	if err != nil && os.Getenv("RUNNER_REQUIRE_NODE") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: parties from npm (npm ci --prefix testdata/fixtures/openai-agents): %v", err)
	}
	script, err = filepath.Abs(fixture + script)
	if err != nil {
		t.Fatal(err)
	}
	return []string{path, script}
}

type party struct {
	name    string
	version string // that the client requires
	server  func(*testing.T) []string
	client  func(t *testing.T, version, cancelled string, c *exec.Cmd) ([]string, error)
}

func pairs() (all []party) {
	servers := map[string]func(*testing.T) []string{
		"go": func(*testing.T) []string { return []string{os.Args[0], "serve"} },
		"js": func(t *testing.T) []string { return node(t, "mcp-server.js") },
	}
	clients := map[string]func(*testing.T, string, string, *exec.Cmd) ([]string, error){
		"go": func(t *testing.T, version, cancelled string, c *exec.Cmd) ([]string, error) {
			return talk(t.Context(), version, cancelled, &mcp.CommandTransport{Command: c})
		},
		"js": jsTalk,
	}
	for c, client := range clients {
		for s, server := range servers {
			for _, version := range []string{legacy, modern} {
				all = append(all, party{c + "-client " + s + "-server " + version, version, server, client})
			}
		}
	}
	slices.SortFunc(all, func(a, b party) int { return strings.Compare(a.name, b.name) })
	return all
}

func jsTalk(t *testing.T, version, _ string, c *exec.Cmd) ([]string, error) {
	if version == legacy {
		version = "legacy"
	}
	argv := append(append(node(t, "mcp-client.js"), version), c.Args...)
	js := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	js.Env, js.Stderr = c.Env, os.Stderr
	out, err := js.Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

// conversation is one session of a pair: through the proxy if there is a policy.
type conversation struct {
	said []string // by the client, of what it saw
	dir  string
}

func (p party) converse(t *testing.T, policy string) conversation {
	t.Helper()
	v := conversation{dir: t.TempDir()}
	argv := tapped(filepath.Join(v.dir, "server"), p.server(t)...)
	if policy != "" {
		file := filepath.Join(v.dir, "policy.yaml")
		if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		argv = append([]string{proxy, "--policy", file, "--log", filepath.Join(v.dir, "log"), "--"}, argv...)
		argv = tapped(filepath.Join(v.dir, "client"), argv...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cancelled := filepath.Join(v.dir, "cancelled")
	c.Env = append(os.Environ(), "PARTIES_CANCELLED="+cancelled)
	c.Stderr = os.Stderr
	var err error
	if v.said, err = p.client(t, p.version, cancelled, c); err != nil {
		t.Fatal(err, v.said)
	}
	if b, err := os.ReadFile(cancelled); err != nil || string(b) != "yes" {
		t.Errorf("the server did not hear of the cancellation: %v", err)
	}
	return v
}

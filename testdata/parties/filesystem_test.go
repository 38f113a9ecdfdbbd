package parties

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const readWork = `schema: runner.policy.v0
rules:
  - id: read-work
    allow: [read_*, list_directory]
    args:
      - at: $.path
        under: %s
`

// TestFilesystem: the Go SDK's client and the file server from npm, which has only
// the older protocol. What the policy does not allow does not happen.
func TestFilesystem(t *testing.T) {
	server := node(t, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	inside, outside := filepath.Join(work, "in.txt"), filepath.Join(dir, "out.txt")
	for _, err := range []error{
		os.Mkdir(work, 0o700),
		os.WriteFile(inside, []byte("inside"), 0o600),
		os.WriteFile(outside, []byte("outside"), 0o600),
		os.Symlink(outside, filepath.Join(work, "link.txt")),
		os.WriteFile(filepath.Join(dir, "policy.yaml"), fmt.Appendf(nil, readWork, work), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	argv := append([]string{"--policy", filepath.Join(dir, "policy.yaml"), "--log", filepath.Join(dir, "log"), "--"},
		tapped(filepath.Join(dir, "server"), append(server, dir)...)...)
	c := exec.CommandContext(t.Context(), proxy, argv...)
	c.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "party", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &goClient{session: session}
	if err := g.list(t.Context()); err != nil {
		t.Error(err)
	}
	call := func(tool, path string) {
		t.Helper()
		arguments := map[string]any{"path": path}
		if tool == "write_file" {
			arguments["content"] = "changed"
		}
		if err := g.call(t.Context(), tool, &mcp.CallToolParams{Meta: mcp.Meta{"callId": "tc_1"}, Name: tool, Arguments: arguments}); err != nil {
			t.Error(err)
		}
	}
	call("read_text_file", inside)
	call("write_file", inside)
	call("read_text_file", outside)
	call("read_text_file", filepath.Join(work, "../out.txt"))
	call("read_text_file", filepath.Join(work, "link.txt"))
	session.Close() // the server does not end by itself: its status is not of interest here
	want := []string{
		"tools list_directory read_file read_media_file read_multiple_files read_text_file",
		"read_text_file ok inside",
		"write_file error P_DENY_DEFAULT",
		"read_text_file error P_DENY_DEFAULT",
		"read_text_file error P_DENY_DEFAULT",
		"read_text_file error P_DENY_DEFAULT",
	}
	if !slices.Equal(g.said, want) {
		t.Errorf("the client saw\n%q, not\n%q", g.said, want)
	}
	if b := heard(t, inside); string(b) != "inside" {
		t.Errorf("the file holds %q", b)
	}
	if n := strings.Count(string(heard(t, filepath.Join(dir, "server.in"))), `"tools/call"`); n != 1 {
		t.Errorf("%d calls reached the server", n)
	}
}

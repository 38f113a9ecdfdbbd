package cmd_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestPolicyHTTP: the log of a proxy over HTTP joins a run like that of one over pipes: its decisions are in the
// archive, which verifies, and that its server is not known is said.
func TestPolicyHTTP(t *testing.T) {
	archive := overHTTP(t, "--no-kernel")
	o := call(t, command(t, "runner-verify", "--assert", `.report.ambiguities | any(startswith("policy_log_")) | not`,
		"--assert", `[.policy[].decision] | sort == ["allow", "deny"]`, archive))
	if o.code != 0 {
		t.Error(o)
	}
}

// overHTTP measures a proxy over HTTP with an allowed and a denied call, and returns the archive.
func overHTTP(t *testing.T, flags ...string) string {
	t.Helper()
	dir := shortDir(t)
	asked := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		id := regexp.MustCompile(`"id":(\d+)`).FindSubmatch(b)
		if id == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result := `{"content":[{"type":"text","text":"x"}]}`
		if strings.Contains(string(b), `"initialize"`) {
			w.Header().Set("Mcp-Session-Id", "one")
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		} else {
			asked++
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id[1], result)
	}))
	defer upstream.Close()
	policy, archive := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "run.tar.gz")
	write(t, policy, "schema: runner.policy.v0\ndefault: deny\nrules: [{id: read, allow: \"read_*\", args: [{at: $.path, under: /srv}]}]\n")
	c := command(t, "runner-exec", append(flags, "--policy", policy, "--archive", archive, "--",
		tool("runner-policy"), "--policy", policy, "--name", "web", "--http", "127.0.0.1:0", "--upstream", upstream.URL+"/mcp")...)
	r, w := io.Pipe()
	c.Stderr = w
	wait := start(t, c)
	lines := bufio.NewReader(r)
	said, err := lines.ReadString('\n')
	for err == nil && !strings.Contains(said, "listening on") {
		said, err = lines.ReadString('\n')
	}
	testkit.Must(t, err)
	go io.Copy(io.Discard, lines)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(said)
	post := func(session, body string) (string, string) {
		req, err := http.NewRequest("POST", url, strings.NewReader(body))
		testkit.Must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.Header.Get("Mcp-Session-Id"), string(b)
	}
	session, _ := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	for id, path := range []string{2: "/srv/a", 3: "/etc/shadow"} {
		if path == "" {
			continue
		}
		want := map[string]string{"/srv/a": `"text":"x"`, "/etc/shadow": "P_DENY_DEFAULT"}[path]
		if _, got := post(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_file","arguments":{"path":%q}}}`, id, path)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if asked != 1 {
		t.Errorf("the server was asked %d times", asked)
	}
	testkit.Must(t, c.Process.Signal(syscall.SIGTERM))
	wait()
	w.Close()
	o := call(t, command(t, "runner-verify", "--require", "policy=present", "--json", archive))
	for _, want := range []string{`"valid":true`, "mcp:web:number:2"} {
		if o.code != 0 || !strings.Contains(o.stdout, want) {
			t.Fatalf("no %s: %v", want, o)
		}
	}
	return archive
}

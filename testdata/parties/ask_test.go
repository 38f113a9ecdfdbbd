package parties

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAsk: a tool that needs an answer of the client. In the older protocol the server
// sends a request during the call. In the modern one the call continues in a second
// request with another id, and both are attempts of one call.
func TestAsk(t *testing.T) {
	for name, want := range map[string]string{legacy: "accept", modern: "accept state-1", "http " + legacy: "accept", "http " + modern: "accept state-1"} {
		t.Run(name, func(t *testing.T) {
			version, web := strings.CutPrefix(name, "http ")
			dir := t.TempDir()
			policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "log")
			if err := os.WriteFile(policy, []byte(allowAll), 0o600); err != nil {
				t.Fatal(err)
			}
			var to mcp.Transport
			if web {
				upstream := overHTTP(t, nil, os.Args[0], "serve", "http")
				to = &mcp.StreamableClientTransport{Endpoint: overHTTP(t, nil, proxy, "--policy", policy, "--log", log, "--http", "127.0.0.1:0", "--upstream", upstream)}
			} else {
				c := exec.CommandContext(t.Context(), proxy, "--policy", policy, "--log", log, "--", os.Args[0], "serve")
				c.Stderr = os.Stderr
				to = &mcp.CommandTransport{Command: c}
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "party", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept"}, nil
				},
			})
			session, err := client.Connect(t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			g := &goClient{session: session}
			if err := g.call(t.Context(), "ask", &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_ask"}, Name: "ask", Arguments: nothing{}}); err != nil {
				t.Fatal(err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if have := g.said[0]; have != "ask ok "+want {
				t.Errorf("the client saw %q, not %q", have, want)
			}
			attempts := 1
			if version == modern {
				attempts = 2
			}
			b := string(heard(t, log))
			for n := 1; n <= 3; n++ {
				want := 0
				if n <= attempts {
					want = 1
				}
				if have := strings.Count(b, fmt.Sprintf(`"attempt":%d,"tool":"ask"`, n)); have != want {
					t.Errorf("attempt %d is there %d times, not %d:\n%s", n, have, want, b)
				}
			}
		})
	}
}

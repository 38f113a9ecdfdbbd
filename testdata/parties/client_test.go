package parties

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Revisions of the protocol: the last with a handshake, and the stateless one.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// denialKey is the member that says why a call was denied.
const denialKey = "runner-policy/denial"

type goClient struct {
	session   *mcp.ClientSession
	cancelled string // the file that the server writes when it gets the cancellation
	said      []string
}

func (g *goClient) until(done func() bool) {
	for end := time.Now().Add(5 * time.Second); !done() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// talk does with the Go SDK's client what mcp-client.js does with the other client.
// Each line says what the client saw.
func talk(ctx context.Context, version, cancelled string, to mcp.Transport) ([]string, error) {
	var progress atomic.Int64
	client := mcp.NewClient(&mcp.Implementation{Name: "party", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(ctx, to, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	g := &goClient{session: session, cancelled: cancelled}
	if have := session.InitializeResult(); have != nil && have.ProtocolVersion != version {
		return nil, fmt.Errorf("they speak %s, not %s", have.ProtocolVersion, version)
	}
	err = errors.Join(g.list(ctx), g.calls(ctx, &progress), session.Close())
	return g.said, err
}

func (g *goClient) list(ctx context.Context) error {
	names := []string{"tools"}
	for tool, err := range g.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names[1:])
	g.said = append(g.said, strings.Join(names, " "))
	return nil
}

func (g *goClient) calls(ctx context.Context, progress *atomic.Int64) error {
	slowly := &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_slow"}, Name: "slow", Arguments: slowIn{500, 2}}
	slowly.SetProgressToken("p1")
	err := errors.Join(
		g.call(ctx, "echo", &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_echo"}, Name: "echo", Arguments: textIn{"é\u2028\"\\\t😀"}}),
		g.call(ctx, "secret", &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_secret"}, Name: "secret", Arguments: nothing{}}),
		g.call(ctx, "slow", slowly),
	)
	g.until(func() bool { return progress.Load() == 2 }) // handled concurrently with the answer
	if progress.Load() == 2 {
		g.said = append(g.said, "progress")
	}
	cut, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // when the server is known to work on it
		g.until(func() bool { return progress.Load() == 3 })
		cancel()
	}()
	long := &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_cut"}, Name: "slow", Arguments: slowIn{20000, 1}}
	long.SetProgressToken("p2")
	if _, e := g.session.CallTool(cut, long); errors.Is(e, context.Canceled) {
		g.said = append(g.said, "cancelled")
	}
	g.until(func() bool { return exists(g.cancelled) }) // the notification is sent concurrently with the next call
	return errors.Join(err, g.call(ctx, "after", &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_after"}, Name: "echo", Arguments: textIn{"still here"}}))
}

// call makes one call and returns its result as text.
func (g *goClient) call(ctx context.Context, name string, p *mcp.CallToolParams) error {
	r, err := g.session.CallTool(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	how, what := "ok", ""
	if r.IsError {
		how = "error"
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			what += t.Text
		}
	}
	if denial, ok := r.Meta[denialKey].(map[string]any); ok {
		what = fmt.Sprint(denial["reason_code"])
	}
	g.said = append(g.said, strings.Join([]string{name, how, what}, " "))
	return nil
}

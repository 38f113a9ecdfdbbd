package parties

import (
	"context"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type textIn struct {
	Text string `json:"text"`
}

type slowIn struct {
	MS    int `json:"ms"`
	Steps int `json:"steps"`
}

type nothing struct{}

// serve is the Go SDK's server on standard input and output, both protocol eras.
// Its tools are those of mcp-server.js, and ask, which needs an answer of the client.
func serve() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "party", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "secret"}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
		return text("not for agents"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "slow"}, slow)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, ask)
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func slow(ctx context.Context, r *mcp.CallToolRequest, in slowIn) (*mcp.CallToolResult, any, error) {
	for n := range in.Steps {
		p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n + 1), Total: float64(in.Steps)}
		if err := r.Session.NotifyProgress(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return text("slow"), nil, nil
	case <-ctx.Done():
		return nil, nil, os.WriteFile(os.Getenv("PARTIES_CANCELLED"), []byte("yes"), 0o600)
	}
}

// ask takes two requests in the modern era, and a request of the server in the older one.
func ask(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	question := &mcp.ElicitParams{Message: "sure?"}
	if r.ProtocolVersion() < modern {
		answer, err := r.Session.Elicit(ctx, question)
		if err != nil {
			return nil, nil, err
		}
		return text(answer.Action), nil, nil
	}
	if answer, ok := r.Params.InputResponses["sure"].(*mcp.ElicitResult); ok {
		return text(answer.Action + " " + r.Params.RequestState), nil, nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": question}, RequestState: "state-1"}, nil, nil
}

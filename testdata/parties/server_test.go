package parties

import (
	"context"
	"fmt"
	"net"
	"net/http"
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

// serve is the Go SDK's server, both protocol eras: on standard input and output, or over HTTP at
// an address that it prints.
func serve(overHTTP bool) error {
	if !overHTTP {
		return server().Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	one := func(*http.Request) *mcp.Server { return server() }
	sessions := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	stateless := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: true})
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modern {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	}))
}

// server has the tools of party.js, and ask, which needs an answer of the client.
func server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "party", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "secret"}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
		return text("not for agents"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "slow"}, slow)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, ask)
	return s
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

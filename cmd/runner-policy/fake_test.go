//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// The test binary is also the proxy and its server.
func TestMain(m *testing.M) {
	as := os.Getenv("RUNNER_POLICY_TEST_AS")
	if as == "proxy" && len(os.Args) == 1 { // started by the proxy, which passes on its environment unchanged
		as = "server"
	}
	switch as {
	case "proxy":
		tool.Main(app())
	case "server":
		fakeServer()
	case "client":
		fakeClient()
	default:
		testkit.Heed()
		os.Exit(m.Run())
	}
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name         string         `json:"name"`
		Arguments    map[string]any `json:"arguments"`
		RequestState string         `json:"requestState"`
		Status       string         `json:"status"` // that the fake gives the task
	} `json:"params"`
}

// fakeServer writes every line that it gets to $FAKE_SEEN and does what the tool's name
// says.
func fakeServer() {
	seen := io.Discard
	if name := os.Getenv("FAKE_SEEN"); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			os.Exit(90)
		}
		seen = f
	}
	if os.Getenv("FAKE_DEAF") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if first := os.Getenv("FAKE_FIRST"); first != "" {
		os.Stdout.WriteString(first)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		seen.Write(line)
		if err != nil {
			break
		}
		var m fakeMessage
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if m.Method == "tools/call" {
			fakeCall(m)
		} else if m.Method != "" && m.ID != nil {
			fakeRequest(m)
		}
	}
	if os.Getenv("FAKE_DEAF") != "" {
		time.Sleep(time.Minute)
	}
	code, _ := strconv.Atoi(os.Getenv("FAKE_EXIT"))
	os.Exit(code)
}

func fakeRequest(m fakeMessage) {
	switch m.Method {
	case "tools/list":
		fmt.Fprintf(os.Stdout, `{"result":{"tools":[ {"name":"read_a","x":[1,{"name":"no"}]} , {"name":"write_a"},{"x":2,"name":"\u0072ead_b"}, {"name":"write_b"},{"name":"read_s","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}} ],"nextCursor":"n"},"jsonrpc":"2.0","id":%s}`+"\n", m.ID)
	case "tasks/get", "tasks/cancel", "tasks/result":
		result := map[string]string{"tasks/get": `{"taskId":"T","status":"%s"}`, "tasks/cancel": `{"taskId":"T","status":"cancelled"}`, "tasks/result": `{"content":[],"isError":true}`}[m.Method]
		fmt.Fprintf(os.Stdout, `{"result":%s,"jsonrpc":"2.0","id":%s}`+"\n", strings.Replace(result, "%s", m.Params.Status, 1), m.ID)
	case "tools/raw":
		fmt.Fprintln(os.Stdout, m.Params.Arguments["line"])
	default:
		fmt.Fprintf(os.Stdout, `{"result":{},"jsonrpc":"2.0","id":%s}`+"\n", m.ID)
	}
}

func fakeCall(m fakeMessage) {
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Params.Name {
	case "read_fail":
		result = `{"content":[],"isError":true}`
	case "read_error":
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`+"\n", m.ID)
		return
	case "read_exit":
		os.Exit(7)
	case "read_kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "read_half":
		os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
		os.Exit(0)
	case "read_close":
		os.Stdout.Close()
		time.Sleep(time.Minute)
	case "read_hang":
		return
	case "read_lines":
		for _, l := range m.Params.Arguments["lines"].([]any) {
			io.WriteString(os.Stdout, strings.ReplaceAll(l.(string), "ID", string(m.ID))+"\n")
		}
		return
	case "read_round":
		if m.Params.RequestState == "" {
			result = `{"resultType":"input_required","inputRequests":{},"requestState":"state \u00e9 1"}`
		} else if m.Params.RequestState == "state é 1" {
			result = `{"resultType":"input_required","requestState":"s2"}`
		} else {
			result = `{"resultType":"complete","content":[]}`
		}
	case "read_task":
		result = `{"task":{"taskId":"T","status":"working","ttl":60000}}`
	case "read_big":
		fakeBig(m)
		return
	}
	fmt.Fprintf(os.Stdout, `{"result":%s,"jsonrpc":"2.0","id":%s}`+"\n", result, m.ID)
}

// fakeBig answers with a line of many bytes.
func fakeBig(m fakeMessage) {
	size := int(m.Params.Arguments["size"].(float64))
	unit, _ := m.Params.Arguments["unit"].(string)
	end, _ := m.Params.Arguments["end"].(string)
	if unit == "" {
		unit = "The quick brown fox jumps over the lazy dog, 0123456789.\\n"
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	fmt.Fprint(out, `{"result":{"content":[{"type":"text","text":"`)
	chunk := bytes.Repeat([]byte(unit), 1+1<<20/len(unit))
	for n := 0; n < size; n += len(chunk) {
		out.Write(chunk)
	}
	fmt.Fprintf(out, `"}]},"jsonrpc":"2.0","id":%s}%s`+"\n", m.ID, end)
	out.Flush()
}

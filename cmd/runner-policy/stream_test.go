//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// status is one value of /proc/PID/status, in KiB.
func status(t *testing.T, pid int, key string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+key+":")
	var n int
	fmt.Sscan(rest, &n)
	return n
}

// TestLargeResult: 50 MB are forwarded with little memory.
func TestLargeResult(t *testing.T) {
	const size = 50 << 20
	for _, c := range []struct{ name, unit string }{
		{"plain", ""},
		{"chinese", "敏捷的棕色狐狸跳过了懒狗。"},
		{"surrogates", `\ud83d\ude00`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startProxy(t, allowAll)
			pid := p.cmd.Process.Pid
			p.send(callLine("1", "read_big", fmt.Sprintf(`{"size":%d,"unit":%q}`, size, c.unit)))
			start := time.Now()
			n, tail := drainLine(t, p)
			took := time.Since(start)
			if runtime.GOOS == "linux" {
				if rss := status(t, pid, "VmHWM"); rss == 0 || rss > 64<<10 {
					t.Errorf("the proxy took %d KiB", rss)
				} else {
					t.Logf("%d MB in %v, %.0f MB/s, at most %d KiB", n/1e6, took, float64(n)/1e6/took.Seconds(), rss)
				}
			}
			if n < size || !strings.HasSuffix(tail, `"}]},"jsonrpc":"2.0","id":1}`+"\n") {
				t.Errorf("%d bytes, %q", n, tail)
			}
			if code, rest := p.end(); code != 0 || rest != "" || p.outcomes() != "completed" {
				t.Errorf("exit %d, %q, %s", code, testkit.Clip(rest), p.outcomes())
			}
		})
	}
}

// drainLine reads one line and returns its end.
func drainLine(t *testing.T, p *proxy) (n int, tail string) {
	t.Helper()
	for {
		b, err := p.out.ReadSlice('\n')
		n += len(b)
		tail = string(b[max(0, len(b)-200):])
		if err == nil {
			return n, tail
		}
		if len(b) == 0 {
			t.Fatal(n, err)
		}
	}
}

// TestLargeBad: the end of a long line shows that it is not a message. The client has
// received a part without an LF, which is not a message, and the session ends.
func TestLargeBad(t *testing.T) {
	for _, c := range []struct{ end, code string }{
		{"x", schemas.ReasonBadJSON},
		{`{"jsonrpc":"2.0","method":"x"}`, schemas.ReasonBadJSON},
		{strings.Repeat(" ", 100000), schemas.ReasonTooLong},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, allowAll)
			p.send(callLine("1", "read_hang", `{}`), callLine("2", "read_big", fmt.Sprintf(`{"size":5000000,"end":%q}`, c.end)))
			code, rest := p.wait()
			if code != 125 || strings.Contains(rest, "\n") || strings.HasSuffix(rest, "}") || len(rest) < 5000000 {
				t.Errorf("exit %d, %d bytes, %q", code, len(rest), rest[max(0, len(rest)-100):])
			}
			r := p.entries("runner.policy.message_refused")
			if len(r) != 1 || r[0]["reason_code"] != c.code || p.outcomes() != "server_gone server_gone" {
				t.Errorf("%v, %s", r, p.outcomes())
			}
			if !strings.Contains(p.stderr.String(), "was refused after part of it had been forwarded") {
				t.Error(p.stderr.String())
			}
		})
	}
}

// said is a server's output in pieces of odd sizes.
type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	p.n = p.n*31%65521 + 1
	n := copy(b, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

type discardLog struct{ lines [][]byte }

func (l *discardLog) WriteLine(b []byte) (int, error) {
	l.lines = append(l.lines, append([]byte(nil), b...))
	return len(b), nil
}
func (l *discardLog) Close() error { return nil }

// serverSays runs the server's half of a session with text as the server's output.
func serverSays(hide bool, pending []*entry, text []byte) (client []byte, log string, err error) {
	l := &discardLog{}
	s := newSession(Options{}, newRulings(ruling{hider(hide), "sha256:0"}), "/", l)
	var out bytes.Buffer
	s.client = &out
	for _, e := range pending {
		s.inFlight.add(e)
	}
	err = s.readServer(&pieces{text, 1})
	return out.Bytes(), string(bytes.Join(l.lines, nil)), err
}

func listRequest(key string) *entry {
	return &entry{id: jsonrpc.ID{Key: "n" + key, Raw: key}, method: jsonrpc.MethodList}
}
func otherRequest(key string) *entry {
	return &entry{id: jsonrpc.ID{Key: "n" + key, Raw: key}, method: jsonrpc.MethodCall, call: &call{}}
}

// TestLargeListing: a list of tools is read whole up to a limit. A longer one is refused
// and the client gets an error, whatever the order of its keys.
func TestLargeListing(t *testing.T) {
	list := func(n int, form string) []byte {
		tools := strings.Repeat(`{"name":"hidden_x","description":"`+strings.Repeat("d", 1000)+`"},`, n) + `{"name":"shown"}`
		return []byte(strings.Replace(form, "TOOLS", tools, 1) + "\n" + `{"jsonrpc":"2.0","method":"notifications/end"}` + "\n")
	}
	const end = `{"jsonrpc":"2.0","method":"notifications/end"}` + "\n"
	forms := []string{
		`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"c","tools":[TOOLS]}}`,
		`{"result":{"tools":[TOOLS],"nextCursor":"c"},"jsonrpc":"2.0","id":1}`,
	}
	for _, form := range forms {
		out, _, err := serverSays(true, []*entry{listRequest("1")}, list(7000, form))
		if want := strings.Replace(form, "TOOLS", `{"name":"shown"}`, 1) + "\n" + end; err != nil || string(out) != want {
			t.Errorf("%v, %s", err, testkit.Clip(string(out)))
		}
		out, log, err := serverSays(true, []*entry{listRequest("1"), otherRequest("2")}, list(9000, form))
		if err != nil || !strings.HasPrefix(string(out), `{"jsonrpc":"2.0","id":1,"error"`) || !strings.HasSuffix(string(out), "\n"+end) || len(out) > 1000 {
			t.Errorf("%v, %s", err, testkit.Clip(string(out)))
		}
		if strings.Count(log, schemas.ReasonTooLong) != 1 {
			t.Error(log)
		}
	}
	// Only its end shows that it is a list of tools.
	sly := `{"result":{"x":"` + strings.Repeat("x", maxListing) + `","tools":[{"name":"hidden_x"}]},"jsonrpc":"2.0","id":1}` + "\n"
	out, log, err := serverSays(true, []*entry{listRequest("1")}, []byte(sly))
	if err != errCut || bytes.Contains(out, []byte("\n")) || strings.Count(log, schemas.ReasonTooLong) != 1 {
		t.Errorf("%v, %d bytes, %s", err, len(out), log)
	}
}

// TestFilter removes tools at every position of the list.
func TestFilter(t *testing.T) {
	const h, s = `{"name":"hidden_1"}`, `{"a":"]},{","name":"shown"}`
	for _, c := range []struct{ in, out string }{
		{`[]`, `[]`},
		{`[ ]`, `[ ]`},
		{`[` + h + `]`, `[]`},
		{`[ ` + h + ` ]`, `[  ]`},
		{`[` + h + `,` + h + `]`, `[]`},
		{`[` + s + `,` + h + `]`, `[` + s + `]`},
		{`[` + h + `,` + s + `]`, `[` + s + `]`},
		{`[` + h + ` , ` + h + `, ` + s + ` , ` + s + `]`, `[` + s + ` , ` + s + `]`},
		{`[` + s + ` , ` + h + ` , ` + h + `, ` + s + ` ]`, `[` + s + `, ` + s + ` ]`},
		{`[` + s + `, ` + h + `, ` + s + `, ` + h + ` ]`, `[` + s + `, ` + s + ` ]`},
		{`[{"name":"\u0068idden_2","x":{"name":"shown"}}]`, `[]`},
		{`[{"x":{"name":"hidden_1"},"name":"shown"}]`, `[{"x":{"name":"hidden_1"},"name":"shown"}]`},
		{`[{"name":"shown","Name":"hidden_1"}]`, ""},
		{`[{"Name":"hidden_1"}]`, ""},
		{`[{"name":"shown","name":"hidden_1"}]`, ""},
		{`[{}]`, ""},
		{`[{"name":1}]`, ""},
		{`[` + s + `,1]`, ""},
		{`["hidden_1"]`, ""},
		{`[[` + h + `]]`, ""},
		{`{"x":` + h + `}`, ""},
		{`null`, ""},
	} {
		const form = `{"jsonrpc":"2.0","id":1,"result":{"tools":TOOLS,"nextCursor":""}}` + "\n"
		out, log, err := serverSays(true, []*entry{listRequest("1")}, []byte(strings.Replace(form, "TOOLS", c.in, 1)))
		want := strings.Replace(form, "TOOLS", c.out, 1)
		if err != nil || c.out != "" && string(out) != want || c.out == "" && (!bytes.Contains(out, []byte("error")) || log == "" || bytes.Contains(out, []byte("hidden"))) {
			t.Errorf("%s: %v, %s %s", c.in, err, out, log)
		}
	}
}

// TestServerPieces: the result does not depend on how the server's output is cut into
// reads.
func TestServerPieces(t *testing.T) {
	var text bytes.Buffer
	var pending []*entry
	for i, n := range []int{1, 100, serverBuffer - 100, serverBuffer - 60, serverBuffer, serverBuffer + 1, 3 * serverBuffer, 10, 2*serverBuffer - 59, 5} {
		fmt.Fprintf(&text, `{"jsonrpc":"2.0","result":{"x":"%s"},"id":%d}`+"\n", strings.Repeat("é", n/2), i)
		pending = append(pending, otherRequest(fmt.Sprint(i)))
	}
	out, log, err := serverSays(false, pending, text.Bytes())
	if err != nil || !bytes.Equal(out, text.Bytes()) || strings.Count(log, `"outcome":"completed"`) != 10 {
		t.Errorf("%v, %d bytes of %d, %s", err, len(out), text.Len(), log)
	}
}

// FuzzServer: for any output of a server, the client gets only whole messages, and no
// hidden tool.
func FuzzServer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"hidden_x"},{"name":"y"}]}}`+"\n"+`{"jsonrpc":"2.0","method":"x"}`+"\n"), true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"result":{"isError":true}}`+"\nlistening\n\n[]"), false)
	f.Fuzz(func(t *testing.T, text []byte, hide bool) {
		out, _, err := serverSays(hide, []*entry{listRequest("1"), otherRequest("2")}, text)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out) {
			var m struct {
				ID     json.RawMessage
				Result struct{ Tools []struct{ Name string } }
			}
			if !json.Valid(line) || !bytes.HasSuffix(line, []byte("\n")) || !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
				t.Fatalf("the client got %q", line)
			}
			if json.Unmarshal(line, &m) == nil && hide && string(m.ID) == "1" {
				for _, tool := range m.Result.Tools {
					if strings.HasPrefix(tool.Name, "hidden") {
						t.Fatalf("the client got %q", line)
					}
				}
			}
		}
	})
}

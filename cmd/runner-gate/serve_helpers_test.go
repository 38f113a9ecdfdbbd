package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// testPolicy lets alice approve files.
const testPolicy = `schema: runner.gate_policy.v0
version: "7"
approvals: {keys: {alice: ALICE}}
rules: [{id: files, require_approval: file, by: [alice]}]
`

// testServer is a server of a state with one plan. Its archive is not there: what needs that is tested with real archives elsewhere.
type testServer struct {
	*server
	t      *testing.T
	http   *httptest.Server
	root   string
	token  string
	bearer string
	id     string
	eve    string // file of a key that does not count
}

// makeKey makes a key, and returns its file and the base64 of its public half.
func makeKey(t *testing.T, file string) string {
	t.Helper()
	k, err := attestation.Generate(attestation.Ed25519)
	testkit.Must(t, err)
	private, err := k.PEM()
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(file, private, 0o600))
	own, err := k.Public()
	testkit.Must(t, err)
	public, err := own.PEM()
	testkit.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(public)), "\n")
	return strings.Join(lines[1:len(lines)-1], "")
}

// envOf is the environment of a call.
func envOf(t *testing.T, args ...string) *tool.Env {
	t.Helper()
	set := flag.NewFlagSet("runner-gate", flag.ContinueOnError)
	for _, f := range app().Flags {
		testkit.Must(t, f.Apply(set))
	}
	testkit.Must(t, set.Parse(args))
	return &tool.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Args: set.Args(), Flag: tool.NewFlags(cli.NewContext(nil, set, nil)), Name: "runner-gate", Command: wordServe}
}

func serveArgs(root string, more ...string) []string {
	return append([]string{"--dir", root + "/state", "--policy", root + "/gate.yaml", "--key", root + "/alice.pem", "--to", root + "/to", "--journal", root + "/journal"}, more...)
}

func newTestServer(t *testing.T, more ...string) *testServer {
	t.Helper()
	root := t.TempDir()
	testkit.Must(t, os.Mkdir(root+"/to", 0o755))
	alice := makeKey(t, root+"/alice.pem")
	makeKey(t, root+"/eve.pem")
	testkit.Must(t, os.WriteFile(root+"/gate.yaml", []byte(strings.Replace(testPolicy, "ALICE", alice, 1)), 0o644))
	s, err := newServer(context.Background(), envOf(t, serveArgs(root, more...)...))
	testkit.Must(t, err)
	ts := &testServer{server: s, t: t, root: root, eve: root + "/eve.pem"}
	ts.http = httptest.NewUnstartedServer(nil)
	s.auth, err = newAuth(defaultListen, ts.http.Listener.Addr().String())
	testkit.Must(t, err)
	ts.http.Config.Handler = s.handler()
	ts.http.Start()
	t.Cleanup(func() { ts.http.Close(); s.close() })
	ts.token = s.auth.token
	ts.id = ts.addPlan("run_1", 1)
	return ts
}

// addPlan writes a plan as take does, by the policies that are in force.
func (ts *testServer) addPlan(run string, files int) string {
	ts.t.Helper()
	identity := schemas.DigestOf(run)
	p := &gate.Plan{Schema: schemas.SchemaGatePlan, RunID: run, Archive: identity, Evidence: gate.Evidence{Complete: true, Doubts: []string{}, Command: []string{"agent"}},
		Files: []gate.File{}, Intents: []gate.Intent{}, Network: []gate.Exchange{}, Calls: []gate.Call{}, Blocked: []string{}}
	for i := range files {
		p.Files = append(p.Files, gate.File{Index: i, Op: schemas.ChangeAdd, Path: "new", After: &schemas.FileState{Kind: schemas.KindDir, Mode: 0o755}})
	}
	testkit.Must(ts.t, ts.fresh().decide(context.Background(), p))
	b, err := p.Bytes()
	testkit.Must(ts.t, err)
	id := strings.TrimPrefix(identity, "sha256:")
	testkit.Must(ts.t, os.MkdirAll(ts.place(id), 0o700))
	testkit.Must(ts.t, os.WriteFile(filepath.Join(ts.place(id), filePlan), b, 0o600))
	return id
}

// reply is what came back.
type reply struct {
	status int
	code   string // of an error
	header http.Header
	body   string
	view   view
}

// send makes a request. Headers are "Name: value"; "Host: x" names another host.
func (ts *testServer) send(method, path, body string, headers ...string) reply {
	ts.t.Helper()
	r, err := http.NewRequest(method, ts.http.URL+path, strings.NewReader(body))
	testkit.Must(ts.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(r)
	testkit.Must(ts.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	testkit.Must(ts.t, err)
	var e struct {
		Error struct{ Code, Message string }
	}
	json.Unmarshal(b, &e)
	out := reply{status: res.StatusCode, code: e.Error.Code, header: res.Header, body: string(b)}
	json.Unmarshal(b, &out.view)
	return out
}

// session is the header of a program that has a session.
func (ts *testServer) session() string {
	ts.t.Helper()
	if ts.bearer == "" {
		r := ts.send("POST", "/session", `{"token":"`+ts.token+`","program":true}`)
		var o struct{ Session string }
		testkit.Must(ts.t, json.Unmarshal([]byte(r.body), &o))
		ts.bearer = "Authorization: Bearer " + o.Session
	}
	return ts.bearer
}

// ask makes a request of a program.
func (ts *testServer) ask(method, path, body string) reply {
	ts.t.Helper()
	return ts.send(method, path, body, ts.session())
}

// expect compares the code of a refusal, "" for none.
func (ts *testServer) expect(what string, r reply, code string) reply {
	ts.t.Helper()
	if r.code != code || code == "" && r.status != http.StatusOK {
		ts.t.Errorf("%s: %d %q, expected %q: %s", what, r.status, r.code, code, testkit.Clip(r.body))
	}
	return r
}

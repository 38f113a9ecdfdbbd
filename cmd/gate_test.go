//go:build linux

package cmd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// gateAgent changes its workspace, asks a model over the network, and asks to have a file written and an order made.
const gateAgent = `
import json, os, shutil, urllib.request
log = open(os.environ["ASSAY_RUNNER_INTENT_LOG"], "a", buffering=1)
seq = 0
def intend(kind, payload, **more):
    global seq
    log.write(json.dumps(dict(schema="assay.runner.intent.v0", run_id=os.environ["ASSAY_RUNNER_RUN_ID"], seq=seq, intent_type=kind, payload=payload, **more)) + "\n")
    seq += 1
print(urllib.request.urlopen("http://model.test/answer").read().decode())
with open("docs/guide.md", "a") as f:
    f.write("a new line\n")
open("docs/new.md", "w").write("new\n")
os.chmod("tool.sh", 0o755)
os.remove("old.txt")
shutil.move("dir", "moved")
os.symlink("guide.md", "docs/link")
intend("files.write", {"path": "RELEASE", "text": "1.0\n"})
intend("http.request", {"method": "POST", "url": "http://SERVICE/orders", "json": {"amount": 42}}, idempotency_key="order-1", amount=42, labels=["billing"])
`

// orders is a service that makes orders once for each idempotency key, and deletes them.
type orders struct {
	*httptest.Server
	mu      sync.Mutex
	byKey   map[string]string
	open    map[string]string // id → body
	made    int
	trouble []int // statuses that are answered first
	calls   int
}

func newOrders(t *testing.T) *orders {
	o := &orders{byKey: map[string]string{}, open: map[string]string{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	if len(o.trouble) > 0 {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(o.trouble[0])
		o.trouble = o.trouble[1:]
		return
	}
	switch id := strings.TrimPrefix(r.URL.Path, "/orders/"); {
	case r.Method == http.MethodPost && r.URL.Path == "/orders":
		body, _ := io.ReadAll(r.Body)
		key := r.Header.Get("Idempotency-Key")
		id := o.byKey[key]
		if id == "" || key == "" {
			o.made++
			id = fmt.Sprintf("o%d", o.made)
			o.byKey[key], o.open[id] = id, string(body)
		}
		w.Header().Set("Location", "/orders/"+id)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%q}`, id)
	case r.Method == http.MethodDelete && o.open[id] != "":
		delete(o.open, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// state is how many orders are open, and how many were made.
func (o *orders) state() [2]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return [2]int{len(o.open), o.made}
}

// gateBase is the directory that the agent works on.
func gateBase(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{"", "docs", "dir"} {
		testkit.Must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	for name, text := range map[string]string{"docs/guide.md": "one\ntwo\n", "tool.sh": "#!/bin/sh\n", "old.txt": "old\n", "dir/a": "a", "dir/b": "b"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// gateRun records the agent, and returns the archive.
func gateRun(t *testing.T, base string, service *orders) string {
	t.Helper()
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	program := python(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "an answer") }))
	defer web.Close()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(dir+"/agent.py", []byte(strings.ReplaceAll(gateAgent, "http://SERVICE", service.URL)), 0o644))
	testkit.Must(t, os.WriteFile(dir+"/allow.yaml", []byte("schema: runner.net_allow.v0\nrules:\n- {id: model, host: model.test, methods: [GET]}\n"), 0o644))
	file := filepath.Join(dir, "run.tar.gz")
	cmd := command(t, "runner-exec", "--intents", "--replayable", "--run-id", archivetest.RunID, "--archive", file, "--", tool("runner-net"), "record", "--allow", dir+"/allow.yaml", "--upstream", "model.test:80="+web.Listener.Addr().String(), "--",
		tool("runner-box"), "--base", base, "--fallback", "copy", "--", program, "-c", string(testkit.Read(t, dir+"/agent.py")))
	if o := call(t, cmd); o.code != 0 || o.stdout != "an answer\n" {
		t.Fatal(o)
	}
	return file
}

// key makes a key, and returns its file and the base64 of its public half.
func gateKey(t *testing.T, dir, name string) (file, public string) {
	t.Helper()
	file = filepath.Join(dir, name+".pem")
	if o := call(t, command(t, "runner-attest", "--generate-key", file)); o.code != 0 {
		t.Fatal(o)
	}
	lines := strings.Split(strings.TrimSpace(string(testkit.Read(t, file+".pub"))), "\n")
	return file, strings.Join(lines[1:len(lines)-1], "")
}

// gatePolicy has a rule for each class, and two people of whom both must approve an order.
const gatePolicy = `schema: runner.gate_policy.v0
version: "7"
default: deny
approvals: {threshold: 1, keys: {alice: ALICE, bob: BOB}}
rules:
- {id: docs, allow: file, path: ["docs", "docs/**"]}
- {id: rest, require_approval: file, by: [alice]}
- {id: release, allow: intent, type: files.write, path: RELEASE}
- {id: orders, require_approval: intent, type: http.request, url_path: /orders, method: POST, when: '.amount <= 100', count: 2}
- {id: model, allow: network, host: model.test}
require:
- {id: ended-well, that: '.evidence.exit_code == 0'}
rollbacks:
- {id: order, host: 127.0.0.1, method: POST, path: /orders, id_from: ["header:location", "json:$.id"], rollback: {method: DELETE, path: "/orders/{id}"}}
`

func scan(t *testing.T, dir string) []tree.Entry {
	t.Helper()
	list, err := tree.Scan(dir, tree.Options{})
	testkit.Must(t, err)
	return list
}

func sameTree(t *testing.T, dir string, want []tree.Entry) {
	t.Helper()
	for _, c := range tree.Diff(want, scan(t, dir)) {
		t.Errorf("%s: %s", c.Path(), c.Op)
	}
}

// gateHouse is what the tests of the gate have in common: an archive, a directory as its base, keys, a policy and a service.
type gateHouse struct {
	dir, archive, to, policy, journal string
	alice, bob, eve                   string
	service                           *orders
	before                            []tree.Entry
}

func newGateHouse(t *testing.T) *gateHouse {
	requireBPF(t)
	dir := t.TempDir()
	h := &gateHouse{dir: dir, to: dir + "/to", policy: dir + "/gate.yaml", journal: dir + "/journal", service: newOrders(t)}
	gateBase(t, dir+"/base")
	gateBase(t, h.to)
	h.before = scan(t, h.to)
	h.archive = gateRun(t, dir+"/base", h.service)
	var alice, bob string
	h.alice, alice = gateKey(t, dir, "alice")
	h.bob, bob = gateKey(t, dir, "bob")
	h.eve, _ = gateKey(t, dir, "eve")
	testkit.Must(t, os.WriteFile(h.policy, []byte(strings.NewReplacer("ALICE", alice, "BOB", bob).Replace(gatePolicy)), 0o644))
	return h
}

func (h *gateHouse) plan(t *testing.T, args ...string) (string, outcome) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.json")
	return file, call(t, command(t, "runner-gate", append([]string{"plan", h.archive, "-o", file}, args...)...))
}

func (h *gateHouse) approve(t *testing.T, plan, key string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "approval.jsonl")
	if o := call(t, command(t, "runner-gate", append([]string{"approve", "--plan", plan, "--key", key, "-o", file}, args...)...)); o.code != 0 {
		t.Fatal(o)
	}
	return file
}

func (h *gateHouse) commit(t *testing.T, plan string, args ...string) outcome {
	t.Helper()
	return call(t, command(t, "runner-gate", append([]string{"commit", h.archive, "--plan", plan, "--to", h.to, "--journal", h.journal}, args...)...))
}

// expect fails the test unless a call ended so, and said that.
func (o outcome) expect(t *testing.T, code int, words ...string) {
	t.Helper()
	for _, w := range words {
		if o.code != code || !strings.Contains(o.stdout+o.stderr, w) {
			t.Fatalf("expected exit %d and %q: %v", code, w, o)
		}
	}
}

// TestGate: an agent's run is planned, denied by a policy, planned by another one, approved, committed to a directory and to a service,
// and taken back.
func TestGate(t *testing.T) {
	h := newGateHouse(t)
	strict := h.dir + "/strict.yaml"
	testkit.Must(t, os.WriteFile(strict, []byte("schema: runner.gate_policy.v0\ndefault: deny\nrules: [{id: docs, allow: file, path: \"docs/**\"}]\n"), 0o644))
	denied, o := h.plan(t, "--policy", strict)
	o.expect(t, 1, "denied: nothing of it can be committed", "denied_by_default")
	h.commit(t, denied, "--policy", strict).expect(t, 1, "gate_denied")

	plan, o := h.plan(t, "--policy", h.policy)
	o.expect(t, 0, "allowed, once it is approved", "+a new line", "rule orders: 2 of", "can be taken back: DELETE /orders/{id}")
	again, _ := h.plan(t, "--policy", h.policy)
	if a, b := testkit.Read(t, plan), testkit.Read(t, again); string(a) != string(b) {
		t.Error("two plans of one archive differ")
	}
	h.commit(t, plan, "--policy", h.policy).expect(t, 1, "gate_approval_missing")
	allow := h.dir + "/allow.yaml"
	testkit.Must(t, os.WriteFile(allow, []byte(gateAllow), 0o644))
	anyhow, _ := h.plan(t, "--policy", allow)
	testkit.Must(t, os.Symlink(h.to, h.dir+"/link"))
	for _, inside := range []string{h.to, h.to + "/j", h.to + "/docs/a/b", h.dir + "/link/j"} {
		call(t, command(t, "runner-gate", "commit", h.archive, "--plan", anyhow, "--policy", allow, "--to", h.to, "--journal", inside)).expect(t, 2, "is in --to")
	}
	sameTree(t, h.to, h.before)
	alice, bob, eve := h.approve(t, plan, h.alice, "--actor", "Alice"), h.approve(t, plan, h.bob), h.approve(t, plan, h.eve)
	h.commit(t, plan, "--policy", h.policy, "--approval", alice).expect(t, 1, "gate_approval_missing", "demands 2 of 2")
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", eve).expect(t, 1, "gate_approval_stale")
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", h.approve(t, plan, h.bob, "--deny", "--comment", "not today")).expect(t, 1, "gate_denied", "not today")
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", h.approve(t, denied, h.bob, "--deny")).expect(t, 1, "gate_approval_stale")
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", h.approve(t, plan, h.bob, "--expires", "1ns")).expect(t, 1, "gate_approval_stale", "expired")
	edited := h.dir + "/edited.yaml"
	testkit.Must(t, os.WriteFile(edited, []byte(strings.Replace(string(testkit.Read(t, h.policy)), "<= 100", "<= 1000", 1)), 0o644))
	h.commit(t, plan, "--policy", edited, "--approval", alice, "--approval", bob).expect(t, 1, "gate_approval_stale", "was a policy edited?")
	sameTree(t, h.to, h.before)
	if h.service.calls != 0 {
		t.Fatal("the service was called")
	}

	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", bob).expect(t, 0, "committed: ")
	if s := h.service.state(); s != [2]int{1, 1} {
		t.Error("orders", s)
	}
	for name, want := range map[string]string{"docs/guide.md": "one\ntwo\na new line\n", "docs/link": "one\ntwo\na new line\n", "docs/new.md": "new\n", "RELEASE": "1.0\n", "moved/a": "a"} {
		if got := string(testkit.Read(t, filepath.Join(h.to, name))); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for _, name := range []string{"old.txt", "dir"} {
		if _, err := os.Lstat(filepath.Join(h.to, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", bob).expect(t, 0, "committed before: nothing was done")
	if s := h.service.state(); s != [2]int{1, 1} {
		t.Error("orders", s)
	}
	call(t, command(t, "runner-gate", "status", "--journal", h.journal)).expect(t, 0, "committed: plan sha256:")
	call(t, command(t, "runner-gate", "log", "--journal", h.journal, "--json")).expect(t, 0, `"step":"effect_receipt"`, `"step":"committed"`)

	call(t, command(t, "runner-gate", "revert", "--journal", h.journal)).expect(t, 0, "reverted: ")
	sameTree(t, h.to, h.before)
	if s := h.service.state(); s != [2]int{0, 1} {
		t.Error("orders", s)
	}
	call(t, command(t, "runner-gate", "revert", "--journal", h.journal)).expect(t, 1, "nothing in the journal can be taken back")
	h.commit(t, plan, "--policy", h.policy, "--approval", alice, "--approval", bob).expect(t, 1, "reverted")
	diff := exec.Command("diff", "-r", "--no-dereference", h.dir+"/base", h.to)
	if out, err := diff.CombinedOutput(); err != nil {
		t.Errorf("diff: %v\n%s", err, out)
	}
}

// TestGateConflict: a directory that is not as the base is not touched, and no request is made.
func TestGateConflict(t *testing.T) {
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	approvals := []string{"--policy", h.policy, "--approval", h.approve(t, plan, h.alice), "--approval", h.approve(t, plan, h.bob)}
	for name, break_ := range map[string]func() func(){
		"docs/guide.md": func() func() { return edit(t, h.to+"/docs/guide.md", "other\n") },
		"old.txt":       func() func() { return edit(t, h.to+"/old.txt", "") },
		"docs/new.md": func() func() {
			testkit.Must(t, os.WriteFile(h.to+"/docs/new.md", nil, 0o644))
			return func() { os.Remove(h.to + "/docs/new.md") }
		},
		"dir": func() func() {
			testkit.Must(t, os.WriteFile(h.to+"/dir/more", nil, 0o644))
			return func() { os.Remove(h.to + "/dir/more") }
		},
		"RELEASE": func() func() {
			testkit.Must(t, os.WriteFile(h.to+"/RELEASE", nil, 0o644))
			return func() { os.Remove(h.to + "/RELEASE") }
		},
		"tool.sh": func() func() {
			testkit.Must(t, os.Chmod(h.to+"/tool.sh", 0o600))
			return func() { os.Chmod(h.to+"/tool.sh", 0o644) }
		},
	} {
		mend := break_()
		now := scan(t, h.to)
		h.commit(t, plan, approvals...).expect(t, 1, "gate_conflict", name)
		sameTree(t, h.to, now)
		mend()
	}
	if h.service.calls != 0 {
		t.Error("the service was called")
	}
	h.commit(t, plan, approvals...).expect(t, 0, "committed: ")
	mend := edit(t, h.to+"/docs/new.md", "edited since\n")
	now := scan(t, h.to)
	call(t, command(t, "runner-gate", "revert", "--journal", h.journal)).expect(t, 1, "gate_conflict", "docs/new.md")
	sameTree(t, h.to, now)
	mend()
	call(t, command(t, "runner-gate", "revert", "--journal", h.journal)).expect(t, 0, "reverted: ")
	sameTree(t, h.to, h.before)
}

// edit changes a file, and returns how to change it back.
func edit(t *testing.T, file, text string) func() {
	t.Helper()
	before := testkit.Read(t, file)
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o644))
	return func() { os.WriteFile(file, before, 0o644) }
}

// TestGateService: a service in trouble is asked again; one that says no, or nothing, leaves the directory as it was.
func TestGateService(t *testing.T) {
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	approvals := []string{"--policy", h.policy, "--approval", h.approve(t, plan, h.alice), "--approval", h.approve(t, plan, h.bob), "--timeout", "2s"}
	for _, trouble := range [][]int{{400}, {302}, {503, 503, 503, 503, 503}, {429, 408, 425, 503, 503}, {503, 409}} {
		h.service.trouble = trouble
		h.commit(t, plan, approvals...).expect(t, 5, "all that was done before is taken back")
		sameTree(t, h.to, h.before)
	}
	h.service.trouble = []int{503, 429}
	h.commit(t, plan, approvals...).expect(t, 0, "committed: ")
	if s := h.service.state(); s != [2]int{1, 1} {
		t.Error("orders", s)
	}
	h.service.trouble = []int{500, 500, 500, 500, 500}
	o := call(t, command(t, "runner-gate", "revert", "--journal", h.journal, "--timeout", "2s"))
	o.expect(t, 1, "stays as it is")
	sameTree(t, h.to, h.before)
}

// TestGateUnsure: where a service may have done what was asked for and did not say so, the directory is as before, and it is said what is
// not known.
func TestGateUnsure(t *testing.T) {
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	h.service.trouble = []int{500, 500, 500, 500, 500}
	h.commit(t, plan, "--policy", h.policy, "--approval", h.approve(t, plan, h.alice), "--approval", h.approve(t, plan, h.bob)).expect(t, 5, "taken back, except intent-1", "it is not known whether it happened")
	sameTree(t, h.to, h.before)
	call(t, command(t, "runner-gate", "status", "--journal", h.journal)).expect(t, 0, "failed: plan")
}

// TestGateEdited: a plan of which a byte is changed, or that is of another archive, is refused.
func TestGateEdited(t *testing.T) {
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	text := string(testkit.Read(t, plan))
	file := h.dir + "/edited.json"
	for _, edit := range [][2]string{{`"docs/new.md"`, `"docs/now.md"`}, {`"allowed":true`, `"allowed":false`}, {`"complete":true`, `"complete": true`}, {`"count":2`, `"count":1`}, {`"archive":"sha256:`, `"archive":"sha256:0`}, {"\n", ""}} {
		if !strings.Contains(text, edit[0]) {
			t.Fatalf("the plan has no %s", edit[0])
		}
		testkit.Must(t, os.WriteFile(file, []byte(strings.Replace(text, edit[0], edit[1], 1)), 0o644))
		o := h.commit(t, file, "--policy", h.policy)
		if o.code != 1 && o.code != 3 || !strings.Contains(o.stderr, "gate_approval_stale") && !strings.Contains(o.stderr, "not in the form") {
			t.Errorf("%s: %v", edit[0], o)
		}
	}
	other := newGateHouse(t)
	h.archive = other.archive
	h.commit(t, plan, "--policy", h.policy).expect(t, 1, "gate_approval_stale", "the plan is about the archive")
	sameTree(t, h.to, h.before)
}

// TestGateReplay: a run with intents and requests is replayed without its network, and asks for the same.
func TestGateReplay(t *testing.T) {
	h := newGateHouse(t)
	metrics := h.dir + "/metrics.json"
	r, o := replay(t, h.archive, "--metrics", metrics)
	if o.code != 0 || r.Verdict != "equal" || !slices.ContainsFunc(r.Layers, func(l struct {
		Name             string
		Equal            bool
		Recorded, Replay string
	}) bool {
		return l.Name == "intents" && l.Equal
	}) {
		t.Fatal(o)
	}
	if h.service.calls != 0 {
		t.Error("the replay asked the service")
	}
	var m struct {
		Revert  *float64 `json:"mean_revert_time_ms"`
		Reverts int
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, metrics), &m))
	if m.Revert == nil || *m.Revert <= 0 || m.Reverts != 1 {
		t.Errorf("%s", testkit.Read(t, metrics))
	}
}

// TestGateJSON: what the tool prints for programs are the documents of the contract.
func TestGateJSON(t *testing.T) {
	h := newGateHouse(t)
	plan, o := h.plan(t, "--policy", h.policy, "--json")
	if o.stdout != string(testkit.Read(t, plan)) {
		t.Error("--json prints another plan than -o writes")
	}
	var p struct {
		Files    []struct{ Op, Path string }
		Decision struct {
			PolicyVersion string
			Bundle        struct{ Allowed, RequiresApproval bool }
		}
	}
	testkit.Must(t, json.Unmarshal([]byte(o.stdout), &p))
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Op+" "+f.Path)
	}
	want := []string{"delete dir", "delete dir/a", "delete dir/b", "modify docs/guide.md", "add docs/link", "add docs/new.md", "add moved", "add moved/a", "add moved/b", "delete old.txt", "mode tool.sh"}
	if !slices.Equal(names, want) || p.Decision.PolicyVersion != "7" || !p.Decision.Bundle.Allowed || !p.Decision.Bundle.RequiresApproval {
		t.Errorf("%q\n%+v", names, p.Decision)
	}
	call(t, command(t, "runner-gate", "show", plan, "--json")).expect(t, 0, o.stdout)
}

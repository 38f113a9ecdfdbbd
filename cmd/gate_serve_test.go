//go:build linux

package cmd_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/testkit/browser"
)

// gateServer is a runner-gate serve that runs.
type gateServer struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // with the token
	session string
}

// serve starts a server of alice.
func (h *gateHouse) serve(t *testing.T, args ...string) *gateServer {
	t.Helper()
	s := &gateServer{t: t, cmd: command(t, "runner-gate", append([]string{"serve", "--dir", h.dir + "/state", "--policy", h.policy, "--key", h.alice, "--to", h.to, "--journal", h.journal, "--actor", "Alice"}, args...)...)}
	out, err := s.cmd.StdoutPipe()
	testkit.Must(t, err)
	s.cmd.Stderr = os.Stderr
	testkit.Must(t, s.cmd.Start())
	t.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	s.address = strings.TrimSpace(line)
	return s
}

func (s *gateServer) stop() {
	s.cmd.Process.Signal(os.Interrupt)
	s.cmd.Wait()
}

// origin is the address without the token.
func (s *gateServer) origin() string {
	u, err := url.Parse(s.address)
	testkit.Must(s.t, err)
	return "http://" + u.Host
}

// gateView is what the server says of an archive.
type gateView struct {
	ID, Status, Digest, Stale, Why string
	Left                           []string
	CannotUndo                     []string `json:"cannot_undo"`
	Error                          struct {
		Code, Message string
		Details       []string
	}
}

// ask makes a request of a program.
func (s *gateServer) ask(method, path, kind, body string) (v gateView) {
	s.t.Helper()
	if s.session == "" {
		_, token, _ := strings.Cut(s.address, "#token=")
		res, err := http.Post(s.origin()+"/session", "application/json", strings.NewReader(`{"token":"`+token+`","program":true}`))
		testkit.Must(s.t, err)
		var o struct{ Session string }
		testkit.Must(s.t, json.NewDecoder(res.Body).Decode(&o))
		res.Body.Close()
		s.session = o.Session
	}
	r, err := http.NewRequest(method, s.origin()+path, strings.NewReader(body))
	testkit.Must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.session)
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		v.Error.Code = "cut" // it was killed
		return v
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	testkit.Must(s.t, err)
	testkit.Must(s.t, json.Unmarshal(b, &v))
	return v
}

func (s *gateServer) see(id string) gateView {
	s.t.Helper()
	return s.ask("GET", "/bundles/"+id+"/plan", "", "")
}

// do names the plan that is there now.
func (s *gateServer) do(id, word, more string) gateView {
	s.t.Helper()
	return s.ask("POST", "/bundles/"+id+"/"+word, "application/json", `{"plan":"`+s.see(id).Digest+`"`+more+`}`)
}

func (s *gateServer) expect(v gateView, code, status string) gateView {
	s.t.Helper()
	if v.Error.Code != code || v.Status != status {
		s.t.Fatalf("%q %q, expected %q %q: %+v", v.Error.Code, v.Status, code, status, v)
	}
	return v
}

// add sends the archive, lets alice approve, and takes the approval that bob signed elsewhere.
func (h *gateHouse) add(t *testing.T, s *gateServer) string {
	t.Helper()
	v := s.expect(s.ask("POST", "/bundles", "", string(testkit.Read(t, h.archive))), "", "pending")
	s.expect(s.do(v.ID, "approve", `,"verdict":"approve"`), "", "pending")
	s.expect(s.do(v.ID, "approve", `,"approvals":`+h.signed(t, v.ID, h.bob)), "", "approved")
	return v.ID
}

// signed is an approval that somebody signs elsewhere, as a JSON text.
func (h *gateHouse) signed(t *testing.T, id, key string) string {
	t.Helper()
	b, err := json.Marshal(string(testkit.Read(t, h.approve(t, h.dir+"/state/"+id+"/plan.json", key))))
	testkit.Must(t, err)
	return string(b)
}

// TestGateServe: a person adds an archive to the page, reads its plan, approves, commits, and takes it back.
func TestGateServe(t *testing.T) {
	b := browser.Start(t, "the page of runner-gate in a browser")
	h := newGateHouse(t)
	s := h.serve(t)
	const headline = `document.querySelector("#answer > h2")?.textContent`
	b.Open(s.address, `document.querySelector(".empty")`)
	b.Expect("location.hash + document.cookie", "")
	b.Choose("#file", h.archive)
	b.Until(headline + ` === "Allowed, once it is approved"`)
	for _, want := range []string{"+a new line", "rule orders: 0 of 2 approvals", "rule rest: 0 of 1 approval", "Taken back by DELETE /orders/{id}", h.service.URL + "/orders", "symlink to guide.md", "5 added, 2 changed, 4 deleted"} {
		if text := b.Value(`document.getElementById("plan").innerText`); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	b.Expect(`document.getElementById("commit").disabled`, "true")
	b.Value(`document.getElementById("comment").value = "looks good"`)
	b.Click("#approve")
	b.Until(`document.querySelectorAll(".needs .done").length === 1`)
	id := b.Value("location.hash.slice(1)")
	b.Choose("#signed", h.approve(t, h.dir+"/state/"+id+"/plan.json", h.bob, "--comment", "fine by me"))
	b.Until(headline + ` === "It can be committed"`)
	sameTree(t, h.to, h.before)
	b.Click("#commit")
	b.Until(headline + ` === "Committed"`)
	if got := string(testkit.Read(t, h.to+"/docs/guide.md")); got != "one\ntwo\na new line\n" || h.service.state() != [2]int{1, 1} {
		t.Errorf("after the commit: %q, %v", got, h.service.state())
	}
	b.Open(s.origin()+"/#"+id, headline+` === "Committed"`) // the session stays in the browser
	b.Click("#revert")
	b.Until(headline + ` === "Committed, and taken back"`)
	sameTree(t, h.to, h.before)
	if h.service.state() != [2]int{0, 1} {
		t.Error("after the revert", h.service.state())
	}
	quietPage(t, b, s)

	other := browser.Start(t, "the page of runner-gate in a browser")
	other.Open(s.address, `document.getElementById("error")?.textContent.includes("token")`)
	other.Expect(`document.getElementById("answer")`, "<nil>")
}

// quietPage: the browser asked nobody but the server, and had nothing to complain about.
func quietPage(t *testing.T, b *browser.Browser, s *gateServer) {
	t.Helper()
	for _, a := range b.Requested {
		if !strings.HasPrefix(a, s.origin()+"/") {
			t.Errorf("the page asked for %q", a)
		}
	}
	if len(b.Complaints) > 0 {
		t.Errorf("the browser complains: %q", b.Complaints)
	}
}

// hostileAgent makes names and contents that a page could take for something else.
const hostileAgent = `
import json, os
log = open(os.environ["ASSAY_RUNNER_INTENT_LOG"], "a", buffering=1)
bad = ["new\nline", "<img src=x onerror=alert(1)>", "<script>alert(1)|script>", "bidi \u202egnp.exe", "zero\u200bwidth", "\x1b[31mred", "\ufeff\u3000wide", "two  blanks ", "javascript:alert(1)", "Z" + "\u0351\u036b" * 40, "x" * 255, "'\"&amp;` + "`" + `", "{{csrf}}"]
for n in [b.encode() for b in bad] + [b"no text \xff\xfe"]:
    open(n, "w").write("<script>alert(1)</script>\n\u202ereversed \x1b[31m\r\n" + "long " * 3000 + "\n")
deep = ""
for i in range(10):
    deep += "deep" * 60 + "/"
    os.mkdir(deep)
log.write(json.dumps(dict(schema="assay.runner.intent.v0", run_id=os.environ["ASSAY_RUNNER_RUN_ID"], seq=0, intent_type="http.request", payload={"method": "POST", "url": "http://127.0.0.1:1/" + "x" * 1500, "json": {"<b>": "</script><script>alert(1)</script>"}})) + "\n")
`

// TestGateServeHostile: what a run chooses is text on the page. It runs nothing, hides nothing and moves nothing.
func TestGateServeHostile(t *testing.T) {
	b := browser.Start(t, "the page of runner-gate in a browser")
	h := newGateHouse(t)
	testkit.Must(t, os.WriteFile(h.policy, []byte("schema: runner.gate_policy.v0\ndefault: allow\n"), 0o644))
	file := filepath.Join(t.TempDir(), "hostile.tar.gz")
	o := call(t, command(t, "runner-exec", "--intents", "--replayable", "--archive", file, "--", tool("runner-box"), "--base", h.to, "--fallback", "copy", "--", python(t), "-c", hostileAgent))
	o.expect(t, 0, "complete")
	s := h.serve(t)
	b.Open(s.address, `document.querySelector(".empty")`)
	b.Choose("#file", file)
	b.Until(`document.querySelectorAll("#files .item").length === 24`)
	b.Value(`for (const d of document.querySelectorAll("details.item")) d.open = true`)
	b.Until(`document.querySelectorAll("#files pre").length === 14`)
	for _, width := range []int{400, 1280} {
		b.Size(width, 900)
		b.Until("innerWidth === " + map[int]string{400: "400", 1280: "1280"}[width])
		b.Expect("document.documentElement.scrollWidth <= innerWidth", "true")
	}
	b.Expect(`document.querySelectorAll("article script, article img, article b, article a").length`, "0")
	b.Expect(`/[\u0000-\u0008\u000b-\u001f\u007f\u200b\u202a-\u202e\u2066-\u2069\ufeff\u3000]/.test(document.body.innerText)`, "false")
	for _, want := range []string{`new\u000aline`, "<img src=x onerror=alert(1)>", `bidi \u202egnp.exe`, `no text \xff\xfe`, `two \u0020blanks\u0020`, "{{csrf}}", "'\"&amp;`", "… all 2"} {
		if text := b.Value("document.body.innerText"); !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	quietPage(t, b, s)
}

// TestGateServeMany: a page of many files is there at once, and each of them can be found.
func TestGateServeMany(t *testing.T) {
	b := browser.Start(t, "the page of runner-gate in a browser")
	h := newGateHouse(t)
	const agent = "import os\nfor i in range(2500):\n    open('docs/file%04d' % i if i < 2000 else 'top%04d' % i, 'w').write('line\\n' * 20)\n"
	file := filepath.Join(t.TempDir(), "many.tar.gz")
	o := call(t, command(t, "runner-exec", "--replayable", "--archive", file, "--", tool("runner-box"), "--base", h.to, "--fallback", "copy", "--", python(t), "-c", agent))
	o.expect(t, 0, "complete")
	s := h.serve(t)
	b.Open(s.address, `document.querySelector(".empty")`)
	b.Choose("#file", file)
	b.Until(`document.querySelectorAll("#files .item").length > 0`)
	b.Expect(`document.querySelectorAll("*").length < 5000`, "true")
	b.Value(`(() => { const f = document.querySelector("#files input"); f.value = "FILE1999"; f.dispatchEvent(new Event("input")); })()`)
	b.Until(`document.querySelectorAll("#files .item").length === 1`)
	b.Value(`(() => { const f = document.querySelector("#files input"); f.value = ""; f.dispatchEvent(new Event("input")); })()`)
	b.Until(`document.querySelectorAll("#files .item").length > 1`)
	for n := b.Value(`document.querySelectorAll("#files .item").length`); ; {
		if b.Value(`document.querySelectorAll("#files .items > button.more").length`) == "0" {
			break
		}
		b.Click("#files .items > button.more")
		if m := b.Value(`document.querySelectorAll("#files .item").length`); m == n {
			t.Fatal("more shows no more")
		} else {
			n = m
		}
	}
	b.Expect(`document.querySelectorAll("#files .item").length`, "2500")
	quietPage(t, b, s)
}

// TestGateServeProgram: a program does the same. A policy that is edited after the approval is in force at once.
func TestGateServeProgram(t *testing.T) {
	h := newGateHouse(t)
	s := h.serve(t)
	id := h.add(t, s)
	again := s.ask("POST", "/bundles", "application/json", `{"bundle":"`+base64.StdEncoding.EncodeToString(testkit.Read(t, h.archive))+`"}`)
	if s.expect(again, "", "approved"); again.ID != id {
		t.Error("one archive has two ids")
	}
	before := testkit.Read(t, h.policy)
	testkit.Must(t, os.WriteFile(h.policy, []byte(strings.Replace(string(before), "<= 100", "<= 1000", 1)), 0o644))
	s.expect(s.see(id), "", "stale")
	s.expect(s.do(id, "commit", ""), "gate_approval_stale", "")
	s.expect(s.ask("POST", "/bundles/"+id+"/plan", "", ""), "", "pending")
	s.expect(s.do(id, "commit", ""), "gate_approval_missing", "")
	testkit.Must(t, os.WriteFile(h.policy, []byte("schema: runner.gate_policy.v0\n"), 0o644))
	s.expect(s.ask("POST", "/bundles/"+id+"/plan", "", ""), "", "denied")
	s.expect(s.do(id, "commit", ""), "gate_denied", "")
	testkit.Must(t, os.WriteFile(h.policy, before, 0o644))
	s.expect(s.ask("POST", "/bundles/"+id+"/plan", "", ""), "", "approved") // the same plan as at first, and its approvals
	sameTree(t, h.to, h.before)

	mend := edit(t, h.to+"/old.txt", "edited\n")
	if v := s.expect(s.do(id, "commit", ""), "gate_conflict", ""); len(v.Error.Details) != 1 || !strings.HasPrefix(v.Error.Details[0], "old.txt: ") {
		t.Errorf("%+v", v.Error)
	}
	mend()
	h.service.trouble = []int{400}
	s.expect(s.do(id, "commit", ""), "undone", "")
	sameTree(t, h.to, h.before)
	s.expect(s.do(id, "commit", ""), "", "committed")
	s.expect(s.do(id, "commit", ""), "", "committed")
	if h.service.state() != [2]int{1, 1} {
		t.Error(h.service.state())
	}
	s.expect(s.ask("POST", "/bundles/"+id+"/plan", "", ""), "status", "")
	testkit.Must(t, os.WriteFile(h.policy, []byte("x"), 0o644))
	s.expect(s.do(id, "revert", ""), "", "reverted") // it needs no policy
	sameTree(t, h.to, h.before)
	testkit.Must(t, os.WriteFile(h.policy, before, 0o644))
	s.expect(s.do(id, "commit", ""), "status", "")
	s.expect(s.do(id, "revert", ""), "status", "")
	sameTree(t, h.to, h.before)
}

// TestGateServeStopped: a server that is told to stop in the middle of a commit says so, and the same request goes on when it runs again.
func TestGateServeStopped(t *testing.T) {
	h := newGateHouse(t)
	s := h.serve(t)
	id := h.add(t, s)
	real := h.service.Config.Handler
	h.service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.service.Config.Handler = real
		io.Copy(io.Discard, r.Body)
		s.cmd.Process.Signal(syscall.SIGTERM)
		<-r.Context().Done() // the request is given up
	})
	s.expect(s.do(id, "commit", ""), "interrupted", "")
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	s = h.serve(t)
	s.expect(s.see(id), "", "started")
	s.expect(s.do(id, "commit", ""), "", "committed")
	if h.service.state() != [2]int{1, 1} {
		t.Error(h.service.state())
	}
	s.expect(s.do(id, "revert", ""), "", "reverted")
	sameTree(t, h.to, h.before)
}

// TestGateServeKilled: a server that is killed in the middle of a commit goes on when it runs again, forward or back.
func TestGateServeKilled(t *testing.T) {
	for _, word := range []string{"commit", "revert"} {
		h := newGateHouse(t)
		s := h.serve(t)
		id := h.add(t, s)
		real := h.service.Config.Handler
		h.service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.service.Config.Handler = real
			io.Copy(io.Discard, r.Body)
			s.cmd.Process.Kill()
			s.cmd.Wait()
			panic(http.ErrAbortHandler) // nobody is there to be answered
		})
		s.expect(s.do(id, "commit", ""), "cut", "")
		if !testkit.Exists(h.to + "/docs/new.md") {
			t.Fatal("the server was killed too early")
		}
		s = h.serve(t)
		s.expect(s.see(id), "", "started")
		s.expect(s.do(id, "approve", `,"verdict":"deny"`), "status", "")
		s.expect(s.ask("POST", "/bundles/"+id+"/plan", "", ""), "status", "")
		if word == "commit" {
			s.expect(s.do(id, word, ""), "", "committed")
			if h.service.state() != [2]int{1, 1} {
				t.Error(h.service.state())
			}
			s.expect(s.do(id, "revert", ""), "", "reverted")
		} else if v := s.do(id, word, ""); v.Error.Code != "" || len(v.Left) != 1 {
			t.Errorf("%+v", v)
		}
		sameTree(t, h.to, h.before)
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestServeTables: GATE.md has the addresses and the codes of the code.
func TestServeTables(t *testing.T) {
	ts := newTestServer(t)
	_, text, found := strings.Cut(string(testkit.Read(t, "../../schemas/GATE.md")), "\n## HTTP\n")
	if !found {
		t.Fatal("GATE.md has no section HTTP")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var routes, codes []string
	for _, r := range ts.routes() {
		routes = append(routes, r.method+" "+r.path)
	}
	for _, e := range httpErrors {
		codes = append(codes, fmt.Sprintf("| `%s` | %d | %s |", e.code, e.status, e.means))
	}
	var said, saidCodes []string
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:GET|POST) [^`]*)` \\|").FindAllStringSubmatch(text, -1) {
		said = append(said, m[1])
	}
	saidCodes = append(saidCodes, regexp.MustCompile("(?m)^\\| `[a-z_]+` \\| \\d+ \\|.*$").FindAllString(text, -1)...)
	if !slices.Equal(routes, said) {
		t.Errorf("GATE.md has the addresses\n%s\nexpected\n%s", strings.Join(said, "\n"), strings.Join(routes, "\n"))
	}
	if !slices.Equal(codes, saidCodes) {
		t.Errorf("GATE.md has the codes\n%s\nexpected\n%s", strings.Join(saidCodes, "\n"), strings.Join(codes, "\n"))
	}
	for _, s := range []string{statusPending, statusApproved, statusDenied, statusStale, statusCommitted, statusReverted, statusFailed, statusUnder, statusUnread} {
		if !strings.Contains(text, "`"+s+"`") {
			t.Errorf("GATE.md does not have the status %s", s)
		}
	}
}

// TestServeNames: nothing of a request becomes part of the name of a file but an id.
func TestServeNames(t *testing.T) {
	ts := newTestServer(t)
	testkit.Must(t, os.MkdirAll(ts.root+"/other", 0o700))
	plan := testkit.Read(t, filepath.Join(ts.place(ts.id), filePlan))
	for _, dir := range []string{ts.root + "/other", ts.dir, ts.dir + "/" + strings.Repeat("A", 64), ts.dir + "/short"} {
		testkit.Must(t, os.MkdirAll(dir, 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, filePlan), plan, 0o600))
	}
	for _, id := range []string{"..%2fother", "%2e%2e%2fother", "..", ".", "%2e", "", "short", strings.Repeat("A", 64), strings.Repeat("0", 64), strings.Repeat("0", 63), ts.id + "0", ts.id + "%00", ts.id + "%2f", ts.id + "%2f..%2f" + ts.id,
		"%2f" + strings.TrimPrefix(ts.root, "/") + "%2fother", strings.ToUpper(ts.id), "lock"} {
		for _, m := range []string{"GET plan", "GET plan.json", "POST plan", "POST approve", "POST commit", "POST revert"} {
			method, word, _ := strings.Cut(m, " ")
			r := ts.ask(method, "/bundles/"+id+"/"+word, `{"plan":"x"}`)
			if r.code != codeBundle && r.code != codeAddress && (r.status < 300 || r.status > 399) {
				t.Errorf("%s %q: %d %s", m, id, r.status, testkit.Clip(r.body))
			}
			if id == strings.ToUpper(ts.id) && r.code != codeBundle {
				t.Errorf("%s: an id has a second spelling", m)
			}
		}
	}
	ts.expect("the one that is there", ts.ask("GET", "/bundles/"+ts.id+"/plan", ""), "")
	if r := ts.ask("GET", "/bundles/"+ts.id+"/plan.json", ""); r.body != string(plan) {
		t.Error("plan.json is not the file")
	}
	for _, m := range []string{"DELETE /bundles", "PUT /bundles/" + ts.id + "/plan", "GET /bundles/" + ts.id + "/commit", "GET /bundles/" + ts.id, "POST /bundles/" + ts.id + "/other", "TRACE /bundles"} {
		method, path, _ := strings.Cut(m, " ")
		ts.expect(m, ts.ask(method, path, ""), codeAddress)
	}
}

// TestServeBodies: a body has a bound in bytes and in time, and one form.
func TestServeBodies(t *testing.T) {
	ts := newTestServer(t)
	to := "/bundles/" + ts.id + "/approve"
	ts.expect("none", ts.ask("POST", to, ""), codeBody)
	ts.expect("no JSON", ts.ask("POST", to, "x"), codeBody)
	ts.expect("a list", ts.ask("POST", to, "[]"), codeBody)
	ts.expect("another key", ts.ask("POST", to, `{"plan":"x","verdict":"approve","more":1}`), codeBody)
	ts.expect("a key twice", ts.ask("POST", to, `{"plan":"x","plan":"y"}`), codeBody)
	ts.expect("long", ts.ask("POST", to, `{"plan":"`+strings.Repeat("x", maxBody)+`"}`), codeTooLong)
	ts.expect("long, for a session", ts.send("POST", "/session", strings.Repeat("x", maxBody+1)), codeTooLong)
	ts.expect("no base64", ts.send("POST", "/bundles", `{"bundle":"?"}`, ts.session(), "Content-Type: application/json"), codeBody)
	ts.expect("no archive", ts.send("POST", "/bundles", `{"bundle":"eA=="}`, ts.session(), "Content-Type: application/json"), codeArchive)
	if left, _ := filepath.Glob(filepath.Join(ts.dir, uploadPrefix+"*")); len(left) > 0 {
		t.Error("an upload that failed is still there", left)
	}
	for range maxUploads {
		ts.uploads <- struct{}{}
	}
	ts.expect("one upload too many", ts.ask("POST", "/bundles", "x"), codeBusy)

	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := body(w, r, maxBody, 50*time.Millisecond)
		p := problemOf(err)
		refuse(w, p.code, p.Error())
	}))
	defer slow.Close()
	c, err := net.Dial("tcp", slow.Listener.Addr().String())
	testkit.Must(t, err)
	defer c.Close()
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
	testkit.Must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	testkit.Must(t, err)
	if !bytes.Contains(answer[:n], []byte(" 400 ")) {
		t.Errorf("a slow body: %s", answer[:n])
	}
}

// TestServeSlow: who sends a body slowly keeps nobody waiting.
func TestServeSlow(t *testing.T) {
	ts := newTestServer(t)
	c, err := net.Dial("tcp", ts.http.Listener.Addr().String())
	testkit.Must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "POST /bundles/%s/approve HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Length: 10\r\n\r\n{", ts.id, ts.http.Listener.Addr(), ts.session())
	for range 3 {
		ts.expect("meanwhile", ts.ask("GET", "/bundles", ""), "")
		time.Sleep(20 * time.Millisecond)
	}
}

// TestServeCodes: each kind of error has its code.
func TestServeCodes(t *testing.T) {
	conflict := &journal.ConflictError{Conflicts: []journal.Conflict{{Path: "a", Why: "it is a directory"}}, Count: 1}
	for _, x := range []struct {
		err     error
		code    string
		details int
	}{
		{because(codeBundle, "x"), codeBundle, 0},
		{journalError(conflict), gate.ErrConflict.Error(), 1},
		{journalError(&journal.UndoneError{Cause: errors.New("it answered 400"), Left: []string{"intent-1"}}), codeUndone, 1},
		{journalError(fmt.Errorf("x: %w", journal.ErrBusy)), codeBusy, 0},
		{journalError(fmt.Errorf("x: %w", journal.ErrInterrupted)), codeCut, 0},
		{journalError(fmt.Errorf("x: %w", journal.ErrState)), codeStatus, 0},
		{journalError(journal.ErrUnsupported), codeCannot, 0},
		{journalError(os.ErrPermission), codeFailed, 0},
		{tool.Fail(tool.ExitNo, fmtDenied("now", []string{"closed"})), gate.ErrDenied.Error(), 0},
		{tool.Fail(tool.ExitNo, fmt.Errorf("%w: x", gate.ErrMissing)), gate.ErrMissing.Error(), 0},
		{tool.Fail(tool.ExitNo, fmt.Errorf("%w: x", gate.ErrStale)), gate.ErrStale.Error(), 0},
		{tool.Failf(tool.ExitInput, "x"), codeInvalid, 0},
	} {
		if p := problemOf(x.err); p.code != x.code || len(p.details) != x.details {
			t.Errorf("%v has the code %s and %q", x.err, p.code, p.details)
		}
	}
	w := httptest.NewRecorder()
	refuse(w, gate.ErrDenied.Error(), "gate_denied: by a name \xff", "\xff")
	if got := w.Body.String(); w.Code != http.StatusForbidden || got != `{"error":{"code":"gate_denied","message":"by a name `+"\uFFFD"+`","details":["`+"\uFFFD"+`"]}}`+"\n" {
		t.Error(w.Code, got)
	}
}

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// about is a body that names the plan that is there now.
func (ts *testServer) about(more string) string {
	ts.t.Helper()
	return `{"plan":"` + ts.see().Digest + `"` + more + `}`
}

// see is the archive as it is now.
func (ts *testServer) see() view {
	ts.t.Helper()
	return ts.expect("plan", ts.ask("GET", "/bundles/"+ts.id+"/plan", ""), "").view
}

func (ts *testServer) status(want string) {
	ts.t.Helper()
	var list []summary
	testkit.Must(ts.t, json.Unmarshal([]byte(ts.ask("GET", "/bundles", "").body), &list))
	if v := ts.see(); v.Status != want || len(list) != 1 || list[0].Status != want || list[0].ID != ts.id {
		ts.t.Errorf("the status is %s, and %+v in the list, expected %s", v.Status, list, want)
	}
}

// TestServeApprove: an approval is of the plan that was shown, by a key that counts, and is signed.
func TestServeApprove(t *testing.T) {
	ts := newTestServer(t, "--actor", "Alice")
	to := "/bundles/" + ts.id + "/approve"
	ts.status(statusPending)
	for what, body := range map[string]string{"no plan": `{"verdict":"approve"}`, "another plan": `{"plan":"sha256:` + strings.Repeat("0", 64) + `","verdict":"approve"}`, "another version": ts.about(`,"verdict":"approve","policyVersion":"6"`)} {
		ts.expect(what, ts.ask("POST", to, body), gate.ErrStale.Error())
	}
	for what, more := range map[string]string{"no verdict": ``, "another verdict": `,"verdict":"yes"`, "two forms": `,"verdict":"approve","approvals":"x"`, "no approval": `,"approvals":"x"`} {
		ts.expect(what, ts.ask("POST", to, ts.about(more)), codeBody)
	}
	ts.status(statusPending)
	r := ts.expect("approve", ts.ask("POST", to, ts.about(`,"verdict":"approve","comment":"a \u202e \"b\"","policyVersion":"7"`)), "")
	if a := r.view.Approvals; len(a) != 1 || a[0].Comment != "a \u202e \"b\"" || a[0].Actor != "Alice" || a[0].Plan != r.view.Digest || a[0].Key != r.view.Key {
		t.Errorf("%+v", a)
	}
	ts.status(statusApproved)
	ts.expect("twice", ts.ask("POST", to, ts.about(`,"verdict":"approve"`)), "")
	if v := ts.see(); len(v.Approvals) != 1 {
		t.Error("an approval counts twice")
	}
	envelopes, err := attestation.Parse(testkit.Read(t, filepath.Join(ts.place(ts.id), fileApprovals)))
	testkit.Must(t, err)
	if len(envelopes) != 2 || len(envelopes[0].Signers([]*attestation.PublicKey{ts.own})) != 1 {
		t.Error("an approval is not signed")
	}
	ts.expect("deny", ts.ask("POST", to, ts.about(`,"verdict":"deny"`)), "")
	ts.status(statusDenied)
	ts.expect("a commit of what is denied", ts.ask("POST", "/bundles/"+ts.id+"/commit", `{"plan":"x"}`), gate.ErrStale.Error())
}

// TestServeTabs: in one of two tabs is an old plan. What it asks for is refused.
func TestServeTabs(t *testing.T) {
	ts := newTestServer(t)
	old := ts.about(`,"verdict":"approve"`)
	ts.addPlan("run_1", 2)
	for _, word := range []string{"approve", "commit", "revert"} {
		body := old
		if word != "approve" {
			body = strings.Replace(old, `,"verdict":"approve"`, "", 1)
		}
		ts.expect(word, ts.ask("POST", "/bundles/"+ts.id+"/"+word, body), gate.ErrStale.Error())
	}
	if v := ts.see(); v.Files != 2 || len(v.Approvals) != 0 {
		t.Errorf("%+v", v.summary)
	}
	ts.expect("a revert of nothing", ts.ask("POST", "/bundles/"+ts.id+"/revert", ts.about("")), codeStatus)
}

// TestServeElsewhere: approvals that others signed are taken, if they count. A key of the server that does not count signs nothing.
func TestServeElsewhere(t *testing.T) {
	ts := newTestServer(t)
	to := "/bundles/" + ts.id + "/approve"
	v := ts.see()
	sign := func(file string, p *gate.Plan, digest string) string {
		k, err := attestation.ReadPrivate(ts.env, file)
		testkit.Must(t, err)
		public, err := k.Public()
		testkit.Must(t, err)
		e, err := gate.NewApproval(p, digest, gate.Approve, public, time.Now(), time.Now().Add(time.Hour)).Sign(k)
		testkit.Must(t, err)
		line, err := e.Line(false)
		testkit.Must(t, err)
		b, err := json.Marshal(string(line))
		testkit.Must(t, err)
		return string(b)
	}
	ts.expect("by a key that does not count", ts.ask("POST", to, ts.about(`,"approvals":`+sign(ts.eve, v.Plan, v.Digest))), gate.ErrStale.Error())
	ts.expect("of another plan", ts.ask("POST", to, ts.about(`,"approvals":`+sign(ts.root+"/alice.pem", v.Plan, schemas.DigestOf("x")))), gate.ErrStale.Error())
	ts.status(statusPending)
	ts.expect("one that counts", ts.ask("POST", to, ts.about(`,"approvals":`+sign(ts.root+"/alice.pem", v.Plan, v.Digest))), "")
	ts.status(statusApproved)

	var err error
	ts.key, err = attestation.ReadPrivate(ts.env, ts.eve)
	testkit.Must(t, err)
	ts.own, err = ts.key.Public()
	testkit.Must(t, err)
	ts.expect("eve", ts.ask("POST", to, ts.about(`,"verdict":"approve"`)), codeKey)
	ts.expect("eve denies", ts.ask("POST", to, ts.about(`,"verdict":"deny"`)), codeKey)
	if ts.see().MayApprove {
		t.Error("eve may approve")
	}
}

// TestServePolicyEdited: what is shown and committed follows from the policy as its file is now.
func TestServePolicyEdited(t *testing.T) {
	ts := newTestServer(t)
	to := "/bundles/" + ts.id
	ts.expect("approve", ts.ask("POST", to+"/approve", ts.about(`,"verdict":"approve"`)), "")
	file := ts.root + "/gate.yaml"
	before := testkit.Read(t, file)
	for what, text := range map[string]string{"another version": strings.Replace(string(before), `"7"`, `"8"`, 1), "a blank": string(before) + "\n", "a denial": "schema: runner.gate_policy.v0\n", "no policy": "x", "an empty file": ""} {
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o644))
		ts.status(statusStale)
		if v := ts.see(); v.Stale == "" {
			t.Errorf("%s: %+v", what, v)
		}
		ts.expect(what+": approve", ts.ask("POST", to+"/approve", ts.about(`,"verdict":"approve"`)), gate.ErrStale.Error())
		ts.expect(what+": commit", ts.ask("POST", to+"/commit", ts.about("")), gate.ErrStale.Error())
	}
	testkit.Must(t, os.Remove(file))
	ts.status(statusStale)
	testkit.Must(t, os.WriteFile(file, before, 0o644))
	ts.status(statusApproved)
	ts.partial = true
	ts.status(statusStale)
}

// TestServeBusy: while something is being done, others can look, and nothing else is begun.
func TestServeBusy(t *testing.T) {
	ts := newTestServer(t)
	ts.expect("approve", ts.ask("POST", "/bundles/"+ts.id+"/approve", ts.about(`,"verdict":"approve"`)), "")
	body := ts.about("")
	ts.mu.Lock()
	ts.doing = &doing{word: wordCommit, plan: ts.briefs[ts.id].digest, before: map[string]transacted{ts.briefs[ts.id].digest: {status: statusUnder}}}
	ts.mu.Unlock()
	ts.status(statusUnder)
	if v := ts.see(); v.Doing != wordCommit {
		t.Errorf("doing is %q", v.Doing)
	}
	for _, word := range []string{wordCommit, wordRevert} {
		ts.expect(word, ts.ask("POST", "/bundles/"+ts.id+"/"+word, body), codeBusy)
	}
	ts.expect("approve", ts.ask("POST", "/bundles/"+ts.id+"/approve", ts.about(`,"verdict":"deny"`)), codeStatus)
	ts.mu.Lock()
	ts.doing = nil
	ts.mu.Unlock()
	ts.expect("a commit without the archive", ts.ask("POST", "/bundles/"+ts.id+"/commit", body), codeFailed)
	ts.status(statusApproved)
	if ts.doing != nil {
		t.Error("it is still being done")
	}
}

// TestServeDirs: the state belongs to one server, and to nobody who could change it.
func TestServeDirs(t *testing.T) {
	ts := newTestServer(t)
	start := func(what, want string, args ...string) {
		t.Helper()
		s, err := newServer(context.Background(), envOf(t, serveArgs(ts.root, args...)...))
		if err == nil {
			s.close()
		}
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, expected %q", what, err, want)
		}
	}
	start("a second server", "another runner-gate serves")
	start("in the directory that is changed", "what is committed could change it", "--dir", ts.root+"/to/state")
	testkit.Must(t, os.Symlink(ts.root+"/to", ts.root+"/link"))
	start("in it, by a link", "what is committed could change it", "--dir", ts.root+"/link/state2")
	testkit.Must(t, os.Mkdir(ts.root+"/wide", 0o700))
	testkit.Must(t, os.Chmod(ts.root+"/wide", 0o755))
	start("one that others read", "not ours alone", "--dir", ts.root+"/wide")
	start("no directory to change", "no such file", "--dir", ts.root+"/s3", "--to", ts.root+"/none")
	start("no key", "no such file", "--dir", ts.root+"/s4", "--key", ts.root+"/none")
	testkit.Must(t, os.Mkdir(ts.root+"/s5", 0o700))
	testkit.Must(t, os.WriteFile(ts.root+"/s5/"+uploadPrefix+"1", nil, 0o600))
	start("after a kill", "", "--dir", ts.root+"/s5")
	if testkit.Exists(ts.root + "/s5/" + uploadPrefix + "1") {
		t.Error("what a killed server left is still there")
	}
}

// TestServeUnread: one archive that cannot be read does not hide the others.
func TestServeUnread(t *testing.T) {
	ts := newTestServer(t)
	other := ts.addPlan("run_2", 1)
	testkit.Must(t, os.WriteFile(filepath.Join(ts.place(other), filePlan), []byte("{}\n"), 0o600))
	var list []summary
	testkit.Must(t, json.Unmarshal([]byte(ts.ask("GET", "/bundles", "").body), &list))
	got := map[string]string{}
	for _, s := range list {
		got[s.ID] = s.Status
	}
	if len(got) != 2 || got[ts.id] != statusPending || got[other] != statusUnread {
		t.Error(got)
	}
	ts.expect("the other one", ts.ask("GET", "/bundles/"+other+"/plan", ""), codeInvalid)
}

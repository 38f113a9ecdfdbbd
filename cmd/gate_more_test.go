//go:build linux

package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/cmd/internal/wrapped"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const gateAllow = "schema: runner.gate_policy.v0\ndefault: allow\n"

// gateSchema is the JSON Schema of one of the gate's documents.
func gateSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	f, known := schemas.FormOf(name)
	if !known {
		t.Fatalf("%s is no form", name)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.JSONSchema()))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	testkit.Must(t, c.AddResource(f.File, doc))
	return c.MustCompile(f.File)
}

// eachOf checks lines by a schema.
func eachOf(t *testing.T, s *jsonschema.Schema, text string) {
	t.Helper()
	n := 0
	for line := range strings.Lines(text) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		testkit.Must(t, err)
		if err := s.Validate(v); err != nil {
			t.Errorf("%v\n%s", err, testkit.Clip(line))
		}
		n++
	}
	if n == 0 {
		t.Error("there is nothing to check")
	}
}

// TestGateSchemas: what the tool writes is what the JSON Schemas say.
func TestGateSchemas(t *testing.T) {
	h := newGateHouse(t)
	plan, o := h.plan(t, "--policy", h.policy, "--json")
	eachOf(t, gateSchema(t, schemas.SchemaGatePlan), o.stdout)
	approvals := []string{h.approve(t, plan, h.alice, "--actor", "Alice \xff", "--comment", "fine"), h.approve(t, plan, h.bob)}
	for _, file := range approvals {
		var e struct{ Payload []byte }
		testkit.Must(t, json.Unmarshal(testkit.Read(t, file), &e))
		var s struct{ Predicate json.RawMessage }
		testkit.Must(t, json.Unmarshal(e.Payload, &s))
		eachOf(t, gateSchema(t, schemas.SchemaGateApproval), string(s.Predicate))
	}
	o = h.commit(t, plan, "--policy", h.policy, "--approval", approvals[0], "--approval", approvals[1], "--json")
	o.expect(t, 0, `"status":"committed"`)
	eachOf(t, gateSchema(t, schemas.SchemaGateResult), o.stdout)
	eachOf(t, gateSchema(t, schemas.SchemaGateStatus), call(t, command(t, "runner-gate", "status", "--journal", h.journal, "--json")).stdout)
	o = call(t, command(t, "runner-gate", "revert", "--journal", h.journal, "--plan", plan, "--json"))
	o.expect(t, 0, `"status":"reverted"`)
	eachOf(t, gateSchema(t, schemas.SchemaGateResult), o.stdout)
	text := string(testkit.Read(t, h.journal+"/journal.ndjson"))
	eachOf(t, gateSchema(t, schemas.SchemaGateJournal), text)
	if log := call(t, command(t, "runner-gate", "log", "--journal", h.journal, "--json")).stdout; log != text {
		t.Error("log --json prints another journal than the file")
	}
}

// TestGateApprovalWitness: openssl verifies the signature of an approval, over the bytes that DSSE says.
func TestGateApprovalWitness(t *testing.T) {
	testkit.Programs(t, "a signature by openssl", "openssl")
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig []byte }
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, h.approve(t, plan, h.alice)), &e))
	pae := []byte("DSSEv1 " + strconv.Itoa(len(e.PayloadType)) + " " + e.PayloadType + " " + strconv.Itoa(len(e.Payload)) + " " + string(e.Payload))
	testkit.Must(t, os.WriteFile(h.dir+"/pae", pae, 0o644))
	testkit.Must(t, os.WriteFile(h.dir+"/sig", e.Signatures[0].Sig, 0o644))
	call(t, exec.Command("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", h.alice+".pub", "-rawin", "-in", h.dir+"/pae", "-sigfile", h.dir+"/sig")).expect(t, 0, "Verified Successfully")
	if !strings.Contains(string(e.Payload), strings.TrimPrefix(schemas.DigestOf(testkit.Read(t, plan)), "sha256:")) {
		t.Error("the approval does not name the plan's digest")
	}
}

// TestGateOtherPolicies: policies in WebAssembly and commands decide, alone and together; what they get wrong denies.
func TestGateOtherPolicies(t *testing.T) {
	h := newGateHouse(t)
	wasm, data := "../testdata/fixtures/rego/gate.wasm", h.dir+"/data.json"
	write := func(config string) { testkit.Must(t, os.WriteFile(data, []byte(`{"config":`+config+`}`), 0o644)) }
	write(`{"version":"3","allow":[{"domains":["model.test","127.0.0.1"],"methods":["GET","POST"],"paths":["/*"]}],"caps":{"maxAmount":100},"requireApprovalLabels":["billing"]}`)
	plan, o := h.plan(t, "--policy-wasm", wasm, "--data", data)
	o.expect(t, 0, "allowed, once it is approved", "policy wasm")
	approval := h.approve(t, plan, h.eve)
	h.commit(t, plan, "--policy-wasm", wasm, "--data", data, "--approval", approval).expect(t, 1, "gate_approval")
	write(`{"version":"3","allow":[],"caps":{},"requireApprovalLabels":[]}`)
	h.commit(t, plan, "--policy-wasm", wasm, "--data", data, "--approval", approval, "--public-key", h.eve+".pub").expect(t, 1, "gate_approval_stale", "was a policy edited?")
	write(`{"version":"3","allow":[],"caps":{"maxAmount":41},"requireApprovalLabels":[]}`)
	_, o = h.plan(t, "--policy-wasm", wasm, "--data", data)
	o.expect(t, 1, "the amount is over the cap of 41")

	allow := h.dir + "/allow.yaml"
	testkit.Must(t, os.WriteFile(allow, []byte(gateAllow), 0o644))
	script := h.dir + "/decide.py"
	testkit.Must(t, os.WriteFile(script, []byte(`import json, sys
i = json.load(sys.stdin)
item = lambda x, kind: {"index": x["index"], "type": kind, "allowed": True, "requiresApproval": False, "reasons": [], "approvalReasons": []}
print(json.dumps({"policyVersion": "py", "bundle": {"allowed": True, "requiresApproval": False, "reasons": []}, "intents": [item(x, x["type"]) for x in i["intents"]],
  "network": [{"url": x["url"], "method": x["method"], "allowed": True, "reasons": []} for x in i["network"]]}))
`), 0o644))
	program := "python3 " + script
	plan, o = h.plan(t, "--policy", allow, "--policy-exec", program)
	o.expect(t, 0, "allowed\n")
	h.commit(t, plan, "--policy", allow, "--policy-exec", program).expect(t, 0, "committed: ")
	call(t, command(t, "runner-gate", "revert", "--journal", h.journal)).expect(t, 1, "stays as it is", "no rule of the policy says how to take it back")
	sameTree(t, h.to, h.before)
	for what, line := range map[string]string{"exit": "false", "nothing": "true", "no decision": "echo {}", "text": "echo hello", "no program": "/does/not/exist"} {
		_, o := h.plan(t, "--policy", allow, "--policy-exec", line)
		if o.code == 0 || strings.Contains(o.stdout, "allowed\n") {
			t.Errorf("%s: %v", what, o)
		}
	}
}

// TestGateWithoutPolicy: a commit without the policy needs an approval, and the key of who signed it.
func TestGateWithoutPolicy(t *testing.T) {
	h := newGateHouse(t)
	allow := h.dir + "/allow.yaml"
	testkit.Must(t, os.WriteFile(allow, []byte(gateAllow), 0o644))
	plan, _ := h.plan(t, "--policy", allow)
	h.commit(t, plan).expect(t, 2, "nothing here says that the decision of the plan is right")
	approval := h.approve(t, plan, h.eve)
	h.commit(t, plan, "--approval", approval).expect(t, 2, "expected the policy, or an approval and the key that made it")
	h.commit(t, plan, "--approval", approval, "--public-key", h.alice+".pub").expect(t, 1, "gate_approval_stale")
	h.commit(t, plan, "--approval", approval, "--public-key", h.eve+".pub").expect(t, 0, "committed: ")
}

// TestGateDoubts: evidence that is in doubt is not planned from, unless each doubt is accepted, and then the approval names them.
func TestGateDoubts(t *testing.T) {
	dir := t.TempDir()
	file, plan, policy := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "plan.json"), filepath.Join(dir, "allow.yaml")
	testkit.Must(t, os.WriteFile(policy, []byte(gateAllow+"approvals: {threshold: 1}\n"), 0o644))
	if o := call(t, command(t, "runner-exec", "--no-kernel", "--archive", file, "--", "true")); o.code != 0 {
		t.Fatal(o)
	}
	o := call(t, command(t, "runner-gate", "plan", file, "--policy", policy, "-o", plan))
	o.expect(t, 1, "kernel_layer: absent", "no box", "there is no plan")
	if _, err := os.Stat(plan); err == nil || o.stdout != "" {
		t.Error("there is a plan")
	}
	call(t, command(t, "runner-gate", "plan", file, "--policy", policy, "-o", plan, "--accept-partial")).expect(t, 0, "in doubt   kernel_layer: absent")
	key, _ := gateKey(t, dir, "me")
	o = call(t, command(t, "runner-gate", "approve", "--plan", plan, "--key", key))
	var e struct{ Payload []byte }
	testkit.Must(t, json.Unmarshal([]byte(o.stdout), &e))
	if !strings.Contains(string(e.Payload), `"accepted":["kernel_layer: absent"`) {
		t.Errorf("%s", e.Payload)
	}
}

// TestGateKilled: a commit and a revert that are killed at any moment go on when they are called again: the directory is as it was to be,
// and the order was made once.
func TestGateKilled(t *testing.T) {
	h := newGateHouse(t)
	plan, _ := h.plan(t, "--policy", h.policy)
	approvals := []string{"--policy", h.policy, "--approval", h.approve(t, plan, h.alice), "--approval", h.approve(t, plan, h.bob)}
	h.commit(t, plan, approvals...).expect(t, 0, "committed: ")
	after := scan(t, h.to)
	killed := func(delay time.Duration, args ...string) {
		cmd := command(t, "runner-gate", args...)
		testkit.Must(t, cmd.Start())
		time.Sleep(delay)
		cmd.Process.Kill()
		cmd.Wait()
	}
	for n := range 16 {
		h.to, h.journal = fmt.Sprint(h.dir, "/to", n), fmt.Sprint(h.dir, "/journal", n)
		gateBase(t, h.to)
		delay := time.Duration(n) * 12 * time.Millisecond
		commit := append([]string{"commit", h.archive, "--plan", plan, "--to", h.to, "--journal", h.journal}, approvals...)
		killed(delay+60*time.Millisecond, commit...)
		killed(delay, commit...)
		call(t, command(t, "runner-gate", commit...)).expect(t, 0, "committed")
		sameTree(t, h.to, after)
		killed(time.Duration(n)*4*time.Millisecond, "revert", "--journal", h.journal)
		o := call(t, command(t, "runner-gate", "revert", "--journal", h.journal, "--plan", plan))
		o.expect(t, 0, "reverted")
		sameTree(t, h.to, h.before)
	}
	if s := h.service.state(); s[1] != 1 {
		t.Errorf("%d orders were made", s[1])
	}
}

// TestGateHostile: an archive whose changes lead out of the directory, or are of what cannot be made, changes nothing, whatever the policy.
func TestGateHostile(t *testing.T) {
	h := newGateHouse(t)
	allow := h.dir + "/allow.yaml"
	testkit.Must(t, os.WriteFile(allow, []byte(gateAllow), 0o644))
	outside := h.dir + "/outside"
	testkit.Must(t, os.MkdirAll(outside, 0o755))
	good := openArchive(t, h.archive)
	file := `{"kind":"file","mode":420,"size":0,"sha256":"` + schemas.DigestOf("") + `"}`
	for name, c := range map[string][2]string{
		"above":       {`"../outside/x"`, file},
		"absolute":    {strconv.Quote(outside + "/x"), file},
		"in between":  {`"docs/../../outside/x"`, file},
		"slashes":     {`"docs//x"`, file},
		"a link out":  {`"docs/out/x"`, file},
		"a long name": {strconv.Quote(strings.Repeat("a", 300)), file},
		"a device":    {`"null"`, `{"kind":"char","mode":438,"device":259}`},
		"a socket":    {`"s"`, `{"kind":"socket","mode":438}`},
		"a mount":     {`"m"`, `{"kind":"dir","mode":493,"mount":true}`},
		"unread":      {`"u"`, `{"kind":"file","mode":420,"size":1,"unread":"EIO"}`},
		"no content":  {`"n"`, `{"kind":"file","mode":420,"size":1,"sha256":"sha256:` + strings.Repeat("7", 64) + `"}`},
		"a hard link": {`"l"`, `{"kind":"file","mode":420,"size":1,"link":"../outside/x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "to")
			gateBase(t, to)
			testkit.Must(t, os.Symlink(outside, to+"/docs/out"))
			before := scan(t, to)
			bad := withChange(t, good, `"op":"add","path":`+c[0]+`,"after":`+c[1])
			plan := filepath.Join(t.TempDir(), "plan.json")
			o := call(t, command(t, "runner-gate", "plan", bad, "--policy", allow, "-o", plan, "--accept-partial"))
			if o.code == 3 && !strings.Contains(o.stderr, "is no path below the workspace") && !strings.Contains(o.stderr, "a layer or a document needs it") &&
				!strings.Contains(o.stderr, "in no directory of the base") && !strings.Contains(o.stderr, "is not the first name of a file of the base") {
				t.Fatal("the archive is not valid", o)
			}
			if o.code == 0 {
				o = call(t, command(t, "runner-gate", "commit", bad, "--plan", plan, "--policy", allow, "--to", to, "--journal", t.TempDir()+"/j"))
			}
			if o.code != 1 && o.code != 3 && o.code != 5 {
				t.Error(o)
			}
			sameTree(t, to, before)
			if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
				t.Error(list, err)
			}
		})
	}
}

// withChange is an archive whose workspace has only this change, valid by all rules of runner-verify.
func withChange(t *testing.T, good *archive, change string) string {
	t.Helper()
	a := archivetest.Content{}
	for name, b := range good.members {
		if name != schemas.MemberManifest { // which is written anew
			a[name] = string(b)
		}
	}
	box, err := schemas.ParseBox([]byte(a[schemas.MemberRunBox]))
	testkit.Must(t, err)
	before := wrapped.Notes(box)
	box.Changes = map[string]uint64{schemas.ChangeAdd: 1}
	if strings.Contains(change, `"unread":`) || strings.Contains(change, `"mount":`) {
		box.Unread = 1
		r := strings.NewReplacer(`"status":"clean"`, `"status":"partial"`, `"ambiguities":[]`, `"ambiguities":["`+schemas.AmbiguityRecordPartial+":"+schemas.StageBox+`"]`)
		a[schemas.MemberReport] = r.Replace(a[schemas.MemberReport])
	}
	for i, note := range wrapped.Notes(box) {
		if !strings.Contains(a[schemas.MemberHealth], before[i]) {
			t.Fatalf("the health has no note %s", before[i])
		}
		a[schemas.MemberHealth] = strings.Replace(a[schemas.MemberHealth], before[i], note, 1)
	}
	b, err := schemas.Marshal(box)
	testkit.Must(t, err)
	a[schemas.MemberRunBox] = string(b)
	a[schemas.MemberChanges] = `{"schema":"` + schemas.SchemaFileChange + `","run_id":"` + box.RunID + `","seq":0,` + change + "}\n"
	all := ""
	for name, text := range a {
		if !strings.HasPrefix(name, schemas.BlobMembers) || name == schemas.BlobMember(box.Base.List) {
			all += text
		}
	}
	for name := range a {
		if digest, is := strings.CutPrefix(name, schemas.BlobMembers); is && !strings.Contains(all, digest) {
			delete(a, name)
		}
	}
	if empty := schemas.DigestOf(""); strings.Contains(change, empty) {
		a[schemas.BlobMember(empty)] = ""
	}
	file := filepath.Join(t.TempDir(), "bad.tar")
	testkit.Must(t, os.WriteFile(file, a.Digest(t).Tar(t), 0o644))
	return file
}

// TestGateReadOnly: on a file system that is mounted read-only nothing is begun, and the commit goes on once it is not.
func TestGateReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "file systems that are read-only", "mounting needs root")
	}
	h := newGateHouse(t)
	allow := h.dir + "/allow.yaml"
	testkit.Must(t, os.WriteFile(allow, []byte(gateAllow), 0o644))
	plan, _ := h.plan(t, "--policy", allow)
	testkit.Must(t, syscall.Mount(h.to, h.to, "", syscall.MS_BIND, ""))
	defer syscall.Unmount(h.to, syscall.MNT_DETACH)
	testkit.Must(t, syscall.Mount("", h.to, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	h.commit(t, plan, "--policy", allow).expect(t, 5, "read-only file system")
	sameTree(t, h.to, h.before)
	if _, err := os.Stat(h.journal); err == nil {
		t.Error("there is a journal")
	}
	testkit.Must(t, syscall.Mount("", h.to, "", syscall.MS_REMOUNT|syscall.MS_BIND, ""))
	h.commit(t, plan, "--policy", allow).expect(t, 0, "committed: ")
}

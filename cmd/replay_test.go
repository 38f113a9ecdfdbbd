//go:build linux

package cmd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// agentProgram is an agent with a model behind HTTP: it reads and writes files, asks whether they are there, sleeps, throws dice,
// reads the clock, repeats a request, and fails.
const agentProgram = `
import json, os, random, sys, time, urllib.request, uuid
def ask(text):
    body = json.dumps({"model": "hash-1", "messages": [{"role": "user", "content": text}]}).encode()
    r = urllib.request.urlopen(urllib.request.Request("http://model.test/v1/chat/completions", data=body, headers={"Content-Type": "application/json", "Authorization": "Bearer verysecret"}))
    return json.load(r)["choices"][0]["message"]["content"]
print("notes are there" if os.path.exists("notes.txt") else "no notes yet")
task = sys.stdin.read().strip() + open("task.txt").read()
for step in range(3):
    answer = ask("%s %d %f" % (task, step, random.random()))
    print(time.strftime("%H:%M:%S"), answer, uuid.uuid4())
    with open("notes.txt", "a") as f:
        f.write("%s %s\n" % (time.time(), answer))
    time.sleep(0.01)
print(ask("again"), ask("again"))
os.remove("old.txt")
os.mkdir("made")
print("done", file=sys.stderr)
sys.exit(3)
`

// model is a deterministic public model: its answer follows from the question, and from how often it was asked.
func model(t *testing.T) (flags []string, stop func()) {
	t.Helper()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"answer %d to %s"}}]}`, calls.Add(1), schemas.DigestOf(b)[7:15])
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "allow.yaml")
	testkit.Must(t, os.WriteFile(file, []byte("schema: runner.net_allow.v0\nrules:\n- {id: model, host: model.test, methods: [POST], paths: [/v1/]}\n"), 0o644))
	return []string{"--allow", file, "--upstream", "model.test:80=" + s.Listener.Addr().String()}, s.Close
}

// python is the interpreter itself, and not a script that looks for it.
func python(t *testing.T) string {
	t.Helper()
	testkit.Programs(t, "an agent", "python3")
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	testkit.Must(t, err)
	return strings.TrimSpace(string(out))
}

// agentArchive is the archive of a run of the agent. Its model is gone when it returns.
func agentArchive(t *testing.T, flags ...string) string {
	t.Helper()
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	program := python(t)
	allow, stop := model(t)
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(dir+"/base", 0o755))
	for name, text := range map[string]string{"agent.py": agentProgram, "task.txt": "a task", "old.txt": "old"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "base", name), []byte(text), 0o644))
	}
	file := filepath.Join(dir, "run.tar.gz")
	args := append([]string{"--replayable", "--run-id", archivetest.RunID, "--archive", file}, flags...)
	args = append(slices.Concat(args, []string{"--", tool("runner-net"), "record"}, allow, []string{"--", tool("runner-box"), "--base", dir + "/base", "--fallback", "copy", "--", tool("runner-clock"), "--"}), program, "agent.py")
	cmd := command(t, "runner-exec", args...)
	cmd.Stdin = strings.NewReader("please: ")
	// runner-exec can warn before it starts the command: of what a test beside this one left.
	if o := call(t, cmd); o.code != 3 || !strings.HasPrefix(o.stdout, "no notes yet\n") || !strings.Contains(o.stdout, "answer 4 to ") || !strings.Contains("\n"+o.stderr, "\ndone\n") {
		t.Fatal(o)
	}
	stop()
	return file
}

// replayed is what runner-replay says.
type replayed struct {
	Verdict   string
	Missing   []string
	EqualRuns int `json:"equal_runs"`
	Layers    []struct {
		Name             string
		Equal            bool
		Recorded, Replay string
	}
	Programs []struct {
		Program string
		Why     []string
	}
}

func (r replayed) differs(name string) bool {
	for _, l := range r.Layers {
		if l.Name == name {
			return !l.Equal
		}
	}
	return false
}

func replay(t *testing.T, args ...string) (replayed, outcome) {
	t.Helper()
	cmd := command(t, "runner-replay", append(args, "--json")...)
	cmd.Env = append(os.Environ(), fmt.Sprint("AGENT_SEED=", rand.Uint64()), fmt.Sprint("PYTHONHASHSEED=", rand.Uint32()), "AGENT_START_TIME=2031-01-01T00:00:00Z", "HOME=/elsewhere")
	o := call(t, cmd)
	var r replayed
	if o.stdout != "" {
		testkit.Must(t, json.Unmarshal([]byte(o.stdout), &r))
	}
	return r, o
}

// TestReplayAgent: a recorded agent is replayed from base without its model, fifty times under random seeds, and each time is the same.
func TestReplayAgent(t *testing.T) {
	requireBPF(t)
	file := agentArchive(t)
	metrics, again := filepath.Join(t.TempDir(), "metrics.json"), filepath.Join(t.TempDir(), "again.tar.gz")
	for range 5 { // each with other seeds in the environment
		r, o := replay(t, file, "--runs", "10", "--metrics", metrics, "-o", again)
		if o.code != 0 || r.Verdict != "equal" || r.EqualRuns != 10 {
			t.Fatal(o)
		}
		var m struct {
			Fidelity float64 `json:"replay_fidelity"`
			Coverage float64 `json:"boundary_coverage"`
			Time     float64 `json:"mean_revert_time_ms"`
		}
		b := testkit.Read(t, metrics)
		testkit.Must(t, json.Unmarshal(b, &m))
		if m.Fidelity != 1 || m.Coverage != 1 || m.Time <= 0 {
			t.Errorf("%s", b)
		}
	}
	then, now := openArchive(t, file), openArchive(t, again)
	for _, member := range []string{"logs/stdout", "logs/stderr", "layers/filesystem.ndjson", "layers/clock.ndjson", "layers/dns.ndjson", "capability-surface.json"} {
		if len(then.members[member]) == 0 || string(then.members[member]) != string(now.members[member]) {
			t.Errorf("%s: %s\nand %s", member, then.members[member], now.members[member])
		}
	}
	if strings.Contains(string(now.members["layers/network.ndjson"]), `"decision":"allow"`) {
		t.Error("something left the machine")
	}
	// The replay of a replay is the same too.
	if r, o := replay(t, again); o.code != 0 || r.Verdict != "equal" {
		t.Error(o)
	}
}

// TestReplayCoverage: a boundary is covered by a record that is whole, not by a file that is there.
func TestReplayCoverage(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	dir := t.TempDir()
	file, metrics := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "metrics.json")
	spoil := `echo nothing >>$AGENT_CLOCK_FILE`
	if o := call(t, command(t, "runner-exec", "--no-kernel", "--replayable", "--archive", file, "--", tool("runner-net"), "deny", "--", tool("runner-box"), "--", tool("runner-clock"), "--", "sh", "-c", spoil)); o.code != 0 {
		t.Fatal(o)
	}
	if r, o := replay(t, file, "--metrics", metrics); o.code != 0 || r.Verdict != "equal" {
		t.Fatal(o)
	}
	var m struct {
		Coverage   float64 `json:"boundary_coverage"`
		Boundaries []struct {
			Name    string
			Covered bool
			Why     string
		}
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, metrics), &m))
	why := map[string]string{}
	for _, b := range m.Boundaries {
		why[b.Name] = b.Why
	}
	if m.Coverage != 0.6 || why["clock"] != "the record is not whole" || why["kernel"] != "not recorded" || why["network"] != "" {
		t.Errorf("%+v", m)
	}
}

// changed is an archive with other members, whose digests fit.
func changed(t *testing.T, file string, change func(archivetest.Content)) string {
	t.Helper()
	c := archivetest.Content{}
	for name, b := range openArchive(t, file).members {
		c[name] = string(b)
	}
	change(c)
	to := filepath.Join(t.TempDir(), "changed.tar")
	testkit.Must(t, os.WriteFile(to, c.Digest(t).Tar(t), 0o644))
	return to
}

// TestReplayFindsChanges: whatever is changed in a record is found, and named by its layer.
func TestReplayFindsChanges(t *testing.T) {
	file := agentArchive(t, "--no-kernel")
	if r, o := replay(t, file); o.code != 0 || r.Verdict != "equal" {
		t.Fatal(o)
	}
	swap := func(member, from, to string) func(archivetest.Content) {
		return func(c archivetest.Content) {
			if !strings.Contains(c[member], from) {
				t.Fatalf("%s has no %s:\n%s", member, from, c[member])
			}
			c[member] = strings.Replace(c[member], from, to, 1)
		}
	}
	output := func(member, key, text string) func(archivetest.Content) {
		return func(c archivetest.Content) {
			was := fmt.Sprintf(`"%s":{"bytes":%d,"sha256":"%s"}`, key, len(c[member]), schemas.DigestOf([]byte(c[member])))
			swap("run/env.json", was, fmt.Sprintf(`"%s":{"bytes":%d,"sha256":"%s"}`, key, len(text), schemas.DigestOf([]byte(text))))(c)
			c[member] = text
		}
	}
	blob := func(has, from, to string) func(archivetest.Content) {
		return func(c archivetest.Content) {
			for name, text := range c {
				if strings.HasPrefix(name, schemas.BlobMembers) && strings.Contains(text, has) && strings.Contains(text, from) {
					fresh := strings.Replace(text, from, to, 1)
					was, is := schemas.DigestOf([]byte(text)), schemas.DigestOf([]byte(fresh))
					delete(c, name)
					c[schemas.BlobMember(is)] = fresh
					for _, m := range []string{"layers/network.ndjson", "run/env.json"} {
						c[m] = strings.ReplaceAll(c[m], was, is)
					}
					return
				}
			}
			t.Fatalf("no blob has %s", has)
		}
	}
	for layer, change := range map[string]func(archivetest.Content){
		"exit":         swap("events.ndjson", `"exit_code":3`, `"exit_code":4`),
		"stdout":       output("logs/stdout", "stdout", "something else\n"),
		"stderr":       output("logs/stderr", "stderr", "Done\n"),
		"files":        swap("layers/filesystem.ndjson", `"mode":420`, `"mode":416`),
		"stdout files": blob(`"answer 1 to `, "answer 1 to ", "answer 9 to "),
		"names":        swap("layers/dns.ndjson", `"answer":"198.18.`, `"answer":"198.19.`),
		"clock":        swap("layers/clock.ndjson", `"for_ns":10000000`, `"for_ns":10000001`),
		"network":      blob("please: ", "please: ", "Please: "),
	} {
		t.Run(layer, func(t *testing.T) {
			r, o := replay(t, changed(t, file, change))
			if o.code != 1 || r.Verdict != "drifted" {
				t.Fatal(o)
			}
			for name := range strings.FieldsSeq(layer) {
				if !r.differs(name) {
					t.Errorf("%s does not differ: %s", name, o.stdout)
				}
			}
		})
	}
	// One byte of each member, and nothing that fits: the archive is refused, and nothing is run.
	whole := openArchive(t, file)
	for name, b := range whole.members {
		if len(b) == 0 || name == "manifest.json" {
			continue
		}
		c := archivetest.Content{}
		for name, b := range whole.members {
			c[name] = string(b)
		}
		c[name] = string(b[:len(b)/2]) + string(b[len(b)/2]^1) + string(b[len(b)/2+1:])
		at := filepath.Join(t.TempDir(), "damaged.tar")
		testkit.Must(t, os.WriteFile(at, c.Tar(t), 0o644))
		if _, o := replay(t, at); o.code != 3 || !strings.Contains(o.stderr, name) {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// TestReplayFindsCapabilities: what was done at all, which only the kernel layer shows, is found too.
func TestReplayFindsCapabilities(t *testing.T) {
	requireBPF(t)
	file := agentArchive(t)
	r, o := replay(t, changed(t, file, func(c archivetest.Content) {
		for _, member := range []string{schemas.MemberKernel, schemas.MemberSurface} {
			if !strings.Contains(c[member], "/workspace/task.txt") {
				t.Fatalf("%s: %s", member, c[member])
			}
			c[member] = strings.ReplaceAll(c[member], "/workspace/task.txt", "/workspace/tasj.txt")
		}
	}))
	if o.code != 1 || r.Verdict != "drifted" || !r.differs("capabilities") || r.differs("stdout") || !strings.Contains(o.stdout, "/workspace/tas") {
		t.Error(o)
	}
}

// diceProgram is a static program that reads random numbers of the kernel.
const diceProgram = `package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		panic(err)
	}
	var b [16]byte
	io.ReadFull(f, b[:])
	fmt.Printf("%x\n", b)
}
`

// TestReplayNamesUncontrolled: a drift by what nothing controls is found, and the program is named.
func TestReplayNamesUncontrolled(t *testing.T) {
	requireBPF(t)
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(dir+"/src", 0o755))
	testkit.Must(t, os.MkdirAll(dir+"/base", 0o755))
	testkit.Must(t, os.WriteFile(dir+"/src/main.go", []byte(diceProgram), 0o644))
	build := exec.Command("go", "build", "-o", dir+"/base/dice", dir+"/src/main.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "run.tar.gz")
	if o := call(t, command(t, "runner-exec", "--replayable", "--archive", file, "--", tool("runner-net"), "deny", "--", tool("runner-box"), "--base", dir+"/base", "--", tool("runner-clock"), "--", "./dice")); o.code != 0 {
		t.Fatal(o)
	}
	r, o := replay(t, file)
	if o.code != 1 || !r.differs("stdout") || r.differs("files") || len(r.Programs) != 1 || !strings.HasSuffix(r.Programs[0].Program, "/dice") || !slices.Contains(r.Programs[0].Why, "it, or another program of the run, read /dev/urandom") {
		t.Error(o)
	}
	if o := call(t, command(t, "runner-replay", file)); o.code != 1 || !strings.Contains(o.stdout, "drifted: 0 of 1") || !strings.Contains(o.stdout, "read /dev/urandom") {
		t.Error(o)
	}
}

// TestReplayNotClosed: what is missing is named, and nothing is run.
func TestReplayNotClosed(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(dir+"/base", 0o755))
	testkit.Must(t, os.MkdirAll(dir+"/other", 0o755))
	testkit.Must(t, os.WriteFile(dir+"/base/a", []byte("a"), 0o644))
	testkit.Must(t, exec.Command("tar", "-C", dir+"/base", "-cf", dir+"/base.tar", ".").Run())
	deny, box := []string{tool("runner-net"), "deny", "--"}, []string{tool("runner-box"), "--base", dir + "/base", "--fallback", "copy", "--"}
	byDigest := []string{tool("runner-box"), "--base", dir + "/base", "--base-by-digest", "--fallback", "copy", "--"}
	for name, x := range map[string]struct {
		flags, chain []string
		env          string
		more         []string // of runner-replay
		want         int
		says         string
	}{
		"nothing kept":        {nil, slices.Concat(deny, box), "", nil, 4, "runner-exec --replayable"},
		"no box":              {[]string{"--replayable"}, deny, "", nil, 4, "the files of the workspace"},
		"no network":          {[]string{"--replayable"}, box, "", nil, 4, "the network"},
		"all the same":        {[]string{"--replayable"}, box, "", []string{"--allow-uncontrolled"}, 0, "equal"},
		"only a digest":       {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", nil, 4, "--base DIR"},
		"the base is given":   {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", []string{"--base", dir + "/base"}, 0, "equal"},
		"another base":        {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", []string{"--base", dir + "/other"}, 1, "base"},
		"another base, kept":  {[]string{"--replayable"}, slices.Concat(deny, box), "", []string{"--base", dir + "/other"}, 1, "differs      base"},
		"a tar of the base":   {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", []string{"--base", dir + "/base.tar"}, 0, "equal"},
		"a tar, and measures": {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", []string{"--base", dir + "/base.tar", "--metrics", dir + "/never"}, 2, "unpack it"},
		"no such base":        {[]string{"--replayable"}, slices.Concat(deny, byDigest), "", []string{"--base", dir + "/nowhere"}, 5, "nowhere: no such file"},
		"a base of no box":    {[]string{"--replayable"}, deny, "", []string{"--base", dir + "/base"}, 2, "had no base"},
		"a secret":            {[]string{"--replayable"}, slices.Concat(deny, box), "API_TOKEN=verysecret", nil, 4, "--env API_TOKEN"},
		"the secret is given": {[]string{"--replayable"}, slices.Concat(deny, box), "API_TOKEN=verysecret", []string{"--env", "API_TOKEN"}, 0, "equal"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.tar.gz")
			cmd := command(t, "runner-exec", slices.Concat([]string{"--no-kernel"}, x.flags, []string{"--archive", file, "--"}, x.chain, []string{"sh", "-c", "echo $API_TOKEN; ls"})...)
			if x.env != "" {
				cmd.Env = append(os.Environ(), x.env)
			}
			if o := call(t, cmd); o.code != 0 {
				t.Fatal(o)
			}
			replay := command(t, "runner-replay", append(x.more, file)...)
			if x.env != "" {
				replay.Env = append(os.Environ(), x.env)
			}
			if o := call(t, replay); o.code != x.want || !strings.Contains(o.stdout+o.stderr, x.says) {
				t.Errorf("%v, expected %d and %q", o, x.want, x.says)
			}
			if b := openArchive(t, file).members["run/env.json"]; strings.Contains(string(b), "verysecret") {
				t.Errorf("%s", b)
			}
		})
	}
}

//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// soakRun is what the tests read of a run.
type soakRun struct {
	Index      int      `json:"index"`
	Status     string   `json:"status"`
	Seed       uint64   `json:"seed"`
	DurationMS int      `json:"duration_ms"`
	Violated   []string `json:"violated_rules"`
	Kind       string   `json:"infra_error_kind"`
	Message    string   `json:"infra_error_message"`
}

// soakReport is what the tests read of a report.
type soakReport struct {
	Results struct {
		Runs         int  `json:"runs"`
		Passes       int  `json:"passes"`
		Failures     int  `json:"failures"`
		InfraErrors  int  `json:"infra_errors"`
		PassAll      bool `json:"pass_all"`
		StoppedEarly bool `json:"stopped_early"`
	} `json:"results"`
	Runs []soakRun `json:"runs"`
}

func readSoak(t *testing.T, path string) (r soakReport) {
	t.Helper()
	testkit.Must(t, schemas.UnmarshalOpen(testkit.Read(t, path), &r))
	return r
}

// soakIn is a call of runner-soak in a folder.
func soakIn(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := command(t, "runner-soak", args...)
	c.Dir = dir
	return c
}

// TestSoakRuns: each run has its own seed and archive, the same call again runs nothing and gives the same
// bytes, and shards that are merged give what one machine gives, but for the times.
func TestSoakRuns(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	script := []string{"--", "sh", "-c", "echo $AGENT_SEED; exit $((AGENT_SEED % 2))"}
	base := []string{"--iterations", "4", "--seed", "7", "--fault", "slow=nice -n 5", "--jobs", "2"}
	do := func(code int, args ...string) outcome {
		t.Helper()
		o := call(t, soakIn(t, dir, append(append(append([]string{}, base...), args...), script...)...))
		if o.code != code {
			t.Fatalf("expected exit %d: %v", code, o)
		}
		return o
	}
	first := do(1, "--dir", "one", "--report", "one.json", "--surface", "one-surface.json")
	r := readSoak(t, filepath.Join(dir, "one.json"))
	for _, run := range r.Runs {
		want := map[uint64]string{0: "pass", 1: "fail"}[run.Seed%2]
		out := string(testkit.Read(t, filepath.Join(dir, fmt.Sprintf("one/none/%04d.out", run.Index))))
		if run.Status != want || !strings.HasPrefix(out, fmt.Sprintf("%d\n", run.Seed)) {
			t.Errorf("%+v: %s", run, out)
		}
		openArchive(t, filepath.Join(dir, fmt.Sprintf("one/slow/%04d.tar.gz", run.Index)))
	}
	if len(r.Runs) != 4 || r.Results.Passes == 0 || r.Results.Failures == 0 || !strings.Contains(first.stdout, "slow: ") {
		t.Errorf("%+v: %v", r.Results, first)
	}
	again := do(1, "--dir", "one", "--report", "again.json", "--surface", "again-surface.json")
	if again.stdout != first.stdout || !strings.Contains(again.stderr, "nothing was run") {
		t.Errorf("%v\nexpected\n%v", again, first)
	}
	same := func(a, b string) {
		t.Helper()
		took := regexp.MustCompile(`"duration_ms":\d+`)
		x, y := testkit.Read(t, filepath.Join(dir, a)), testkit.Read(t, filepath.Join(dir, b))
		testkit.FirstDifference(t, a+" and "+b, took.ReplaceAll(x, nil), took.ReplaceAll(y, nil))
	}
	same("again.json", "one.json")
	same("again-surface.json", "one-surface.json")
	for _, i := range []string{"1", "2"} {
		do(1, "--dir", "shard-"+i, "--shard", i+"/2", "--report", "shard-"+i+".json", "--surface", "surface-"+i+".json")
	}
	for kind, args := range map[string][]string{"shard": {"--report", "merged.json"}, "surface": {"--report", "merged.json", "--surface", "merged-surface.json"}} {
		merged := call(t, soakIn(t, dir, append(args, "--merge", kind+"-2.json", kind+"-1.json")...))
		if merged.code != 1 {
			t.Fatal(merged)
		}
		same("merged.json", "one.json")
	}
	same("merged-surface.json", "one-surface.json")
	other := call(t, soakIn(t, dir, "--iterations", "4", "--seed", "8", "--dir", "one", "--", "true"))
	if other.code != 2 || !strings.Contains(other.stderr, "--seed differs, --fault differs, the command differs") {
		t.Error(other)
	}
}

// TestSoakStops: at the first failure, at the end of the time, and where nothing can begin.
func TestSoakStops(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	o := call(t, soakIn(t, dir, "--iterations", "9", "--stop-on-first-failure", "--dir", "stop", "--report", "stop.json", "--",
		"sh", "-c", "echo x >>"+dir+"/count; [ $(wc -l <"+dir+"/count) -lt 3 ]"))
	if r := readSoak(t, filepath.Join(dir, "stop.json")); o.code != 1 || r.Results.Runs != 3 || r.Results.Passes != 2 || !r.Results.StoppedEarly {
		t.Errorf("%+v: %v", r, o)
	}
	if n := strings.Count(string(testkit.Read(t, dir+"/count")), "x"); n != 3 {
		t.Errorf("the command ran %d times", n)
	}
	o = call(t, soakIn(t, dir, "--iterations", "9", "--time-budget", "1s", "--report", "budget.json", "--dir", "budget", "--", "sleep", "60"))
	if r := readSoak(t, filepath.Join(dir, "budget.json")); o.code != 4 || r.Results.Runs != 1 || r.Results.InfraErrors != 1 || r.Runs[0].Kind != "time_budget_exceeded" {
		t.Errorf("%+v: %v", r, o)
	}
	o = call(t, soakIn(t, dir, "--iterations", "9", "--report", "never.json", "--", "/no/such/program"))
	if o.code != 127 || !strings.Contains(o.stderr, "command not found") || testkit.Exists(dir+"/never.json") {
		t.Error(o)
	}
}

// TestSoakCorrected: a call whose command never started, or of which no run ended, does not block the corrected one, and leaves nothing.
func TestSoakCorrected(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	testkit.Must(t, os.Mkdir(dir+"/mine", 0o777))
	soak := func(folder string, argv ...string) outcome {
		return call(t, soakIn(t, dir, append([]string{"--iterations", "1", "--dir", folder}, argv...)...))
	}
	for _, c := range []struct {
		code int
		argv []string
	}{
		{127, []string{"--", "no-such-command"}},
		{126, []string{"--", "/"}},
		{127, []string{"--fault", "slow=no-such-command -n 1", "--", "true"}},
		{2, []string{"--exec=--no-such-flag", "--", "true"}},           // runner-exec says so
		{4, []string{"--exec=--cgroup-parent=/proc", "--", "true"}},    // here too
		{127, []string{"--", tool("runner-clock"), "no-such-command"}}, // and here the wrapper
	} {
		for _, folder := range []string{"deep/new", "mine"} {
			if o := soak(folder, c.argv...); o.code != c.code {
				t.Errorf("%q: %v", c.argv, o)
			}
		}
		if list, err := os.ReadDir(dir + "/mine"); err != nil || len(list) > 0 || testkit.Exists(dir+"/deep") {
			t.Errorf("%q leaves %v, %v", c.argv, list, err)
		}
	}
	// A soak that was killed before its first run had ended has nothing to go on with.
	if o := soak("mine", "--", "sh", "-c", "kill -9 $(sed -n 's/^PPid:[^0-9]*//p' /proc/$PPID/status)"); o.code != -1 || !testkit.Exists(dir+"/mine/soak.json") {
		t.Error(o)
	}
	for end := time.Now().Add(time.Minute); !testkit.Exists(dir+"/mine/none/0001.tar.gz") && time.Now().Before(end); { // its runner-exec ends by itself
		time.Sleep(20 * time.Millisecond)
	}
	if o := soak("mine", "--", "true"); o.code != 0 {
		t.Error(o)
	}
	if o := soak("mine", "--", "false"); o.code != 2 || !strings.Contains(o.stderr, "mine has another soak: the command differs") {
		t.Errorf("a finished run is lost: %v", o)
	}
}

// TestSoakFailsToRecord: a run without an archive is an infra_error that says why, and is in no rate.
func TestSoakFailsToRecord(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	// What the run does to its own stages: the record is lost, not the command's end.
	kill := `[ -e ` + dir + `/once ] || { touch ` + dir + `/once; kill -9 $PPID; sleep 5; }`
	o := call(t, soakIn(t, dir, "--iterations", "2", "--report", "r.json", "--dir", "d", "--exec=--user root", "--", "sh", "-c", kill))
	r := readSoak(t, filepath.Join(dir, "r.json"))
	if o.code != 4 || r.Results.Passes != 1 || r.Results.InfraErrors != 1 || r.Results.PassAll || r.Runs[0].Kind != "subprocess_failed" || !strings.Contains(r.Runs[0].Message, "wrote no archive") {
		t.Errorf("%+v: %v", r, o)
	}
}

// TestSoakInterrupted: a signal ends the runs and leaves no report; the same call goes on.
func TestSoakInterrupted(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	args := []string{"--iterations", "3", "--dir", "d", "--report", "r.json", "--", "sh", "-c",
		"echo x >>" + dir + "/count; [ $(wc -l <" + dir + "/count) != 2 ] || exec sleep 60"}
	c := soakIn(t, dir, args...)
	wait := start(t, c)
	testkit.Await(t, "the second run", func() bool {
		b, _ := os.ReadFile(dir + "/count")
		return len(b) == 4 && testkit.Exists(dir+"/d/none/0001.json")
	})
	time.Sleep(200 * time.Millisecond)
	testkit.Must(t, c.Process.Signal(syscall.SIGTERM))
	if o := wait(); o.code != 128+15 || testkit.Exists(dir+"/r.json") || testkit.Exists(dir+"/d/none/0002.json") || !strings.Contains(o.stderr, "--dir d goes on") {
		t.Error(o)
	}
	o := call(t, soakIn(t, dir, args...))
	if r := readSoak(t, filepath.Join(dir, "r.json")); o.code != 0 || r.Results.Passes != 3 || !strings.Contains(o.stderr, "d had 1 run already, the others were made now: 2") {
		t.Errorf("%+v: %v", r, o)
	}
}

// TestSoakRecipes: the shell of each recipe for shards, as its machine would run it, gives reports that
// can be merged.
func TestSoakRecipes(t *testing.T) {
	requireBPF(t)
	run := func(t *testing.T, dir, script string, env ...string) {
		t.Helper()
		script = strings.NewReplacer("/agent.sh", "true", "make check", "true", "sudo ", "", "--iterations 40", "--iterations 4").Replace(script)
		c := command(t, "sh", "-ec", script)
		c.Dir, c.Env = dir, append(c.Env, env...)
		if o := call(t, c); o.code != 0 {
			t.Fatalf("%s\n%v", script, o)
		}
	}
	merged := func(t *testing.T, dir string) {
		t.Helper()
		if r := readSoak(t, filepath.Join(dir, "soak.json")); r.Results.Runs != 4 || !r.Results.PassAll {
			t.Errorf("%+v", r)
		}
	}
	t.Run("kubernetes", func(t *testing.T) {
		var job struct {
			Spec struct {
				Completions int
				Template    struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		testkit.Must(t, yaml.Unmarshal(testkit.Read(t, "../scripts/examples/soak/kubernetes.yaml"), &job))
		dir := shortDir(t)
		for i := range job.Spec.Completions {
			run(t, dir, job.Spec.Template.Spec.Containers[0].Args[0], "SHARDS=4", "OUT="+dir, fmt.Sprint("JOB_COMPLETION_INDEX=", i))
		}
		run(t, dir, "runner-soak --report soak.json --merge shard-*.json")
		merged(t, dir)
		// A shard that cannot run does not pass with the report of an earlier Job.
		broken := filepath.Join(dir, "runner-soak")
		write(t, broken, "#!/bin/sh\nexit 5\n")
		testkit.Must(t, os.Chmod(broken, 0o755))
		c := command(t, "sh", "-ec", job.Spec.Template.Spec.Containers[0].Args[0])
		c.Dir, c.Env = dir, append(c.Env, "PATH="+dir+":/usr/bin:/bin", "SHARDS=4", "OUT="+dir, "JOB_COMPLETION_INDEX=0")
		if o := call(t, c); o.code == 0 {
			t.Errorf("a shard that could not run: %v", o)
		}
	})
	t.Run("github", func(t *testing.T) {
		var flow struct {
			Jobs map[string]struct {
				Strategy struct{ Matrix struct{ Shard []int } }
				Steps    []struct{ ID, Run string }
			}
		}
		testkit.Must(t, yaml.Unmarshal(testkit.Read(t, "../scripts/examples/soak/github.yml"), &flow))
		dir := shortDir(t)
		step := func(job, id, shard string) {
			for _, s := range flow.Jobs[job].Steps {
				if s.ID == id {
					run(t, dir, strings.ReplaceAll(s.Run, "${{ matrix.shard }}", shard)+"\nrm -rf soak\n", "RUNNER="+tool("runner-soak"), "ITERATIONS=4", "SHARDS=4")
				}
			}
		}
		for _, i := range flow.Jobs["shard"].Strategy.Matrix.Shard {
			step("shard", "soak", fmt.Sprint(i))
		}
		step("merge", "merge", "")
		merged(t, dir)
	})
	t.Run("parallel", func(t *testing.T) {
		if _, err := exec.LookPath("parallel"); err != nil {
			testkit.Skip(t, "the recipe for GNU parallel", err)
		}
		dir := shortDir(t)
		path, err := filepath.Abs("../scripts/examples/soak/parallel.sh")
		testkit.Must(t, err)
		run(t, dir, "sh "+path+" 2 4 true; cp soak/soak.json .", "BIN="+bin)
		merged(t, dir)
	})
}

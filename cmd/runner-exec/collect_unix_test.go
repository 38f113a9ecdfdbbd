//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// collectedLog is one collected stream, read back.
type collectedLog struct {
	lines  []string
	health schemas.StageHealth
	status schemas.Status
}

func readLog(t *testing.T, path, name string) (c collectedLog) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := stream.NewReader(f, path, name)
	for err == nil {
		var rec stream.Record
		if rec, err = r.Next(); err != nil {
			break
		}
		if rec.Schema == schemas.SchemaStageHealth {
			err = schemas.Unmarshal(rec.Bytes, &c.health)
			continue
		}
		var l schemas.LogLine
		if err = schemas.Unmarshal(rec.Bytes, &l); err == nil {
			c.lines = append(c.lines, l.Line)
		}
	}
	if r == nil || r.Trailer() == nil {
		t.Fatal(err)
	}
	c.status = r.Trailer().Status
	return c
}

func (c collectedLog) String() string {
	n := c.health.Counters
	s := fmt.Sprintf("%s bytes=%d lines=%d dropped=%d after_end=%d", c.status, n["bytes"], n["lines"], n["dropped_bytes"], n["after_end_bytes"])
	for _, f := range []string{"unterminated", "replaced", "writers_at_end", "stopped"} {
		s += " " + f + "=" + c.health.Facts[f]
	}
	return s
}

// sdkRun runs a shell script with an SDK log and its own directory for temporary files,
// which must be empty at the end.
func sdkRun(t *testing.T, script string, flags ...string) (result, collectedLog) {
	t.Helper()
	args := append([]string{"--no-kernel", "--run-id", "r1", "--stream", "raw", "--agent-shim", "openai-agents", "--sdk-log", "log"}, flags...)
	c := command(t, append(args, "--", "sh", "-c", `L=$ASSAY_RUNNER_SDK_EVENT_LOG; `+script)...)
	temp := t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	r := outcome(t, c, c.Run())
	if rest := leftovers(t, temp); len(rest) > 0 {
		t.Errorf("not removed: %q", rest)
	}
	if !exists(filepath.Join(r.dir, "log")) {
		t.Fatalf("no log: %v", r)
	}
	return r, readLog(t, filepath.Join(r.dir, "log"), schemas.StreamSDKLog)
}

func TestCollect(t *testing.T) {
	const none, whole = "unterminated=no replaced=no writers_at_end=none stopped=", "complete bytes="
	for _, c := range []struct {
		name, script string
		lines        string // separated by blanks
		facts        string
	}{
		{"never opened", `true`, "", whole + "0 lines=0 dropped=0 after_end=0 " + none},
		{"opened only", `: >>"$L"`, "", whole + "0 lines=0 dropped=0 after_end=0 " + none},
		{"each line opened", `for i in 1 2 3; do echo $i >>"$L"; done`, "1 2 3", whole + "6 lines=3 dropped=0 after_end=0 " + none},
		{"held open", `exec 3>>"$L"; for i in 1 2 3; do echo $i >&3; done`, "1 2 3", whole + "6 lines=3 dropped=0 after_end=0 " + none},
		{"truncated", `echo 1 >>"$L"; : >"$L"; echo 2 >"$L"; truncate -s 0 "$L" 2>/dev/null; echo 3 >>"$L"`, "1 2 3", whole + "6 lines=3 dropped=0 after_end=0 " + none},
		{"no end", `printf 'a\nb' >>"$L"`, "a b", whole + "3 lines=2 dropped=0 after_end=0 unterminated=yes replaced=no writers_at_end=none stopped="},
		{"unlinked", `echo 1 >>"$L"; rm "$L"`, "1", "partial bytes=2 lines=1 dropped=0 after_end=0 unterminated=no replaced=yes writers_at_end=none stopped="},
		{"replaced", `echo 1 >>"$L"; rm "$L"; echo 2 >"$L"`, "1", "partial bytes=2 lines=1 dropped=0 after_end=0 unterminated=no replaced=yes writers_at_end=none stopped="},
		{"moved over", `echo 1 >"$L.new"; mv "$L.new" "$L"`, "", "partial bytes=0 lines=0 dropped=0 after_end=0 unterminated=no replaced=yes writers_at_end=none stopped="},
		{"a file next to it", `mkdir "$L.lock"; echo 1 >>"$L"; echo x >"$L.old"`, "1", whole + "2 lines=1 dropped=0 after_end=0 " + none},
		{"background", `exec 3>>"$L"; { sleep 0.1; echo 1 >&3; } &`, "1", whole + "2 lines=1 dropped=0 after_end=2 unterminated=no replaced=no writers_at_end=open stopped="},
		{"background, not held", `{ sleep 2; echo 1 >>"$L"; } >/dev/null 2>&1 &`, "", whole + "0 lines=0 dropped=0 after_end=0 " + none},
		{"signal", `echo 1 >>"$L"; kill -9 $$`, "1", whole + "2 lines=1 dropped=0 after_end=0 " + none},
		{"dd nonblock", `echo 1 | dd of="$L" oflag=nonblock,append conv=notrunc 2>/dev/null`, "1", whole + "2 lines=1 dropped=0 after_end=0 " + none},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, log := sdkRun(t, c.script)
			if got := strings.Join(log.lines, " "); got != c.lines || log.String() != c.facts {
				t.Errorf("got  %q, %v\nwant %q, %s", got, log, c.lines, c.facts)
			}
		})
	}
}

// TestCollectSwap: it is noticed that another file had the log's name for a while.
func TestCollectSwap(t *testing.T) {
	if runtime.GOOS != "linux" {
		testkit.Skip(t, "only inotify reports a change that was undone")
	}
	_, log := sdkRun(t, `mv "$L" "$L.away"; echo lost >"$L"; mv "$L.away" "$L"; echo 1 >>"$L"`)
	if len(log.lines) != 1 || log.health.Facts["replaced"] != "yes" || log.status != schemas.StatusPartial {
		t.Errorf("%v", log)
	}
}

// TestCollectDirectoryMoved: a file that the command put in the directory's place stays.
func TestCollectDirectoryMoved(t *testing.T) {
	c := command(t, "--no-kernel", "--run-id", "r1", "--stream", "raw", "--policy-log", "log", "--", "sh", "-c",
		`D=$(dirname "$ASSAY_RUNNER_POLICY_DECISION_LOG"); mv "$D" "$D.away"; mkdir "$D"; echo precious >"$D/file"`)
	temp := t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	r := outcome(t, c, c.Run())
	if r.code != 0 || !strings.Contains(r.stderr, "was not removed") {
		t.Errorf("%v", r)
	}
	if log := readLog(t, filepath.Join(r.dir, "log"), schemas.StreamPolicyLog); log.health.Facts["replaced"] != "yes" {
		t.Errorf("%v", log)
	}
	if !exists(filepath.Join(temp, "runner-r1/file")) {
		t.Error("a file that is none of runner-exec's was removed")
	}
	if rest := leftovers(t, filepath.Join(temp, "runner-r1.away")); len(rest) > 0 {
		t.Errorf("a FIFO is left where the directory was moved: %q", rest)
	}
}

func TestCollectEvents(t *testing.T) {
	_, log := sdkRun(t, `seq=0
event() { printf '{"schema":"%s","run_id":"%s","seq":%d,"event_type":"%s","source":"shell"%s}\n' "$ASSAY_RUNNER_SDK_EVENT_SCHEMA" "$ASSAY_RUNNER_RUN_ID" $seq "$1" "$2" >>"$L"; seq=$((seq + 1)); }
event tool_call_started ',"tool_call_id":"tc_1","tool":"read_file"'
event tool_call_completed ',"tool_call_id":"tc_1","tool":"read_file"'
event run_finished
event run_failed`)
	if len(log.lines) != 4 || log.lines[0] != `{"schema":"assay.runner.sdk_event.v0","run_id":"r1","seq":0,"event_type":"tool_call_started","source":"shell","tool_call_id":"tc_1","tool":"read_file"}` {
		t.Errorf("%q", log.lines)
	}
}

// TestCollectTwoWriters: bytes of one write stay together.
func TestCollectTwoWriters(t *testing.T) {
	_, log := sdkRun(t, `w() { i=0; while [ $i -lt 500 ]; do echo $1$i; i=$((i + 1)); done >>"$L"; }
w a & w b & wait`)
	next := map[byte]int{}
	for _, l := range log.lines {
		if want := fmt.Sprintf("%c%d", l[0], next[l[0]]); l != want {
			t.Fatalf("%q, expected %q", l, want)
		}
		next[l[0]]++
	}
	if next['a'] != 500 || next['b'] != 500 {
		t.Errorf("%v, %v", next, log)
	}
}

// TestCollectFlood: the writer never has to wait, and every byte is counted.
func TestCollectFlood(t *testing.T) {
	const all = 100 << 20
	for _, c := range []struct {
		script, stopped string
		lines           int
	}{
		{`yes | head -c 104857600 >>"$L"`, "too_many_lines", schemas.MaxLogLines},
		{`tr '\0' x </dev/zero | head -c 104857600 >>"$L"`, "line_too_long", 0},
		{`yes $(printf %0999d 0) | head -c 104857600 >>"$L"`, "too_many_bytes", schemas.MaxLogBytes / 1000},
	} {
		_, log := sdkRun(t, c.script)
		n := log.health.Counters
		if log.health.Facts["stopped"] != c.stopped || len(log.lines) != c.lines || n["bytes"] != all || log.status != schemas.StatusPartial {
			t.Errorf("%s: %v", c.script, log)
		}
		keptBytes := uint64(0)
		for _, l := range log.lines {
			keptBytes += uint64(len(l)) + 1
		}
		if keptBytes+n["dropped_bytes"] != all {
			t.Errorf("%s: %d bytes kept, %d dropped, %d written", c.script, keptBytes, n["dropped_bytes"], all)
		}
	}
}

// TestCollectGrace: without a cgroup, runner-exec waits at most --grace for a writer
// that does not end.
func TestCollectGrace(t *testing.T) {
	begin := time.Now()
	_, log := sdkRun(t, `exec 3>>"$L"; sleep 5 >/dev/null 2>&1 </dev/null &`, "--grace", "300ms")
	if d := time.Since(begin); d < 300*time.Millisecond || d > 4*time.Second || log.health.Facts["writers_at_end"] != "open" {
		t.Errorf("%v: %v", d, log)
	}
}

// TestCollectImpatience: the second TERM after the command's end ends the wait.
func TestCollectImpatience(t *testing.T) {
	c := command(t, "--no-kernel", "--archive", "a", "--policy-log", "p", "--grace", "1m", "-v", "--", "sh", "-c",
		`exec 3>>"$`+schemas.EnvPolicyLog+`"; echo 1 >&3; sleep 5 >/dev/null 2>&1 </dev/null & exit 8`)
	errs := filepath.Join(t.TempDir(), "stderr")
	f, err := os.Create(errs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Stderr = f
	begin := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"command ended", "again to kill"} {
		testkit.Await(t, text, func() bool { b, _ := os.ReadFile(errs); return bytes.Contains(b, []byte(text)) })
		c.Process.Signal(syscall.SIGTERM)
	}
	r := outcome(t, c, c.Wait())
	log := readLog(t, filepath.Join(r.dir, "p"), schemas.StreamPolicyLog)
	if r.code != 8 || time.Since(begin) > 4*time.Second || len(log.lines) != 1 || log.health.Facts["writers_at_end"] != "open" {
		t.Errorf("%v after %v, %v", r, time.Since(begin), log)
	}
}

// TestCollectEnvironment: the command gets the variables of the collected logs and no
// others, and the record says which names were set.
func TestCollectEnvironment(t *testing.T) {
	const show = `env | grep ^ASSAY_RUNNER_ | sort`
	for _, c := range []struct {
		flags []string
		want  []string
		keys  string
	}{
		{nil, nil, `[]`},
		{[]string{"--policy-log", "p"}, []string{schemas.EnvPolicyLog + "=TMP/runner-r1/policy.ndjson", schemas.EnvRunID + "=r1"}, `["` + schemas.EnvPolicyLog + `","` + schemas.EnvRunID + `"]`},
		{[]string{"--agent-shim", "openai-agents", "--sdk-log", "s"},
			[]string{schemas.EnvRunID + "=r1", schemas.EnvSDKLog + "=TMP/runner-r1/sdk.ndjson", schemas.EnvSDKSchema + "=assay.runner.sdk_event.v0"},
			`["` + schemas.EnvRunID + `","` + schemas.EnvSDKLog + `","` + schemas.EnvSDKSchema + `"]`},
		{[]string{"--intents", "--intents-log", "i"},
			[]string{schemas.EnvIntentLog + "=TMP/runner-r1/intents.ndjson", schemas.EnvIntentSchema + "=assay.runner.intent.v0", schemas.EnvRunID + "=r1"},
			`["` + schemas.EnvIntentLog + `","` + schemas.EnvIntentSchema + `","` + schemas.EnvRunID + `"]`},
		{[]string{"--agent-shim", "openai-agents", "--sdk-log", "s", "--policy-log", "p"},
			[]string{schemas.EnvPolicyLog + "=TMP/runner-r1/policy.ndjson", schemas.EnvRunID + "=r1", schemas.EnvSDKLog + "=TMP/runner-r1/sdk.ndjson", schemas.EnvSDKSchema + "=assay.runner.sdk_event.v0"},
			`["` + schemas.EnvPolicyLog + `","` + schemas.EnvRunID + `","` + schemas.EnvSDKLog + `","` + schemas.EnvSDKSchema + `"]`},
	} {
		args := append([]string{"--no-kernel", "--run-id", "r1", "--stream", "raw"}, c.flags...)
		cmd := command(t, append(args, "--", "sh", "-c", show)...)
		temp := t.TempDir()
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		for _, k := range schemas.EnvKeys() {
			cmd.Env = append(cmd.Env, k+"=of another run")
		}
		r := outcome(t, cmd, cmd.Run())
		want := ""
		for _, w := range c.want {
			want += strings.Replace(w, "TMP", temp, 1) + "\n"
		}
		if r.code != 0 || r.stdout != want {
			t.Errorf("%v: got %vwant %s", c.flags, r, want)
		}
		raw, _ := os.ReadFile(filepath.Join(r.dir, "raw"))
		if !bytes.Contains(raw, []byte(`"env_keys":`+c.keys+`}`)) {
			t.Errorf("%v: expected %s in %s", c.flags, c.keys, raw)
		}
	}
}

// TestCollectPermissions: a command of root that becomes another user can still write to
// its log, but can neither list the names nor read the log.
func TestCollectPermissions(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "becoming another user needs root")
	}
	c := command(t, "--no-kernel", "--archive", "a", "--agent-shim", "openai-agents", "--keep", "kept", "--", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c",
		`L=$ASSAY_RUNNER_SDK_EVENT_LOG; echo 1 >>"$L"; ls "$(dirname "$L")" || echo 2 >>"$L"; cat "$L" || echo 3 >>"$L"; rm -f "$L" || echo 4 >>"$L"; echo "$L" >>"$L"`)
	temp := t.TempDir()
	for d := temp; d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	r := outcome(t, c, c.Run())
	log := readLog(t, filepath.Join(r.dir, "kept/sdk.log.ndjson"), schemas.StreamSDKLog)
	if got := strings.Join(log.lines[:min(4, len(log.lines))], " "); got != "1 2 3 4" || len(log.lines) != 5 {
		t.Fatalf("%q, %v", log.lines, r)
	}
	if name := filepath.Base(log.lines[4]); len(name) < len("sdk-.ndjson")+20 {
		t.Errorf("the name %s is easily guessed", name)
	}
}

// TestCollectUnprivileged: only the user who started the run can write to the logs.
func TestCollectUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "becoming another user needs root")
	}
	c := command(t, "--no-kernel", "--archive", "a", "--policy-log", "p", "--", "sh", "-c",
		`L=$ASSAY_RUNNER_POLICY_DECISION_LOG; stat -c %a "$L" "$(dirname "$L")" >>"$L"; cat "$L" 2>/dev/null || echo refused >>"$L"`)
	temp := t.TempDir()
	for _, top := range []string{temp, c.Dir} {
		for d := top; d != os.TempDir(); d = filepath.Dir(d) {
			os.Chmod(d, 0o777)
		}
	}
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	r := outcome(t, c, c.Run())
	if r.code != 0 {
		t.Fatal(r)
	}
	log := readLog(t, filepath.Join(r.dir, "p"), schemas.StreamPolicyLog)
	if got := strings.Join(log.lines, " "); got != "200 700 refused" || len(leftovers(t, temp)) > 0 {
		t.Errorf("%q, left %q", got, leftovers(t, temp))
	}
}

func TestCollectTaken(t *testing.T) {
	c := command(t, "--no-kernel", "--run-id", "r1", "--archive", "a", "--policy-log", "p", "--", "touch", "ran")
	temp := t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	os.Mkdir(filepath.Join(temp, "runner-r1"), 0o700)
	if r := outcome(t, c, c.Run()); r.code != 125 || !strings.Contains(r.stderr, "already exists") || len(leftovers(t, r.dir)) > 0 {
		t.Errorf("%v", r)
	}
	if !exists(filepath.Join(temp, "runner-r1")) {
		t.Error("another run's directory was removed")
	}
	c = command(t, "--no-kernel", "--archive", "a", "--policy-log", "p", "--", "touch", "ran")
	c.Env = append(os.Environ(), "TMPDIR=/no/such/directory")
	if r := outcome(t, c, c.Run()); r.code != 125 || !strings.Contains(r.stderr, "TMPDIR=DIR") || len(leftovers(t, r.dir)) > 0 {
		t.Errorf("%v", r)
	}
}

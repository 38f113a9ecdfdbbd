package cmd_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// randomRun makes the streams of an invented run: a random process tree with proxies and
// lines, and logs of programs that crash, lie or share ids. runner-verify must derive the
// same report as runner-correlate.
type randomRun struct {
	*rand.Rand
	again *rand.Rand // of what is read again: it leaves the others as they are
	more  *rand.Rand // of what wrappers recorded
	dir   string
	args  []string // of runner-correlate

	timed, captured, enforced bool
	sessions                  int
}

const randomID = "random"

func (r *randomRun) yes(n int) bool { return r.IntN(n) == 0 }

func pickOne[T any](r *randomRun, from ...T) T { return from[r.IntN(len(from))] }

func (r *randomRun) id() string { return fmt.Sprintf("tc_%d", r.IntN(6)) }

func (r *randomRun) tool() string { return pickOne(r, "read_file", "write_file", `odd\`) }

func (r *randomRun) path() string { return pickOne(r, "/w", "/w/a", "/w/b", "/w/b/c", "/x", `/w/\\q`) }

func (r *randomRun) peer() string { return pickOne(r, "127.0.0.1:80", "unix:@n") }

func (r *randomRun) place() string { return pickOne(r, r.path(), r.path(), r.path(), r.peer()) }

// operation is one of a process, with one kernel line or two.
func (r *randomRun) operation() []schemas.KernelEvent {
	second := r.line()
	if second.EventType == schemas.EventExec && r.yes(2) {
		script := second
		script.EventType, script.Value = schemas.EventScript, []byte(r.path())
		return []schemas.KernelEvent{second, script}
	}
	if of, ok := map[uint32]uint32{schemas.EventRenameTo: schemas.EventRenameFrom, schemas.EventMountSource: schemas.EventMount}[second.EventType]; ok {
		first := second
		first.EventType, first.Value = of, []byte(r.path())
		return []schemas.KernelEvent{first, second}
	}
	return []schemas.KernelEvent{second}
}

// line is one kernel line of a process.
func (r *randomRun) line() schemas.KernelEvent {
	e := schemas.KernelEvent{Value: []byte(r.path()), Has: schemas.KernelHasReturn, Status: schemas.StatusSuccess}
	if r.yes(4) {
		e.ReturnValue, e.Status = -2, schemas.StatusError
	}
	switch r.IntN(8) {
	case 0:
		e.EventType = schemas.EventExec
		e.ReturnValue, e.Status = 0, schemas.StatusSuccess
	case 1:
		e.EventType = pickOne(r, uint32(schemas.EventUnlink), schemas.EventRenameTo, schemas.EventMountSource, schemas.EventIOUringOther)
		if e.EventType == schemas.EventIOUringOther {
			e.Value = nil
		}
	case 2:
		e.EventType, e.Value = schemas.EventConnect, []byte(r.peer())
		if r.yes(2) {
			e.ReturnValue, e.Status = schemas.ConnectInProgress, ""
			if r.yes(2) {
				e.Has, e.ConnectResult = e.Has|schemas.KernelHasConnectResult, pickOne(r, int64(0), -111)
			}
		}
	case 3:
		if r.enforced {
			e.EventType, e.ReturnValue, e.Status = schemas.EventFileBlocked, -1, schemas.StatusError
			e.Has |= schemas.KernelHasCgroupID | schemas.KernelHasRuleID
			e.CgroupID, e.RuleID = 7, uint32(r.IntN(3))
			if r.yes(2) {
				e.EventType, e.Has = schemas.EventConnectBlocked, e.Has|schemas.KernelHasPort
				e.Value, e.Destination, e.Port = []byte("10.0.0.1:443"), []byte("10.0.0.1"), 443
			}
			break
		}
		fallthrough
	default:
		e.EventType, e.Flags = schemas.EventOpenat, uint64(r.IntN(3))
		e.Has |= schemas.KernelHasFlags | schemas.KernelHasMode
		e.AccessMode = schemas.AccessMode(e.Flags)
	}
	return e
}

// kernel writes the kernel.normalized stream and returns it. The kernel pids of
// session i's proxy and server are 100+10i and 101+10i, where they are.
func (r *randomRun) kernel(t *testing.T) []byte {
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNormalized, RunID: randomID, Tool: "runner-normalize", Version: "test"})
	check(t, err)
	shim, keys := "none", []string{}
	if slices.Contains(r.args, "--policy") {
		keys = append(keys, schemas.EnvPolicyLog, schemas.EnvRunID)
	}
	if slices.Contains(r.args, "--sdk") {
		shim, keys = "openai-agents", slices.Compact(append(keys, schemas.EnvRunID, schemas.EnvSDKLog, schemas.EnvSDKSchema))
	}
	if slices.Contains(r.args, "--intents") {
		keys = append(keys, schemas.EnvIntentLog, schemas.EnvIntentSchema, schemas.EnvRunID)
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	lines, blocked, processes, kernel := r.kernelLines(t)
	code := 0
	if r.captured && blocked[schemas.EventExec] == 0 {
		code = 1 // a command that did not start cannot succeed
	}
	check(t, w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: randomID, Type: "run_started", AgentShim: shim, Command: []string{"a"}, EnvKeys: keys}))
	check(t, w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: randomID, Seq: 1, Type: "run_finished", ExitCode: &code, Success: code == 0}))
	for _, text := range kernel {
		check(t, w.WriteRaw(text))
	}
	r.healths(t, w, lines, blocked, processes)
	return b.Bytes()
}

// spaceOf is the pid namespace of a session: every other one is in one of its own.
func spaceOf(session int) uint32 { return uint32(session % 2 * (500 + session)) }

// placeOf are the numbers of a process of a session, with those in a pid namespace.
func placeOf(otherwise uint32, session, first int) (pid, space, own uint32) {
	if space = spaceOf(session); space != 0 {
		return otherwise, space, uint32(first + 10*session)
	}
	return uint32(first + 10*session), 0, 0
}

// kernelLines are the records of processes and their kernel lines, and how many there are of what.
func (r *randomRun) kernelLines(t *testing.T) (lines uint64, blocked map[uint32]uint64, processes uint64, list [][]byte) {
	depth := uint32(0)
	blocked = map[uint32]uint64{}
	sessions := r.Perm(r.sessions)
	server := -1 // of this session comes next
	for r.captured && (len(sessions) > 0 || server >= 0 || !r.yes(4)) {
		p := schemas.Process{Schema: schemas.SchemaProcess, RunID: randomID, PID: uint32(processes + 1), KernelPID: uint32(processes + 1), Depth: depth}
		p.StartNS, p.EndNS = uint64(r.IntN(20)), uint64(pickOne(r, 0, 300, 300))
		switch {
		case server >= 0:
			p.KernelPID, p.PIDNS, p.NSPID = placeOf(p.KernelPID, server, 101)
			server = -1
		case len(sessions) > 0 && r.yes(2):
			p.KernelPID, p.PIDNS, p.NSPID = placeOf(p.KernelPID, sessions[0], 100)
			if !r.yes(4) {
				server = sessions[0]
			}
			sessions = sessions[1:]
		}
		processes++
		if r.timed {
			text, err := schemas.Marshal(p)
			check(t, err)
			list = append(list, text)
		}
		for range r.IntN(6) {
			at := 10 + r.IntN(210)
			for _, e := range r.operation() {
				e.Seq, e.PID = lines, p.PID
				text := e.AppendJSON(nil, randomID)
				if r.timed {
					text = fmt.Appendf(text[:len(text)-1], `,"ktime_ns":%d}`, at)
				}
				list = append(list, text)
				lines++
				blocked[e.EventType]++
			}
		}
		if depth = p.Depth + 1; server < 0 {
			depth = uint32(r.IntN(int(p.Depth) + 2))
		}
	}
	return lines, blocked, processes, list
}

func (r *randomRun) healths(t *testing.T, w *stream.Writer, lines uint64, blocked map[uint32]uint64, processes uint64) {
	counters, facts := map[string]uint64{}, map[string]string{}
	for _, name := range strings.Fields("canary compat_unmapped decode_errors dropped emitted escapes foreign inherited_fds io_uring_unmapped lexical path_fault path_truncated read recursion_misses scratch_missing seen spooled_bytes survivors_killed user_fault user_truncated") {
		counters[name] = 0
	}
	for _, name := range strings.Fields("canary_before=seen canary_after=seen end=empty hooks_missing= io_uring=attached kernel_capture=attached network_rules=off platform=linux redundant=off supervisor=exec unix_hooks=attached") {
		key, value, _ := strings.Cut(name, "=")
		facts[key] = value
	}
	stage, status := "runner-capture", schemas.StatusComplete
	counters["read"], counters["emitted"], counters["seen"] = lines, lines, lines
	switch {
	case !r.captured:
		stage, facts["kernel_capture"], facts["canary_before"], facts["canary_after"] = "runner-exec", "not_requested", "not_run", "not_run"
	case r.yes(4):
		counters["dropped"], counters["seen"], status = 3, lines+3, schemas.StatusPartial
	}
	if n := blocked[schemas.EventIOUringOther]; n > 0 {
		counters[schemas.CounterIOUringUnmapped], status = n, schemas.StatusPartial
	}
	if r.enforced {
		mechanism := pickOne(r, schemas.FileMechanisms[:]...)
		facts["file_mechanism"], counters["file_inserted"] = mechanism, 0
		for _, c := range schemas.Confinements {
			if c.Mechanism == mechanism {
				facts["confined"] = c.Name
			}
		}
		for _, e := range schemas.Enforcements {
			facts[e.State], facts[e.Policy] = "enforced", "sha256:"+strings.Repeat("a", 64)
			counters[e.Rules], counters[e.Blocked] = 2, blocked[e.Event]
			if blocked[e.Event] > 0 {
				counters[e.ByRule+"1"] = blocked[e.Event]
			}
		}
	}
	check(t, w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: randomID, Stage: stage, In: lines, Out: lines, Counters: counters, Facts: facts}))
	counters = map[string]uint64{"added": 0}
	if r.timed {
		counters["process_records"] = processes
	}
	check(t, w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: randomID, Stage: "runner-normalize", In: lines, Out: lines, Counters: counters}))
	check(t, w.Seal(status))
}

// said is a line of a log and its time.
type said struct {
	at   uint64
	line string
}

// policyLog is what the sessions' proxies and other processes wrote, in the order of time.
func (r *randomRun) policyLog(t *testing.T) (lines []string) {
	var all []said
	for s := range r.sessions {
		all = append(all, r.session(t, s)...)
	}
	for range r.IntN(3) * r.IntN(2) {
		all = append(all, said{uint64(r.IntN(300)), fmt.Sprintf(`{"type":"assay.tool.decision","source":"other","data":{"tool":%q,"tool_call_id":%q,"decision":%q,"outcome":"x"}}`,
			r.tool(), r.id(), pickOne(r, "allow", "deny", "error"))})
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.at, b.at) })
	for _, s := range all {
		lines = append(lines, s.line)
	}
	return lines
}

func (r *randomRun) session(t *testing.T, n int) (out []said) {
	session, seq := fmt.Sprintf("%016x", n), uint64(0)
	digest := "sha256:" + strings.Repeat("b", 64)
	now := uint64(20 + r.IntN(10))
	say := func(kind string, data any) {
		b, err := schemas.Marshal(schemas.LogEntry[any]{SpecVersion: "1.0", ID: fmt.Sprintf("%s-%d", session, seq), Type: kind, Source: schemas.LogSource, Data: data})
		check(t, err)
		out = append(out, said{now, string(b)})
		seq++
	}
	head := func() schemas.LogHead { return schemas.LogHead{Session: session, Seq: seq} }
	server := uint32(101 + 10*n)
	if r.again.IntN(16) == 0 {
		server = 0
	}
	say(schemas.LogSessionStarted, schemas.SessionStarted{LogHead: head(), KtimeNS: now, Name: fmt.Sprintf("server%d", n), PolicyDigest: digest, ProxyPID: uint32(100 + 10*n), ServerPID: server, PIDNS: spaceOf(n), Denies: r.denies()})
	type open struct {
		call, start uint64
		id          string
	}
	var running []open
	made := uint64(0)
	finish := func(i int, outcome string) {
		c := running[i]
		say(schemas.LogCallFinished, schemas.CallFinished{LogHead: head(), Call: c.call, ToolCallID: c.id, StartNS: c.start, EndNS: now, Outcome: outcome})
		running = slices.Delete(running, i, i+1)
	}
	decide := func(call, attempt uint64, id, tool string) {
		d := schemas.ToolDecision{LogHead: head(), Call: call, Attempt: attempt, Tool: tool, Decision: schemas.DecisionAllow, ReasonCode: "P_ALLOW_DEFAULT",
			ToolCallID: id, ToolCallIDSource: "callId", PolicyDigest: digest, StartNS: now, TargetsCut: r.yes(6)}
		if r.yes(2) { // often one below the other
			d.Targets = []string{pickOne(r, "/w", "/w/b", "/w/b/c", "/w/a")}
		}
		for range r.IntN(3) {
			d.Targets = append(d.Targets, r.place())
		}
		if !r.yes(16) { // otherwise the line may be bad
			slices.Sort(d.Targets)
			d.Targets = slices.Compact(d.Targets)
		}
		if r.yes(3) {
			d.Decision, d.ReasonCode, d.RuleID, d.Outcome, d.EndNS = schemas.DecisionDeny, "P_DENY_RULE", "r", schemas.OutcomeDenied, now+1
		} else {
			running = append(running, open{call, now, id})
		}
		made++
		say(schemas.LogDecision, d)
		now += 2
	}
	request := func(number uint64) {
		d := schemas.RequestDecision{LogHead: head(), Request: number, Direction: "client", Method: "resources/read", Decision: schemas.DecisionAllow, ReasonCode: "P_ALLOW_DEFAULT",
			PolicyDigest: digest, StartNS: now, Targets: append([]string{}, r.denies()...)}
		if r.yes(3) {
			d.Decision, d.ReasonCode, d.EndNS = schemas.DecisionDeny, "P_DENY_DEFAULT", now+1
		}
		start := now
		say(schemas.LogRequestDecided, d)
		if now += 2 + uint64(r.IntN(20)); d.EndNS == 0 {
			say(schemas.LogRequestFinished, schemas.RequestFinished{LogHead: head(), Request: number, StartNS: start, EndNS: now, Outcome: schemas.OutcomeCompleted})
		}
	}
	for call := range uint64(r.IntN(5)) {
		if r.yes(3) {
			request(call)
		}
		if r.again.IntN(12) == 0 {
			digest = "sha256:" + strings.Repeat([]string{"b", "c"}[r.again.IntN(2)], 64)
			denies := []string{"/w/b", "/w/z"}[:r.again.IntN(3)]
			say(schemas.LogPolicyReloaded, schemas.PolicyReloaded{LogHead: head(), KtimeNS: now, PolicyDigest: digest, Denies: denies})
		}
		id, tool := r.id(), r.tool()
		decide(call, 1, id, tool)
		now += uint64(r.IntN(20))
		if i := slices.IndexFunc(running, func(o open) bool { return o.call == call }); i >= 0 && r.yes(3) {
			finish(i, schemas.OutcomeInputRequired)
			now += 1 + uint64(r.IntN(10))
			decide(call, 2, id, tool)
		}
		for len(running) > 0 && !r.yes(4) {
			finish(r.IntN(len(running)), pickOne(r, schemas.OutcomeCompleted, schemas.OutcomeToolError, schemas.OutcomeCancelled, schemas.OutcomeServerGone))
			now += uint64(r.IntN(3))
		}
	}
	if r.yes(4) {
		say(schemas.LogMessageRefused, schemas.MessageRefused{LogHead: head(), KtimeNS: now, Direction: "client", ReasonCode: "M_BATCH"})
	}
	if !r.yes(4) {
		say(schemas.LogSessionFinished, schemas.SessionFinished{LogHead: head(), KtimeNS: now, Decisions: made})
	}
	return out
}

// denies are paths that a rule may name.
func (r *randomRun) denies() (list []string) {
	if r.yes(3) {
		list = append(list, r.path())
	}
	return list
}

func (r *randomRun) sdkLog() (lines []string) {
	prefix := pickOne(r, "", "", "fs_")
	for range r.IntN(10) {
		lines = append(lines, fmt.Sprintf(`{"schema":"assay.runner.sdk_event.v0","run_id":"random","seq":%d,"event_type":%q,"source":"s","tool_call_id":%q,"tool":%q,"ts":1}`,
			len(lines), pickOne(r, "tool_call_started", "tool_call_completed"), r.id(), prefix+r.tool()))
	}
	if !r.yes(4) {
		lines = append(lines, fmt.Sprintf(`{"schema":"assay.runner.sdk_event.v0","run_id":"random","seq":%d,"event_type":%q,"source":"s"}`, len(lines), pickOne(r, "run_finished", "run_failed")))
	}
	return lines
}

// intentLog is what the command says that it wants to have done.
func (r *randomRun) intentLog() (lines []string) {
	for range r.IntN(6) {
		lines = append(lines, fmt.Sprintf(`{"schema":"assay.runner.intent.v0","run_id":"random","seq":%d,"intent_type":%q,"payload":{"n":%d},"idempotency_key":%q}`,
			len(lines), pickOne(r, "email.send", "x.y"), r.IntN(9), r.id()))
	}
	return lines
}

// log writes a log, as a file or as runner-exec collects it, with faults.
func (r *randomRun) log(t *testing.T, flag, name string, lines []string) {
	if len(lines) > 0 && r.yes(6) {
		i := r.IntN(len(lines))
		lines[i] = pickOne(r, "{", `{"type":"x"}`, strings.Replace(lines[i], `"seq":`, `"seq":7`, 1), strings.Replace(lines[i], "tc_", "", 1))
	}
	path := filepath.Join(r.dir, name)
	r.args = append(r.args, flag, path)
	layer, known := schemas.LayerOf(strings.TrimPrefix(flag, "--"))
	plain := []byte(strings.Join(lines, "\n"))
	if r.yes(3) && known && len(plain) > 0 && layer.Begins(plain) == nil { // what begins as something else is no log, if it is a plain file
		check(t, os.WriteFile(path, plain, 0o600))
		return
	}
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: name, RunID: randomID, Tool: "runner-exec", Version: "test"})
	check(t, err)
	for i, line := range lines {
		check(t, w.Write(schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: randomID, Seq: uint64(i), Line: schemas.Text(line)}))
	}
	facts := map[string]string{"unterminated": "no", "replaced": "no", "writers_at_end": "none", "stopped": ""}
	counters := map[string]uint64{"bytes": uint64(len(plain)), "lines": uint64(len(lines)), "dropped_bytes": 0, "after_end_bytes": 0}
	status := schemas.StatusComplete
	switch r.IntN(12) {
	case 0:
		facts["unterminated"] = "yes"
	case 1:
		facts["replaced"], status = "yes", schemas.StatusPartial
	case 2:
		facts["writers_at_end"], counters["after_end_bytes"] = "open", 1
	case 3:
		facts["stopped"], counters["dropped_bytes"], status = "too_many_bytes", 9, schemas.StatusPartial
	}
	check(t, w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: randomID, Stage: "runner-exec", Counters: counters, Facts: facts}))
	check(t, w.Seal(status))
	check(t, os.WriteFile(path, b.Bytes(), 0o600))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRandomRuns: runner-pack takes every output of runner-correlate, and runner-verify
// derives the same.
func TestRandomRunsAreVerified(t *testing.T) {
	runs := 500
	if testing.Short() {
		runs = 40
	}
	seen := map[string]int{}
	for seed := range uint64(runs) {
		r := &randomRun{Rand: rand.New(rand.NewPCG(seed, 17)), again: rand.New(rand.NewPCG(seed, 18)), more: rand.New(rand.NewPCG(seed, 19)), dir: t.TempDir()}
		r.timed, r.captured, r.enforced = !r.yes(6), !r.yes(8), r.yes(4)
		r.enforced = r.enforced && r.captured
		r.sessions = r.IntN(4)
		if !r.yes(8) {
			r.log(t, "--policy", schemas.StreamPolicyLog, r.policyLog(t))
		}
		if !r.yes(3) {
			r.log(t, "--sdk", schemas.StreamSDKLog, r.sdkLog())
		}
		if r.more.IntN(3) > 0 {
			r.records(t)
		}
		if wants := (&randomRun{Rand: rand.New(rand.NewPCG(seed, 20)), dir: r.dir}); !wants.yes(2) {
			wants.log(t, "--intents", schemas.StreamIntentLog, wants.intentLog())
			r.args = append(r.args, wants.args...)
		}
		in := filepath.Join(r.dir, "kernel.ndjson")
		check(t, os.WriteFile(in, r.kernel(t), 0o600))
		archive := filepath.Join(r.dir, "run.tar.gz")
		joined, stderr := new(bytes.Buffer), new(bytes.Buffer)
		for _, stage := range [][]string{append(append([]string{"runner-correlate"}, r.args...), in), {"runner-pack", "-o", archive}, {"runner-verify", "--explain", archive}} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, stage[0]), stage[1:]...)
			out := new(bytes.Buffer)
			stderr.Reset()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = joined, out, stderr
			if err := cmd.Run(); err != nil {
				kept, _ := os.MkdirTemp("", "random-run-")
				check(t, os.CopyFS(kept, os.DirFS(r.dir)))
				t.Fatalf("seed %d: %v in %s: %v\n%s", seed, stage, kept, err, stderr)
			}
			if joined = out; stage[0] == "runner-correlate" {
				for _, k := range schemas.Ambiguities() {
					if bytes.Contains(out.Bytes(), []byte(`"code":"`+k.Code)) {
						seen[k.Code]++
					}
				}
			}
		}
	}
	for _, k := range schemas.Ambiguities() {
		// runner-verify refuses a run that tasks left, so this makes none.
		if seen[k.Code] == 0 && k.Code != schemas.AmbiguityCgroupFailed && !testing.Short() {
			t.Errorf("no run had %s", k.Code)
		}
	}
}

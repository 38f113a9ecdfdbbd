package main

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// world is a run in short form: what the kernel observed, and what the policy proxies
// and the SDK wrote.
//
// kernel has a line for each process, DEPTH PID START-END [SPACE:PID: its number in
// its own pid namespace], in the order of the tree, and indented below it its lines, TIME VERB VALUE: a "!" before the
// verb means that it failed. Without times in the stream the numbers are not used.
//
// policy has lines: "session S PROXY SERVER TIME [@SPACE] [DENIED…]", "request S N METHOD START-END
// [TARGET…]", "refuse-request" likewise, "allow S CALL ID TOOL START-END
// OUTCOME [TARGET…]", "deny S CALL ID TOOL START-END [TARGET…]", "refuse S TIME",
// "end S", "foreign ID TOOL DECISION"; END may be missing: the call did not finish.
// "again S CALL ID TOOL …" is a second attempt. TARGET "…" means that targets were
// cut. Anything else is written as it is.
//
// sdk has lines "started ID TOOL", "completed ID TOOL", "finished", "failed". A word "#a" at the end of a call is
// the digest of its arguments, with the digit a.
type world struct {
	kernel, policy, sdk, intents string // intents are written as they are

	untimed   bool
	policyLog *logHealth // health of a collected log; nil if it is plain
	sdkLog    *logHealth // as of the next
	intentLog *logHealth
	capture   input            // changes to the capture's health
	record    map[string][]any // lines of the records of wrappers, by the name of their streams
}

// logHealth is what runner-exec reports about a log.
type logHealth struct {
	facts    map[string]string
	counters map[string]uint64
	status   schemas.Status
}

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var testVerbs = map[string]uint32{
	"read": schemas.EventOpenat, "write": schemas.EventOpenat, "exec": schemas.EventExec, "script": schemas.EventScript, "connect": schemas.EventConnect,
	"unlink": schemas.EventUnlink, "send": schemas.EventSendto, "connect_blocked": schemas.EventConnectBlocked, "file_blocked": schemas.EventFileBlocked, "mkdir": schemas.EventMkdir,
	"mount": schemas.EventMount, "mount_source": schemas.EventMountSource, "uring": schemas.EventIOUringOther,
}

// stream is the kernel.normalized stream of the world.
func (w world) stream(t testing.TB) []byte {
	t.Helper()
	in := w.capture
	if in.shim == "" {
		in.shim = "openai-agents" // a run with a shim may have an SDK log
	}
	records := uint64(0)
	n := uint64(0)
	in.raw = func(out *stream.Writer) {
		var pid uint32
		for _, l := range strings.Split(w.kernel, "\n") {
			f := strings.Fields(l)
			if len(f) == 0 {
				continue
			}
			if l[0] != ' ' && l[0] != '\t' {
				p := schemas.Process{Schema: schemas.SchemaProcess, RunID: testRun}
				if _, err := fmt.Sscan(f[0]+" "+f[1], &p.Depth, &p.KernelPID); err != nil {
					t.Fatal(l, err)
				}
				p.StartNS, p.EndNS = times2(t, f[2])
				if len(f) > 3 {
					if _, err := fmt.Sscanf(f[3], "%d:%d", &p.PIDNS, &p.NSPID); err != nil {
						t.Fatal(l, err)
					}
				}
				p.PID = p.KernelPID
				pid = p.PID
				if records++; !w.untimed {
					testkit.Must(t, out.Write(p))
				}
				continue
			}
			var at uint64
			if _, err := fmt.Sscan(f[0], &at); err != nil {
				t.Fatal(l, err)
			}
			verb, failed := strings.CutPrefix(f[1], "!")
			e := ev(testVerbs[verb], "")
			if e.EventType == 0 {
				t.Fatal("unknown verb", l)
			}
			if e.Value = nil; len(f) > 2 {
				e.Value = []byte(strings.Join(f[2:], " "))
			}
			if failed {
				e.ReturnValue, e.Status = -2, schemas.StatusError
			}
			switch e.EventType {
			case schemas.EventOpenat:
				e.AccessMode, e.Has = verb, e.Has|schemas.KernelHasFlags|schemas.KernelHasMode
				if verb == "write" {
					e.Flags = 1
				}
			case schemas.EventFileBlocked:
				e.Has, e.CgroupID, e.RuleID, e.Status = schemas.KernelHasCgroupID|schemas.KernelHasRuleID, 5, 1, ""
			case schemas.EventConnectBlocked:
				e.Has = schemas.KernelHasCgroupID | schemas.KernelHasPort | schemas.KernelHasRuleID | schemas.KernelHasReturn
				e.CgroupID, e.RuleID, e.ReturnValue, e.Status = 5, 1, -1, schemas.StatusError
				if to, err := netip.ParseAddrPort(string(e.Value)); err == nil {
					e.Destination, e.Port = []byte(to.Addr().String()), to.Port()
				} else {
					e.Has &^= schemas.KernelHasPort
				}
			}
			e.PID, e.Seq = pid, n
			n++
			line := e.AppendJSON(nil, testRun)
			if !w.untimed {
				line = fmt.Appendf(line[:len(line)-1], `,"ktime_ns":%d}`, at)
			}
			testkit.Must(t, out.WriteRaw(line))
		}
	}
	change := in.change
	in.change = func(c, nz *schemas.StageHealth) {
		if c.Facts["kernel_capture"] == "attached" {
			c.In, c.Out, nz.In, nz.Out = n, n, n, n
			c.Counters["read"] += n
			c.Counters["emitted"] += n
			c.Counters["seen"] += n
		}
		if !w.untimed {
			nz.Counters["process_records"] = records
		}
		if change != nil {
			change(c, nz)
		}
	}
	return in.build(t)
}

func times2(t testing.TB, s string) (a, b uint64) {
	from, to, _ := strings.Cut(s, "-")
	for _, x := range []struct {
		text string
		v    *uint64
	}{{from, &a}, {to, &b}} {
		if x.text != "" {
			if _, err := fmt.Sscan(x.text, x.v); err != nil {
				t.Fatal(s, err)
			}
		}
	}
	return a, b
}

func marshalLine(t testing.TB, v any) string {
	b, err := schemas.Marshal(v)
	testkit.Must(t, err)
	return string(b)
}

func hexOf(session string) string { return fmt.Sprintf("%016x", []byte(session)[0]) }

// sourceOf is the tool whose session it is: those of P and Q are runner-proc's.
func sourceOf(hex string) string {
	if hex == hexOf("P") || hex == hexOf("Q") {
		return schemas.LogSourceProc
	}
	return schemas.LogSource
}

// decisionLog is the log of the proxies. A call with the id "proc" has the one that runner-proc makes.
func decisionLog(t testing.TB, text string) []byte {
	t.Helper()
	var b strings.Builder
	seq := map[string]uint64{}
	made := map[string]uint64{}
	attempts := map[string]uint64{}
	head := func(s string) schemas.LogHead {
		seq[s]++
		return schemas.LogHead{Session: hexOf(s), Seq: seq[s] - 1}
	}
	put := func(kind string, h schemas.LogHead, data any) {
		b.WriteString(marshalLine(t, schemas.LogEntry[any]{SpecVersion: "1.0", ID: fmt.Sprintf("%s-%d", h.Session, h.Seq), Type: kind, Source: sourceOf(h.Session), Data: data}) + "\n")
	}
	by := map[string]string{}
	for _, l := range strings.Split(text, "\n") {
		f := strings.Fields(l)
		if len(f) == 0 {
			continue
		}
		number := func(i int) (n uint64) {
			if _, err := fmt.Sscan(f[i], &n); err != nil {
				t.Fatal(l, err)
			}
			return n
		}
		switch f[0] {
		case "session":
			h := head(f[1])
			by[f[1]] = digestA
			var space uint32
			if len(f) > 5 && f[5][0] == '@' {
				if _, err := fmt.Sscan(f[5][1:], &space); err != nil {
					t.Fatal(l, err)
				}
				f = slices.Delete(f, 5, 6)
			}
			put(schemas.LogSessionStarted, h, schemas.SessionStarted{LogHead: h, Name: "srv-" + f[1], PolicyDigest: digestA,
				ProxyPID: uint32(number(2)), ServerPID: uint32(number(3)), PIDNS: space, KtimeNS: number(4), Denies: slices.Sorted(slices.Values(f[5:]))})
		case "request", "refuse-request":
			h := head(f[1])
			start, end := times2(t, f[4])
			d := schemas.RequestDecision{LogHead: h, Request: number(2), Direction: "client", Method: f[3], Decision: "allow", ReasonCode: "P_ALLOW_DEFAULT",
				PolicyDigest: by[f[1]], StartNS: start, Targets: append([]string{}, slices.Sorted(slices.Values(f[5:]))...)}
			if f[0] != "request" {
				d.Decision, d.ReasonCode, d.EndNS = "deny", "P_DENY_DEFAULT", end
			}
			put(schemas.LogRequestDecided, h, d)
			if f[0] == "request" && end != 0 {
				h = head(f[1])
				put(schemas.LogRequestFinished, h, schemas.RequestFinished{LogHead: h, Request: d.Request, StartNS: start, EndNS: end, Outcome: "completed"})
			}
		case "allow", "again", "deny":
			h := head(f[1])
			start, end := times2(t, f[5])
			if f[3] == "proc" {
				f[3] = schemas.ProcessCallID(h.Session, number(2))
			}
			d := schemas.ToolDecision{LogHead: h, Call: number(2), ToolCallID: f[3], Tool: f[4], StartNS: start, Attempt: 1,
				Decision: "allow", ReasonCode: "P_ALLOW_RULE", RuleID: "r1", ToolCallIDSource: "params._meta:tool_call_id", PolicyDigest: by[f[1]], Targets: []string{}}
			if strings.HasPrefix(f[3], "mcp:") {
				d.ToolCallIDSource = schemas.CallIDDeclared
			}
			key := f[1] + " " + f[2]
			attempts[key]++
			d.Attempt = attempts[key]
			targets, outcome := f[6:], ""
			var looked []string
			if f[0] == "deny" {
				d.Decision, d.ReasonCode, d.EndNS, d.Outcome = "deny", "P_DENY_RULE", end, "denied"
			} else if end != 0 {
				outcome, targets = f[6], f[7:]
			}
			for _, s := range targets {
				name, mentioned := strings.CutPrefix(s, "~")
				switch {
				case strings.HasPrefix(s, "#"): // the digest of its arguments
					d.ArgumentsDigest = "sha256:" + strings.Repeat(s[1:], 64)
				case s == "…":
					d.TargetsCut = true
				case mentioned: // and the rule did not look at it
					d.Targets = append(d.Targets, name)
					d.ArgumentsDigest = digestB // which only logs have that say what a rule looked at
				default:
					d.Targets = append(d.Targets, s)
					looked = append(looked, s)
				}
			}
			slices.Sort(d.Targets)
			if d.ArgumentsDigest != "" {
				slices.Sort(looked)
				d.Checked = looked
			}
			made[f[1]]++
			put(schemas.LogDecision, h, d)
			if outcome != "" {
				h = head(f[1])
				put(schemas.LogCallFinished, h, schemas.CallFinished{LogHead: h, Call: d.Call, ToolCallID: d.ToolCallID, StartNS: start, EndNS: end, Outcome: outcome})
			}
		case "reload": // to the other policy
			h := head(f[1])
			by[f[1]] = map[string]string{digestA: digestB, digestB: digestA}[by[f[1]]]
			put(schemas.LogPolicyReloaded, h, schemas.PolicyReloaded{LogHead: h, KtimeNS: 1, PolicyDigest: by[f[1]], Denies: slices.Sorted(slices.Values(f[2:]))})
		case "refuse":
			h := head(f[1])
			put(schemas.LogMessageRefused, h, schemas.MessageRefused{LogHead: h, KtimeNS: number(2), Direction: "client", ReasonCode: "M_BATCH"})
		case "end":
			h := head(f[1])
			put(schemas.LogSessionFinished, h, schemas.SessionFinished{LogHead: h, Decisions: made[f[1]]})
		case "foreign":
			fmt.Fprintf(&b, `{"specversion":"1.0","id":"evt","type":"assay.tool.decision","source":"assay://x","data":{"tool":%q,"decision":%q,"tool_call_id":%q}}`+"\n", f[2], f[3], f[1])
		default:
			b.WriteString(l + "\n")
		}
	}
	return []byte(b.String())
}

// threeLayers is the output, parsed.
type threeLayers struct {
	result
	policy, sdk []string
	kernel      []string
	out         []byte
}

// run correlates the world.
func (w world) run(t testing.TB) *threeLayers {
	t.Helper()
	var policy, sdk []byte
	if w.policy != "" {
		policy = decisionLog(t, w.policy)
	}
	if w.sdk != "" {
		sdk = sdkEvents(w.sdk)
	}
	if w.policyLog != nil {
		policy = collect(t, schemas.StreamPolicyLog, policy, *w.policyLog)
	}
	if w.sdkLog != nil {
		sdk = collect(t, schemas.StreamSDKLog, sdk, *w.sdkLog)
	}
	return join(t, w.stream(t), policy, sdk, append(w.records(t), w.intentArgs(t)...)...)
}

// logArgs writes the logs that are there and returns the flags for them.
func logArgs(t testing.TB, policy, sdk []byte) (args []string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []struct {
		flag string
		b    []byte
	}{{"--policy", policy}, {"--sdk", sdk}} {
		if f.b != nil {
			name := filepath.Join(dir, f.flag[2:])
			testkit.Must(t, os.WriteFile(name, f.b, 0o666))
			args = append(args, f.flag, name)
		}
	}
	return args
}

func join(t testing.TB, kernel, policy, sdk []byte, more ...string) *threeLayers {
	t.Helper()
	code, out, msg := call(kernel, append(logArgs(t, policy, sdk), more...)...)
	if code != 0 || msg != "" {
		t.Fatalf("exit %d: %s", code, msg)
	}
	return takeApart(t, out)
}

func takeApart(t testing.TB, out []byte) *threeLayers {
	t.Helper()
	j := &threeLayers{out: out}
	in, err := stream.NewReader(bytes.NewReader(out), "out", schemas.StreamJoined)
	testkit.Must(t, err)
	order := []string{schemas.SchemaEvent, schemas.SchemaNetName, schemas.SchemaIntent, schemas.SchemaKernelEvent, schemas.SchemaNetExchange, schemas.SchemaPolicyEvent, schemas.SchemaSDKEvent, schemas.SchemaClock, schemas.SchemaNet, schemas.SchemaSurfaceEntry,
		schemas.SchemaBinding, schemas.SchemaAmbiguity, schemas.SchemaReport, schemas.SchemaHealth, schemas.SchemaStageHealth}
	last := 0
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		at := slices.Index(order, rec.Schema)
		if at < last {
			t.Fatalf("%s after %s", rec.Schema, order[last])
		}
		last = at
		switch rec.Schema {
		case schemas.SchemaKernelEvent:
			j.kernel = append(j.kernel, string(rec.Bytes))
		case schemas.SchemaPolicyEvent:
			_, err = schemas.ParsePolicyEvent(rec.Bytes)
			j.policy = append(j.policy, string(rec.Bytes))
		case schemas.SchemaSDKEvent:
			_, err = schemas.ParseSDKEvent(rec.Bytes)
			j.sdk = append(j.sdk, string(rec.Bytes))
		case schemas.SchemaSurfaceEntry:
			var e *schemas.SurfaceEntry
			e, err = schemas.ParseSurfaceEntry(rec.Bytes)
			testkit.Must(t, err)
			j.entries = append(j.entries, *e)
		case schemas.SchemaBinding:
			var e *schemas.BindingEntry
			e, err = schemas.ParseBinding(rec.Bytes)
			testkit.Must(t, err)
			j.report.Bindings = append(j.report.Bindings, e.Binding)
		case schemas.SchemaAmbiguity:
			var e *schemas.AmbiguityEntry
			e, err = schemas.ParseAmbiguity(rec.Bytes)
			testkit.Must(t, err)
			to := &j.report.Ambiguities
			if schemas.IsNote(e.Code) {
				to = &j.report.Notes
			} else if len(j.report.Notes) > 0 {
				t.Errorf("%s comes after notes", e.Code)
			}
			*to = append(*to, e.Code)
		case schemas.SchemaReport:
			var r *schemas.Report
			r, err = schemas.ParseReport(rec.Bytes)
			testkit.Must(t, err)
			if len(r.Bindings)+len(r.Ambiguities) > 0 {
				t.Error("the report's arrays are not empty")
			}
			j.report.Status = r.Status
		case schemas.SchemaHealth:
			var h *schemas.Health
			h, err = schemas.ParseHealth(rec.Bytes)
			testkit.Must(t, err)
			j.health = *h
		}
		testkit.Must(t, err)
	}
	j.status = in.Trailer().Status
	for _, list := range [][]string{j.report.Ambiguities, j.report.Notes} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("codes not sorted and unique: %q", list)
		}
	}
	if len(j.report.Bindings) != len(j.policy) {
		t.Errorf("%d bindings of %d decisions", len(j.report.Bindings), len(j.policy))
	}
	return j
}

// bindings in short form: ID DECISION COUNT SCOPE own|run [EFFECT, …].
func (j *threeLayers) bindings() string {
	var b strings.Builder
	for _, x := range j.report.Bindings {
		own := "own"
		if x.Window == schemas.RunWindow {
			own = "run"
		} else if x.Window != schemas.CallWindow(x.ToolCallID) {
			own = "?"
		}
		cut := ""
		if x.EffectsCut {
			cut = " cut"
		}
		scope := x.KernelScope
		if scope == "" {
			scope = "-"
		}
		fmt.Fprintf(&b, "%s %s %d %s %s [%s]%s\n", x.ToolCallID, *x.PolicyDecision, x.KernelEventCount, scope, own, strings.Join(x.KernelEffects, ", "), cut)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// all are the ambiguities and notes.
func (j *threeLayers) all() []string {
	return slices.Sorted(slices.Values(slices.Concat(j.report.Ambiguities, j.report.Notes)))
}

// codes are all but those that only list what servers did outside of calls.
func (j *threeLayers) codes() string {
	return strings.Join(slices.DeleteFunc(j.all(), func(c string) bool { return strings.HasPrefix(c, "server_effect_") }), "\n")
}

// want compares bindings and codes, one a line.
func (j *threeLayers) want(t *testing.T, bindings, codes string) {
	t.Helper()
	trim := func(s string) string {
		var out []string
		for l := range strings.Lines(s) {
			if l = strings.TrimSpace(l); l != "" {
				out = append(out, l)
			}
		}
		return strings.Join(out, "\n")
	}
	if got := j.bindings(); got != trim(bindings) {
		t.Errorf("bindings\n%s\nwant\n%s", got, trim(bindings))
	}
	if got := j.codes(); got != trim(codes) {
		t.Errorf("codes\n%s\nwant\n%s", got, trim(codes))
	}
}

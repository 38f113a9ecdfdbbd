package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// The process of a jq program is this one under another name.
func TestMain(m *testing.M) { os.Exit(m.Run()) }

// world is the record of a run of which nothing is wrong, with all layers.
func world() archivetest.Content {
	a := archivetest.Sample()
	head := func(schema string) string {
		return `{"schema":"` + schema + `","run_id":"` + archivetest.RunID + `","seq":0,`
	}
	a[schemas.MemberKernel] = line(4, "/usr/bin/agent") + open("read", "/work/in.txt")
	a[schemas.MemberPolicy] = head(schemas.SchemaPolicyEvent) + `"source_event_type":"assay.tool.decision","source":"runner-policy","tool_call_id":"tc_1","tool":"read_file","decision":"allow","tool_call_id_source":"params._meta.tool_call_id","outcome":"input_required","reason_code":"P_ALLOW_RULE","rule_id":"read","policy_digest":"sha256:` + strings.Repeat("a", 64) + `"}` + "\n"
	a[schemas.MemberSDK] = archivetest.SDKLines("tool_call_started tc_1 read_file", "run_finished")
	a[schemas.MemberReport] = strings.NewReplacer(`"partial"`, `"clean"`, `"sdk_tool_call_without_policy_binding:tc_2"`, "").Replace(a[schemas.MemberReport])
	a[schemas.MemberFiltered] = head(schemas.SchemaFiltered) + `"rule":"loader.cache","value":"/etc/ld.so.cache"}` + "\n"
	a[schemas.MemberProcess] = head(schemas.SchemaProcessEvent) + `"process":1,"lines":2,"states":[{"by":"exec","file":"/usr/bin/agent","uid":0,"gid":0,"arguments":{"name":"agent","count":1,"bytes":6,"argv":["agent"]}}]}` + "\n"
	a[schemas.MemberTimes] = head(schemas.SchemaTime) + `"type":"anchor","clock":"CLOCK_MONOTONIC","wall_clock":"CLOCK_REALTIME","wall_ns":1700000000000000000,"finished_ns":100000000}` + "\n"
	note(a, schemas.NoteToolPolicy.Format(uint64(1), "sha256:"+strings.Repeat("a", 64)), schemas.NoteProcesses.Format(uint64(1), uint64(0), uint64(0), uint64(0), schemas.ArgvFull, schemas.NoKey))
	return a
}

func line(event int, value string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":%%d,"pid":100,"event_type":%d,"kind":%q,"value":%q,"return_value":0,"status":"success"}`+"\n", event, schemas.KindOf(uint32(event)), value)
}

func open(mode, path string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":%%d,"pid":100,"event_type":1,"kind":"openat","value":%q,"return_value":3,"access_mode":%q,"status":"success"}`+"\n", path, mode)
}

// note adds notes to the health.
func note(a archivetest.Content, notes ...string) {
	for _, n := range notes {
		a[schemas.MemberHealth] = strings.TrimSuffix(a[schemas.MemberHealth], "]}") + `,"` + n + `"]}`
	}
}

// edit changes a text of a member, which must be there.
func edit(member, old, new string) func(*testing.T, archivetest.Content) {
	return func(t *testing.T, a archivetest.Content) {
		if !strings.Contains(a[member], old) {
			t.Fatalf("%s has no %s", member, old)
		}
		a[member] = strings.Replace(a[member], old, new, 1)
	}
}

// more adds kernel lines.
func more(lines ...string) func(*testing.T, archivetest.Content) {
	return func(_ *testing.T, a archivetest.Content) { a[schemas.MemberKernel] += strings.Join(lines, "") }
}

func noted(n string) func(*testing.T, archivetest.Content) {
	return func(_ *testing.T, a archivetest.Content) { note(a, n) }
}

func ambiguous(code string) func(*testing.T, archivetest.Content) {
	return edit(schemas.MemberReport, `"ambiguities":[`, `"ambiguities":["`+code+`"`)
}

// judged are the outcomes of the rules of packs on a record.
func judged(t *testing.T, a archivetest.Content, packs ...string) (map[string]*schemas.LintResult, *result) {
	t.Helper()
	lines := strings.SplitAfter(a[schemas.MemberKernel], "\n")
	for i, l := range lines[:len(lines)-1] {
		lines[i] = fmt.Sprintf(l, i)
	}
	a[schemas.MemberKernel] = strings.Join(lines, "")
	h, err := schemas.ParseHealth([]byte(a[schemas.MemberHealth]))
	testkit.Must(t, err)
	report := &verdict.Report{RunID: archivetest.RunID, Identity: "sha256:" + strings.Repeat("0", 64), Valid: true, Record: &verdict.Record{Origin: schemas.OriginRunner, Platform: h.Platform,
		KernelLayer: h.KernelLayer, PolicyLayer: h.PolicyLayer, SDKLayer: h.SDKLayer, Notes: h.Notes, Success: strings.Contains(a[schemas.MemberEvents], `"success":true`)}}
	if code := 0; !strings.Contains(a[schemas.MemberEvents], `"exit_code":null`) {
		report.Record.ExitCode = &code
	}
	opt := Options{FailOn: pack.Error}
	opt.Packs, err = pack.OpenAll(packs)
	testkit.Must(t, err)
	r, _, err := lint(t.Context(), "run.tar", report, opt, func(v archive.Visitor) error {
		sum, err := archive.Read(t.Context(), bytes.NewReader(a.Digest(t).Tar(t)), v)
		if err == nil {
			err = sum.Err()
		}
		return err
	})
	testkit.Must(t, err)
	out := map[string]*schemas.LintResult{}
	for i := range r.report.Results {
		x := &r.report.Results[i]
		name, _, _ := strings.Cut(x.Rule, "@")
		_, id, _ := strings.Cut(x.Rule, ":")
		out[name+":"+id] = x
	}
	return out, r
}

// violations are what violates each rule of each pack: the same record with one thing changed.
var violations = []struct {
	change func(*testing.T, archivetest.Content)
	rules  string
}{
	{edit(schemas.MemberHealth, `"ringbuf_drops":0`, `"ringbuf_drops":3`), "cicd-starter:observed-whole agent-baseline:observed-whole record-keeping:no-event-lost hermetic-replay:observed-whole"},
	{edit(schemas.MemberKernel, line(4, "/usr/bin/agent"), ""), "cicd-starter:observed-something"},
	{edit(schemas.MemberEvents, `"exit_code":0,"signal":null,"success":true`, `"exit_code":1,"signal":null,"success":false`), "cicd-starter:command-succeeded"},
	{more(open("read", "/home/me/.ssh/id_ed25519")), "cicd-starter:no-keys-read agent-baseline:no-keys-read"},
	{more(open("write", "/etc/passwd")), "cicd-starter:system-unchanged"},
	{more(open("write", "/home/me/.bashrc")), "cicd-starter:no-persistence agent-baseline:nothing-left-behind"},
	{noted(schemas.NoteSurvivors.Format(uint64(2))), "agent-baseline:nothing-left-behind"},
	{more(line(2, "169.254.169.254:80")), "cicd-starter:no-metadata-service agent-baseline:no-metadata-service cicd-starter:other-machines hermetic-replay:no-network"},
	{more(line(20, "203.0.113.7:443")), "cicd-starter:nothing-refused record-keeping:risks-named"},
	{ambiguous("tool_call_effects_outside_request:tc_1"), "agent-baseline:effects-as-asked"},
	{ambiguous("denied_call_with_kernel_effects:tc_1"), "agent-baseline:denied-stays-undone"},
	{ambiguous("sdk_tool_call_without_policy_binding:tc_2"), "agent-baseline:no-call-past-the-policy"},
	{edit(schemas.MemberHealth, "policies=1 policy=sha256:"+strings.Repeat("a", 64), "policies=2"), "agent-baseline:one-policy"},
	{edit(schemas.MemberPolicy, `"decision":"allow"`, `"decision":"deny"`), "agent-baseline:no-call-denied"},
	{edit(schemas.MemberPolicy, "input_required", "tool_error"), "agent-baseline:calls-answered"},
	{edit(schemas.MemberPolicy, "input_required", "completed"), "hermetic-replay:no-live-tools"},
	{edit(schemas.MemberPolicy, `,"reason_code":"P_ALLOW_RULE"`, ""), "record-keeping:decisions-have-reasons"},
	{more(line(4, "/usr/bin/sudo")), "agent-baseline:no-other-user"},
	{more(line(200, "/usr/bin/npm")), "agent-baseline:no-packages-fetched"},
	{more(open("write", "/work/x.sh"), line(4, "/work/x.sh")), "agent-baseline:no-code-made-and-run"},
	{more(open("write", "/work/CLAUDE.md")), "agent-baseline:instructions-unchanged"},
	{more(line(204, "0.0.0.0:8080")), "agent-baseline:no-open-listener"},
	{edit(schemas.MemberKernel, line(4, "/usr/bin/agent")+open("read", "/work/in.txt"), ""), "record-keeping:events-recorded cicd-starter:observed-something"},
	{noted(`normalize_drop: program=\"true\" sha256=` + strings.Repeat("0", 64) + ` dropped=1`), "record-keeping:nothing-left-out-by-choice"},
	{func(_ *testing.T, a archivetest.Content) { delete(a, schemas.MemberTimes) }, "record-keeping:period-recorded record-keeping:requires-signals"},
	{edit(schemas.MemberEvents, `"exit_code":0,"signal":null,"success":true`, `"exit_code":null,"signal":null,"success":false`), "record-keeping:end-recorded cicd-starter:requires-signals agent-baseline:requires-signals record-keeping:requires-signals"},
	{edit(schemas.MemberHealth, " unknown=0 ", " unknown=1 "), "record-keeping:actors-known"},
	{edit(schemas.MemberReport, `"clean"`, `"partial"`), "record-keeping:calls-traceable"},
	{more(line(2, "unix:/run/docker.sock")), "hermetic-replay:no-unix-sockets"},
	{edit(schemas.MemberFiltered, "/etc/ld.so.cache", "/dev/urandom"), "hermetic-replay:no-random-device"},
	{more(open("read", "/proc/cpuinfo")), "hermetic-replay:no-machine-state"},
	{edit(schemas.MemberFiltered, "/etc/ld.so.cache", "/etc/localtime"), "hermetic-replay:no-time-zone"},
	{more(open("read_write", "/dev/shm/x")), "hermetic-replay:no-shared-memory"},
	{edit(schemas.MemberHealth, "inherited descriptors (0)", "inherited descriptors (2)"), "hermetic-replay:no-inherited-descriptors"},
	{edit(schemas.MemberProcess, `,"argv":["agent"]`, ""), "hermetic-replay:requires-signals"},
}

// TestClosedNetworks: behind runner-net no address is another machine, as long as it passes nothing on.
func TestClosedNetworks(t *testing.T) {
	for mode, want := range map[string]string{schemas.NetModeDeny: schemas.RuleHolds, schemas.NetModeReplay: schemas.RuleHolds, schemas.NetModeRecord: schemas.RuleViolated} {
		a := world()
		more(line(2, "198.18.3.4:443"))(t, a)
		noted(schemas.NoteExchanges.Format(mode, uint64(1), uint64(0)))(t, a)
		got, _ := judged(t, a, "cicd-starter", "hermetic-replay")
		for _, rule := range []string{"cicd-starter:other-machines", "hermetic-replay:no-network"} {
			if got[rule].Outcome != want {
				t.Errorf("%s, %s: %s %q, expected %s", mode, rule, got[rule].Outcome, got[rule].Evidence, want)
			}
		}
	}
}

// TestRulesBothWays: each rule of each pack of the program holds on a record with which nothing is wrong,
// and is violated by another one. What changes one thing violates no rule of that pack about other things.
func TestRulesBothWays(t *testing.T) {
	sound, _ := judged(t, world(), pack.Names()...)
	for rule, x := range sound {
		if x.Outcome != schemas.RuleHolds {
			t.Errorf("%s: %s, %s %q", rule, x.Outcome, x.Why, x.Evidence)
		}
	}
	violated := map[string]bool{}
	for _, v := range violations {
		a := world()
		v.change(t, a)
		var packs []string // of these rules; a program more costs a process more
		for rule := range strings.FieldsSeq(v.rules) {
			name, _, _ := strings.Cut(rule, ":")
			packs = append(packs, name)
		}
		got, _ := judged(t, a, packs...)
		for rule := range strings.FieldsSeq(v.rules) {
			if violated[rule] = true; got[rule] == nil || got[rule].Outcome != schemas.RuleViolated {
				t.Errorf("%s: %+v, expected a violation", rule, got[rule])
			}
		}
		for rule, x := range got {
			if x.Outcome == schemas.RuleViolated && !slices.Contains(strings.Fields(v.rules), rule) {
				t.Errorf("%s is violated by the change for %s: %s %q", rule, v.rules, x.Why, x.Evidence)
			}
		}
	}
	for rule := range sound {
		if !violated[rule] {
			t.Errorf("nothing violates %s", rule)
		}
	}
}

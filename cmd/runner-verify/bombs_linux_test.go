package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Bounds of an archive of at most 64 MiB, however much comes out of it. Time is not tested at this
// bound, because other processes take it, too: BenchmarkBombs has the numbers.
const (
	mostMemory = 128 << 20
	mostTime   = 10 * time.Second
)

// TestMain lets the test binary run as the tool, and say how much memory it took.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNER_TEST_AS_TOOL") != "1" {
		os.Exit(m.Run())
	}
	boundMemory()
	code := app().Call(context.Background(), os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
	status, err := os.ReadFile("/proc/self/status")
	fmt.Fprintf(os.Stderr, "%s %v\n", status, err)
	os.Exit(code)
}

// part is a text, so many times.
type part struct {
	text func(i int) string
	n    int
}

func text(s string, n int) part { return part{func(int) string { return s }, n} }

func (p part) write(w io.Writer) {
	for i := range p.n {
		io.WriteString(w, p.text(i))
	}
}

// bomb is an archive of which one member or two are large.
type bomb struct {
	name    string
	members map[string][]part
	args    []string
	code    int
	large   bool // only in the benchmark
}

func bombs() []bomb {
	const (
		report = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"clean","bindings":[`
		health = `{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"absent","sdk_layer":"absent","cgroup_correlation":"clean","notes":[`
	)
	one := func(name, member string, parts ...part) bomb {
		return bomb{name: name, members: map[string][]part{member: parts}, code: 1}
	}
	numbered := func(format string, n int) part {
		return part{func(i int) string { return fmt.Sprintf(format, i, i) }, n}
	}
	list := []bomb{
		one("bindings {}", bundle.ReportName, text(report, 1), text("{},", 10<<20), text(`{}],"ambiguities":[]}`, 1)),
		one("bindings null", bundle.ReportName, text(report, 1), text("null,", 6<<20), text(`null],"ambiguities":[]}`, 1)),
		one("bindings 1", bundle.ReportName, text(report, 1), text("1,", 1<<19), text(`1],"ambiguities":[]}`, 1)),
		one("empty codes", bundle.ReportName, text(report+`],"ambiguities":[""`, 1), text(`,""`, 10<<20), text(`]}`, 1)),
		one("long ids", bundle.ReportName, text(report, 1), numbered(`{"tool_call_id":"`+strings.Repeat("x", 300)+`%d","policy_decision":"allow%d","kernel_event_count":0,"window":{"start":"run_started","end":"run_finished"}},`, 60_000), text(`{}],"ambiguities":[]}`, 1)),
		one("notes 1", bundle.HealthName, text(health, 1), text("1,", 500_000), text("1]}", 1)),
		one("notes null", bundle.HealthName, text(health, 1), text("null,", 200_000), text("null]}", 1)),
		one("redaction", bundle.HealthName, text(strings.Replace(health, `"notes":[`, `"redaction":{"x":[{}`, 1), 1), text(",{}", 330_000), text(`]},"notes":[]}`, 1)),
		one("manifest", bundle.ManifestName, text(`{"schema":"assay.runner.archive_manifest.v0","run_id":"run_test","files":{"a":1`, 1), numbered(`,"%d_%d":{}`, 4000), text("}}", 1)),
		one("surface of numbers", bundle.SurfaceName, text(`{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":[1`, 1), text(",1", 2<<20), text("]}", 1)),
		one("surface of values", bundle.SurfaceName, text(`{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":["a"`, 1), numbered(`,"b%09d/%d"`, 600_000), text(`],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`, 1)),
		one("command {}", bundle.EventsName, text(`{"schema":"assay.runner.event.v0","run_id":"run_test","seq":0,"type":"run_started","agent_shim":"none","command":[{}`, 1), text(",{}", 340_000), text("],\"env_keys\":[]}\n", 1)),
		one("blank lines", bundle.KernelName, text("\n", 20<<20)),
		one("bad lines", bundle.KernelName, text("{}\n", 10<<20)),
		one("lines of other runs", bundle.KernelName, numbered(`{"schema":"assay.runner.kernel_event.v0","run_id":"x%d","seq":%d}`+"\n", 100_000)),
		one("lines that contradict themselves", bundle.KernelName, numbered(`{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":%d,"pid":1,"event_type":211,"kind":"event_211","value":"/x%d","return_value":0,"status":"error"}`+"\n", 100_000)),
		one("one long line", bundle.KernelName, text("x", 50<<20)),
		one("distinct paths", bundle.KernelName, numbered(`{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":%d,"pid":1,"event_type":211,"kind":"event_211","value":"/x%d","return_value":0,"status":"success"}`+"\n", 500_000)),
		one("calls", bundle.PolicyName, numbered(`{"schema":"assay.runner.policy_event.v0","run_id":"run_test","seq":%d,"source_event_type":"assay.tool.decision","source":"p","tool_call_id":"call_%d","tool":"t","decision":"allow"}`+"\n", 150_000)),
		one("calls with long ids", bundle.PolicyName, numbered(`{"schema":"assay.runner.policy_event.v0","run_id":"run_test","seq":%d,"source_event_type":"assay.tool.decision","source":"p","tool_call_id":"`+strings.Repeat("x", 300)+`%d","tool":"t","decision":"allow"}`+"\n", 60_000)),
		one("SDK calls", bundle.SDKName, numbered(`{"schema":"assay.runner.sdk_event.v0","run_id":"run_test","seq":%d,"event_type":"tool_call_started","source":"x","sdk_name":null,"sdk_version":null,"tool_call_id":"call_%d","tool":"t"}`+"\n", 150_000)),
		{name: "links of a base and of its changes", code: 1, members: map[string][]part{
			schemas.BlobMember(testDigest): {numbered(`{"schema":"runner.base_entry.v0","path":"%09[1]d","kind":"file","mode":420,"size":1,"link":"!%[2]d"}`+"\n", maxNodes)},
			schemas.MemberChanges:          {numbered(`{"schema":"assay.runner.file_change.v0","run_id":"run_test","seq":%d,"op":"add","path":"%09[1]d","after":{"kind":"file","mode":420,"size":1,"link":"!%d"}}`+"\n", maxNodes)}}},
		mostCalls(),
		longNames(), escapedNames(),
	}
	big := one("1 GiB of blank lines", bundle.KernelName, text("\n", 1<<30))
	big.large = true
	long := one("3 GiB of lines", bundle.KernelName, numbered(`{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":%d,"pid":1,"event_type":211,"kind":"event_211","value":null,"return_value":%[1]d,"status":"success"}`+"\n", 20_000_000))
	long.large = true
	times := numbered(`{"run_id":"run_test","schema":"assay.runner.time.v0","seq":%d,"type":"line","layer":"kernel","line":%d,"source":"kernel","ns":1}`+"\n", 1_000_000)
	slow := bomb{name: "times in another order of keys", code: 1, members: map[string][]part{schemas.MemberTimes: {times}, bundle.EventsName: {text(foreign()[bundle.EventsName], 1)}}}
	return append(list, slow, big, long)
}

// refusedNames is a valid archive of n refused files, with the names that name gives in their order.
func refusedNames(title string, n int, name func(i int) string) bomb {
	a := large(1, 1)
	comma := func(i int) string { return map[bool]string{true: "", false: ","}[i == 0] }
	health := strings.NewReplacer("monitor_events=1", fmt.Sprint("monitor_events=", n), `shared memory"`, fmt.Sprintf(`shared memory","s4_file_policy: rules=1 blocked=%d mechanism=lsm evidence=observed policy=%s"`, n, testDigest)).Replace(a[bundle.HealthName])
	return bomb{name: title, args: []string{"--json", "--explain"}, members: map[string][]part{
		bundle.KernelName: {{func(i int) string {
			return kernelLine(i, `"event_type":10,"kind":"file_blocked","value":"`+name(i)+`","cgroup_id":9,"rule_id":1`)
		}, n}},
		bundle.SurfaceName: {text(`{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":[`, 1),
			{func(i int) string { return comma(i) + `"` + name(i) + `"` }, n}, text(`],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`, 1)},
		bundle.HealthName: {text(health, 1)}, bundle.PolicyName: {text("", 1)}, bundle.SDKName: {text("", 1)},
		bundle.EventsName: {text(a[bundle.EventsName], 1)}, bundle.ReportName: {text(a[bundle.ReportName], 1)},
	}}
}

// longNames has names as long as a line can be, and an explanation that could have forty of them.
func longNames() bomb {
	return refusedNames("long names, explained", 110, func(i int) string { return fmt.Sprintf("/%03d", i) + strings.Repeat("x", 1_000_000) })
}

// escapedNames has names that are nothing but escapes, in JSON and in text form.
func escapedNames() bomb {
	return refusedNames("names of escapes", 300_000, func(i int) string { return fmt.Sprintf("/%06d", i) + strings.Repeat(`\\\\\\xff\u0001`, 20) })
}

// mostCalls is a valid archive with as many calls as one may have.
func mostCalls() bomb {
	const n = schemas.MaxToolCalls
	sep := func(format string) part {
		return part{func(i int) string {
			return strings.TrimPrefix(fmt.Sprintf(format, i), map[bool]string{true: ",", false: "\x00"}[i == 0])
		}, n}
	}
	return bomb{name: "as many calls as there may be", members: map[string][]part{
		bundle.PolicyName: {{func(i int) string {
			return fmt.Sprintf(`{"schema":"assay.runner.policy_event.v0","run_id":"run_test","seq":%d,"source_event_type":"assay.tool.decision","source":"proxy","tool_call_id":"call_%06[1]d","tool":"read_file","decision":"allow"}`+"\n", i)
		}, n}},
		bundle.ReportName: {text(`{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"partial","bindings":[`, 1),
			sep(`,{"tool_call_id":"call_%06d","policy_decision":"allow","kernel_event_count":4,"window":{"start":"run_started","end":"run_finished"}}`), text(`],"ambiguities":[`, 1),
			sep(`,"policy_call_not_in_sdk:call_%06d"`), text(`,"session_cgroup_ambiguous_for_multiple_policy_events"]}`, 1)},
		bundle.SDKName:    {text(sdkLines("run_finished"), 1)},
		bundle.HealthName: {text(strings.NewReplacer("decision_events=1", fmt.Sprint("decision_events=", n), "sdk_events=5 sdk_tool_calls=2", "sdk_events=1 sdk_tool_calls=0").Replace(sample()[bundle.HealthName]), 1)},
	}}
}

// pack writes the archive, digested as a forger would.
func (b *bomb) pack(t testing.TB, path string) {
	a, sizes := sample(), map[string]int64{}
	man := schemas.Manifest{Schema: schemas.SchemaManifest, RunID: runID, Files: map[string]schemas.ManifestFile{}}
	for name := range b.members {
		a[name] += "" // the optional ones too
	}
	for _, name := range a.names() {
		if name == bundle.ManifestName {
			continue
		}
		sum := sha256.New()
		w := &counted{w: sum}
		b.member(a, name, w)
		sizes[name] = w.n
		man.Files[name] = schemas.ManifestFile{Path: name, SHA256: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Bytes: w.n}
	}
	text, err := schemas.Marshal(man)
	testkit.Must(t, err)
	if a[bundle.ManifestName] = string(text); b.members[bundle.ManifestName] == nil {
		sizes[bundle.ManifestName] = int64(len(text))
	} else {
		w := &counted{w: io.Discard}
		b.member(a, bundle.ManifestName, w)
		sizes[bundle.ManifestName] = w.n
	}
	f, err := os.Create(path)
	testkit.Must(t, err)
	defer f.Close()
	z, _ := gzip.NewWriterLevel(f, gzip.BestSpeed)
	tw := tar.NewWriter(z)
	for _, name := range a.names() {
		testkit.Must(t, tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: sizes[name], Mode: 0o644, Format: tar.FormatUSTAR}))
		w := bufio.NewWriterSize(tw, 1<<20)
		b.member(a, name, w)
		testkit.Must(t, w.Flush())
	}
	testkit.Must(t, tw.Close())
	testkit.Must(t, z.Close())
}

func (b *bomb) member(a content, name string, w io.Writer) {
	if b.members[name] == nil {
		io.WriteString(w, a[name])
		return
	}
	for _, p := range b.members[name] {
		p.write(w)
	}
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.w.Write(p)
}

var peakOf = regexp.MustCompile(`VmHWM:\s*([0-9]+) kB`)

// measured runs the tool as a process of its own. The kernel's own number for a child includes
// the memory of the test that started it, so the child says it itself.
func measured(t testing.TB, path string, args ...string) (code int, memory int64, took time.Duration, stderr string) {
	exe, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(exe, append(args, path)...)
	cmd.Env = append(os.Environ(), "RUNNER_TEST_AS_TOOL=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begin := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if b, ok := t.(*testing.B); ok {
		b.ReportMetric((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), "s-of-processor")
	}
	m := peakOf.FindStringSubmatch(errs.String())
	if m == nil {
		t.Fatal(errs.String())
	}
	kib, _ := strconv.ParseInt(m[1], 10, 64)
	return cmd.ProcessState.ExitCode(), kib << 10, time.Since(begin), errs.String()
}

// TestBombs checks the memory for archives that are small and unpack to much.
func TestBombs(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "memory over large archives", "it takes seconds; run without -short")
	}
	path := filepath.Join(t.TempDir(), "bomb.tar.gz")
	for _, b := range bombs() {
		if b.large {
			continue
		}
		b.pack(t, path)
		code, memory, took, stderr := measured(t, path, b.args...)
		t.Logf("%-34s %4d MiB %6.2f s: %.120s", b.name, memory>>20, took.Seconds(), stderr)
		if code != b.code || memory > mostMemory || took > 12*mostTime {
			t.Errorf("%s: exit %d, %d MiB, %s\n%s", b.name, code, memory>>20, took, testkit.Clip(stderr))
		}
	}
}

// BenchmarkBombs measures each of them, and what takes longest.
func BenchmarkBombs(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bomb.tar.gz")
	for _, one := range bombs() {
		b.Run(one.name, func(b *testing.B) {
			one.pack(b, path)
			st, err := os.Stat(path)
			testkit.Must(b, err)
			b.ResetTimer()
			for b.Loop() {
				_, memory, took, _ := measured(b, path, one.args...)
				b.ReportMetric(float64(memory)/(1<<20), "MiB-peak")
				b.ReportMetric(took.Seconds()/mostTime.Seconds(), "of-10-s")
				b.ReportMetric(float64(st.Size())/(1<<20), "MiB-packed")
			}
		})
	}
}

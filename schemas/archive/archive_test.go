package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// seen is what a visitor was called with.
type seen struct {
	findings []archive.Finding
	log      []string // documents, lines, values and ends, in order
}

func (s *seen) visitor() archive.Visitor {
	say := func(format string, a ...any) error {
		s.log = append(s.log, fmt.Sprintf(format, a...))
		return nil
	}
	return archive.Visitor{
		Finding:      func(f archive.Finding) { s.findings = append(s.findings, f) },
		Document:     func(d archive.Document) error { return say("%s %T", d.Member, d.Value) },
		SurfaceValue: func(set int, value []byte) error { return say("%s %s", schemas.SurfaceSets[set], value) },
		Line:         func(l *archive.Line) error { return say("%s:%d %T", l.Member, l.Number, l.Event) },
		End:          func(m archive.Member) error { return say("end %s %d %t", m.Name, m.Lines, m.Whole) },
	}
}

// rules are the distinct rule ids of the findings, sorted.
func (s *seen) rules() string {
	var list []string
	for _, f := range s.findings {
		list = append(list, f.Rule)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

// read visits an archive, and checks that the summary fits what was seen.
func read(t testing.TB, b []byte) (*seen, archive.Summary) {
	t.Helper()
	s := &seen{}
	sum, err := archive.Read(context.Background(), bytes.NewReader(b), s.visitor())
	testkit.Must(t, err)
	switch {
	case sum.Findings != len(s.findings), (sum.Err() == nil) != (len(s.findings) == 0):
		t.Fatalf("%d findings, the summary says %d: %v", len(s.findings), sum.Findings, sum.Err())
	case sum.Complete != (sum.Identity != ""), sum.NotArchive && sum.Complete:
		t.Fatalf("%+v", sum)
	}
	return s, sum
}

// A visitor sees everything once, in archive order.
func TestVisit(t *testing.T) {
	plain := archivetest.Sample().Digest(t).Tar(t)
	s, sum := read(t, plain)
	want := []string{
		"manifest.json *schemas.Manifest", "end manifest.json 0 true",
		"capability-surface.json <nil>", "filesystem_paths /tmp/old", "filesystem_paths /tmp/out", "network_endpoints 127.0.0.1:80",
		"process_execs /usr/bin/env", "mcp_tools read_file", "policy_decisions allow:read_file", "end capability-surface.json 0 true",
		"correlation-report.json *schemas.Report", "end correlation-report.json 0 true",
		"events.ndjson:1 *schemas.RunStarted", "events.ndjson:2 *schemas.RunFinished", "end events.ndjson 2 true",
		"layers/kernel.ndjson:1 *schemas.KernelEvent", "layers/kernel.ndjson:2 *schemas.KernelEvent",
		"layers/kernel.ndjson:3 *schemas.KernelEvent", "layers/kernel.ndjson:4 *schemas.KernelEvent", "end layers/kernel.ndjson 4 true",
		"layers/policy.ndjson:1 *schemas.PolicyEvent", "end layers/policy.ndjson 1 true",
		"layers/sdk.ndjson:1 *schemas.SDKEvent", "layers/sdk.ndjson:2 *schemas.SDKEvent", "layers/sdk.ndjson:3 *schemas.SDKEvent",
		"layers/sdk.ndjson:4 *schemas.SDKEvent", "layers/sdk.ndjson:5 *schemas.SDKEvent", "end layers/sdk.ndjson 5 true",
		"observation-health.json *schemas.Health", "end observation-health.json 0 true",
	}
	if !slices.Equal(s.log, want) || s.findings != nil {
		t.Errorf("%v, visited\n%s", s.findings, strings.Join(s.log, "\n"))
	}
	if sum.Container != "tar" || sum.RunID != archivetest.RunID || !sum.Complete || len(sum.Identity) != 71 {
		t.Errorf("%+v", sum)
	}
	_, zipped := read(t, archivetest.Gzip(t, plain, gzip.BestSpeed))
	if zipped.Container != "gzip" || zipped.Identity != sum.Identity {
		t.Errorf("%+v", zipped)
	}
	// A visitor that wants nothing is told the same.
	none, err := archive.Read(t.Context(), bytes.NewReader(plain), archive.Visitor{})
	if err != nil || none.Identity != sum.Identity || none.Err() != nil {
		t.Errorf("%+v, %v", none, err)
	}
	// One who reads what was judged sees the same, without the identity.
	again := &seen{}
	v := again.visitor()
	v.Judged = true
	judged, err := archive.Read(t.Context(), bytes.NewReader(plain), v)
	if err != nil || judged.Identity != "" || !judged.Complete || judged.Err() != nil || !slices.Equal(again.log, want) {
		t.Errorf("%+v, %v", judged, err)
	}
	// Or only some layers. What is not judged is looked at whatever the visitor wants.
	for _, isJudged := range []bool{true, false} {
		some := &seen{}
		v := some.visitor()
		v.Judged, v.Layer = isJudged, func(member string) bool { return member == schemas.MemberSDK }
		wanted := want
		if isJudged {
			wanted = slices.DeleteFunc(slices.Clone(want), func(s string) bool {
				return strings.HasPrefix(s, "layers/") && !strings.HasPrefix(s, schemas.MemberSDK)
			})
			for i, s := range wanted {
				if rest, ok := strings.CutPrefix(s, "end layers/"); ok && !strings.HasPrefix(s, "end "+schemas.MemberSDK) {
					wanted[i] = "end layers/" + strings.Fields(rest)[0] + " 0 true"
				}
			}
		}
		if got, err := archive.Read(t.Context(), bytes.NewReader(plain), v); err != nil || got.Err() != nil || !slices.Equal(some.log, wanted) {
			t.Errorf("%+v, %v, visited\n%s", got, err, strings.Join(some.log, "\n"))
		}
	}
	unpacked := &seen{}
	got, err := archive.ReadMembers(t.Context(), archivetest.Sample().Digest(t).Members(), unpacked.visitor())
	if err != nil || got.Err() != nil || got.Container != "" || got.Identity != "" || !slices.Equal(unpacked.log, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// No proper beginning of an archive is complete.
func TestEveryPrefix(t *testing.T) {
	plain := archivetest.Sample().Digest(t).Tar(t)
	for name, b := range map[string][]byte{"tar": plain, "gzip": archivetest.Gzip(t, plain, gzip.BestSpeed)} {
		step := 1
		if name == "tar" {
			step = 61
		}
		for n := 0; n < len(b); n += step {
			s, sum := read(t, b[:n])
			if !sum.NotArchive || sum.Err() == nil || !strings.Contains(s.rules(), archive.RuleContainer) {
				t.Fatalf("%s: the first %d of %d bytes: %+v", name, n, len(b), sum)
			}
		}
	}
}

// Members that are swapped, missing, too many, or not those of the manifest.
func TestMemberSet(t *testing.T) {
	good := archivetest.Sample().Digest(t)
	names := good.Names()
	for i := range names {
		if s, sum := read(t, good.TarOf(t, slices.Delete(slices.Clone(names), i, i+1))); sum.Err() == nil || !strings.Contains(s.rules(), "archive.order") && s.rules() != "member.missing" {
			t.Errorf("without %s: %s", names[i], s.rules())
		}
		for j := range i {
			swapped := slices.Clone(names)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			if s, sum := read(t, good.TarOf(t, swapped)); sum.Complete || s.rules() != archive.RuleOrder {
				t.Errorf("%s and %s swapped: %s", names[i], names[j], s.rules())
			}
		}
		if s, sum := read(t, good.TarOf(t, slices.Insert(slices.Clone(names), i, names[i]))); sum.Complete || s.rules() != archive.RuleOrder {
			t.Errorf("%s twice: %s", names[i], s.rules())
		}
		if names[i] == schemas.MemberManifest {
			continue
		}
		// Other content under the same manifest.
		changed := archivetest.Content{}
		for name, text := range good {
			changed[name] = text
		}
		changed[names[i]] += "\n"
		if s, _ := read(t, changed.Tar(t)); !strings.Contains(s.rules(), archive.RuleSize) {
			t.Errorf("%s is longer: %s", names[i], s.rules())
		}
	}
	for name, tc := range map[string]struct {
		edit func(archivetest.Content)
		want string
	}{
		"extra":             {func(c archivetest.Content) { c["layers/zzz.ndjson"] = "x"; c.Digest(t) }, "manifest.files member.unknown"},
		"extra, not listed": {func(c archivetest.Content) { c["layers/zzz.ndjson"] = "x" }, "member.unknown"},
		"listed, not there": {func(c archivetest.Content) { delete(c, schemas.MemberSDK) }, "member.missing"},
		"other digest":      {replace(schemas.MemberKernel, "/tmp/out", "/tmp/oot"), "member.digest"},
		"other run":         {both(replace(schemas.MemberHealth, archivetest.RunID, "run_else"), func(c archivetest.Content) { c.Digest(t) }), "run_id"},
		"gap in seq":        {both(replace(schemas.MemberSDK, `"seq":2`, `"seq":3`), func(c archivetest.Content) { c.Digest(t) }), "seq"},
		"kernel gap in seq": {both(replace(schemas.MemberKernel, `"seq":2`, `"seq":4`), func(c archivetest.Content) { c.Digest(t) }), "seq"},
		"too large":         {func(c archivetest.Content) { c[schemas.MemberHealth] = strings.Repeat(" ", 1<<20+1) }, "archive.limit"},
	} {
		c := archivetest.Sample().Digest(t)
		tc.edit(c)
		if s, _ := read(t, c.Tar(t)); s.rules() != tc.want {
			t.Errorf("%s: %s, expected %s: %v", name, s.rules(), tc.want, s.findings)
		}
	}
}

func replace(member, old, new string) func(archivetest.Content) {
	return func(c archivetest.Content) {
		if !strings.Contains(c[member], old) {
			panic(member + " does not hold " + old)
		}
		c[member] = strings.Replace(c[member], old, new, 1)
	}
}

func both(a, b func(archivetest.Content)) func(archivetest.Content) {
	return func(c archivetest.Content) { a(c); b(c) }
}

// Every vector of the container is refused by the rule of its class, or only for
// what its members hold.
func TestContainerVectors(t *testing.T) {
	rule := map[string]string{"not_archive": archive.RuleContainer, "truncated": archive.RuleContainer, "corrupt": archive.RuleContainer,
		"hostile": archive.RuleMemberForm, "order": archive.RuleOrder, "limit": archive.RuleLimit, "trailing": archive.RuleTrailing}
	const dir = "../../testdata/vectors/bundle/"
	for _, name := range testkit.Names(t, dir) {
		class, _, _ := strings.Cut(name, ".")
		if name == "limit.bomb.tar.gz" || name == "limit.declared_size_beyond_limit.tar" {
			continue // the limits of the vectors are smaller than those of archives
		}
		s, sum := read(t, testkit.Read(t, dir+name))
		if want := rule[class]; class == "ok" && !sum.Complete || class != "ok" && (sum.Complete || !strings.Contains(s.rules(), want)) {
			t.Errorf("%s: %s, expected %s", name, s.rules(), want)
		}
	}
}

// What a visitor returns ends the reading, and comes back as it is, even when it
// looks like a fault of a container.
func TestVisitorErrors(t *testing.T) {
	plain := archivetest.Sample().Digest(t).Tar(t)
	mine := fmt.Errorf("of another archive: %w", bundle.ErrCorrupt)
	for name, v := range map[string]archive.Visitor{
		"document": {Document: func(archive.Document) error { return mine }},
		"surface":  {Document: func(d archive.Document) error { return when(d.Value == nil, mine) }},
		"value":    {SurfaceValue: func(int, []byte) error { return mine }},
		"line":     {Line: func(*archive.Line) error { return mine }},
		"end":      {End: func(m archive.Member) error { return when(m.Name == schemas.MemberSDK, mine) }},
	} {
		found := 0
		v.Finding = func(archive.Finding) { found++ }
		if _, err := archive.Read(t.Context(), bytes.NewReader(plain), v); err != mine || found > 0 {
			t.Errorf("%s: %v, %d findings", name, err, found)
		}
	}
	broken := errors.New("cable cut")
	_, err := archive.Read(t.Context(), io.MultiReader(bytes.NewReader(plain[:5000]), &failing{broken}), archive.Visitor{})
	if !errors.Is(err, broken) || !errors.Is(err, bundle.ErrRead) {
		t.Errorf("%v, expected the reader's own error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Read(ctx, bytes.NewReader(plain), archive.Visitor{}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func when(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// A visitor's validator has the last word on a document, and is not asked about
// large ones.
func TestSchemaHook(t *testing.T) {
	plain := archivetest.Sample().Digest(t).Tar(t)
	var asked []string
	s := &seen{}
	v := s.visitor()
	v.Schema = func(f schemas.Form, _ []byte) []string {
		asked = append(asked, f.Member)
		if f.Member == schemas.MemberReport {
			return []string{"one", "two"}
		}
		return nil
	}
	_, err := archive.Read(t.Context(), bytes.NewReader(plain), v)
	if err != nil || s.rules() != archive.RuleDocumentSchema || len(s.findings) != 2 || len(asked) != 4 {
		t.Errorf("%v, asked about %v: %v", err, asked, s.findings)
	}
	if slices.Contains(s.log, "correlation-report.json *schemas.Report") || !slices.Contains(s.log, "end correlation-report.json 0 false") {
		t.Errorf("%q", s.log)
	}
}

// A record of many lines and values is read in memory that does not grow with it.
func TestBoundedMemory(t *testing.T) {
	const n = 60_000
	c := archivetest.Sample()
	var kernel, surface strings.Builder
	surface.WriteString(`{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":[`)
	for i := range n {
		path := fmt.Sprintf("/work/%s/%07d", strings.Repeat("directory/", 10), i)
		kernel.WriteString(archivetest.OpenLine(i, path))
		if i > 0 {
			surface.WriteByte(',')
		}
		surface.WriteString(`"` + path + `"`)
	}
	surface.WriteString(`],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`)
	c[schemas.MemberKernel], c[schemas.MemberSurface] = kernel.String(), surface.String()
	b := c.Digest(t).Tar(t)
	if surface.Len() < archive.MaxWholeSurface {
		t.Fatalf("a surface of %d bytes is not a large one", surface.Len())
	}
	lines, values := 0, 0
	var most uint64
	v := archive.Visitor{
		Line: func(l *archive.Line) error {
			if lines++; lines%10_000 == 0 {
				most = max(most, heap())
			}
			return nil
		},
		SurfaceValue: func(int, []byte) error { values++; return nil },
	}
	before := heap()
	sum, err := archive.Read(t.Context(), bytes.NewReader(b), v)
	if err != nil || sum.Err() != nil || lines != n+8 || values != n {
		t.Fatalf("%d lines, %d values: %v, %v", lines, values, err, sum.Err())
	}
	if most > before+8<<20 {
		t.Errorf("%d bytes held while reading %d", most-before, len(b))
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzRead feeds archive bytes. Whatever they are, there is an answer; who says
// that nothing is wrong has read everything, and reads the same a second time.
func FuzzRead(f *testing.F) {
	plain := archivetest.Sample().Digest(f).Tar(f)
	f.Add(plain)
	f.Add(archivetest.Gzip(f, plain, gzip.BestSpeed))
	f.Add(plain[:3000])
	damaged := archivetest.Sample()
	damaged[schemas.MemberHealth] += "\n"
	f.Add(damaged.Digest(f).Tar(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, sum := read(t, b)
		if sum.Err() == nil && (!sum.Complete || sum.RunID == "" || s.log[len(s.log)-1] != "end observation-health.json 0 true") {
			t.Fatalf("%+v, visited %q", sum, s.log)
		}
		again, other := read(t, b)
		if !slices.Equal(s.log, again.log) || sum != other {
			t.Fatalf("%+v, then %+v", sum, other)
		}
	})
}

// FuzzMembers feeds the content of the members, digested as a forger would.
func FuzzMembers(f *testing.F) {
	c := archivetest.Sample()
	anchor := schemas.TimeEvent{RunID: "run_test", Type: schemas.TimeAnchor, WallNS: 1, FinishedNS: 2}
	for _, times := range []string{"", string(anchor.AppendJSON(nil)) + "\n"} {
		f.Add(c[schemas.MemberEvents], c[schemas.MemberKernel], c[schemas.MemberPolicy], c[schemas.MemberSDK], times, c[schemas.MemberSurface], c[schemas.MemberReport], c[schemas.MemberHealth])
	}
	f.Fuzz(func(t *testing.T, events, kernel, policy, sdk, times, surface, report, health string) {
		c := archivetest.Content{schemas.MemberEvents: events, schemas.MemberKernel: kernel, schemas.MemberPolicy: policy, schemas.MemberSDK: sdk,
			schemas.MemberSurface: surface, schemas.MemberReport: report, schemas.MemberHealth: health}
		if times != "" {
			c[schemas.MemberTimes] = times
		}
		s := &seen{}
		sum, err := archive.ReadMembers(t.Context(), c.Digest(t).Members(), s.visitor())
		if err != nil || sum.Findings != len(s.findings) || !sum.Complete {
			t.Fatalf("%v: %+v", err, sum)
		}
		// What is accepted was visited from its first line to its last.
		lines := len(slices.DeleteFunc(slices.Clone(s.log), func(e string) bool { return !strings.Contains(e, ".ndjson:") }))
		if want := strings.Count(events+kernel+policy+sdk+times, "\n"); sum.Err() == nil && lines != want {
			t.Fatalf("%d lines visited, expected %d", lines, want)
		}
	})
}

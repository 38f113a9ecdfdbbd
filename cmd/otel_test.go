package cmd_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// otelReport is what the tests use of a mapping report.
type otelReport struct {
	Records struct{ Spans, Log_records int }
	Totals  struct{ Fields_in, Mapped, Dropped int }
	Mapped  []struct {
		Source, Field string
		Count         int
	}
	Dropped []struct {
		Source, Field, Reason string
		Count                 int
	}
}

// otel exports an archive, and returns what it wrote.
func otel(t *testing.T, archive string, flags ...string) (traces, logs []byte, r otelReport) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	o := call(t, command(t, "runner-otel", append(flags, "--traces", at("t"), "--logs", at("l"), "--mapping-report", at("m"), archive)...))
	if o.code != 0 {
		t.Fatal(o)
	}
	b := testkit.Read(t, at("m"))
	testkit.Must(t, json.Unmarshal(b, &r))
	validate(t, "otel-mapping-v1", b)
	return testkit.Read(t, at("t")), testkit.Read(t, at("l")), r
}

// TestOTelAddsUp: of every recorded run, each field of each member is counted once, as a program that only knows JSON
// counts them; the requests are OTLP/JSON; there is a span for each tool call and a log record for each line.
func TestOTelAddsUp(t *testing.T) {
	runs, err := filepath.Glob("../testdata/runs/*")
	testkit.Must(t, err)
	for _, run := range runs {
		archive := packed(t, filepath.Base(run), filepath.Join(t.TempDir(), "run.tar.gz"))
		if o := call(t, command(t, "runner-verify", archive)); o.code != 0 {
			if e := call(t, command(t, "runner-otel", "--logs", filepath.Join(t.TempDir(), "l"), archive)); e.code != 3 {
				t.Errorf("%s does not verify, and is exported: %v", run, e)
			}
			continue
		}
		fields, lines, calls := countFields(t, archive)
		traces, logs, r := otel(t, archive)
		sum := 0
		for _, m := range r.Mapped {
			sum += m.Count
		}
		for _, d := range r.Dropped {
			sum += d.Count
		}
		spans := checkOTLP(t, traces, "resourceSpans", "scopeSpans", "spans")
		records := checkOTLP(t, logs, "resourceLogs", "scopeLogs", "logRecords")
		if fields != r.Totals.Fields_in || fields != r.Totals.Mapped+r.Totals.Dropped || fields != sum {
			t.Errorf("%s: %d fields; the report has %+v and lists %d", run, fields, r.Totals, sum)
		}
		if spans != calls || spans != r.Records.Spans || records != r.Records.Log_records || records < lines {
			t.Errorf("%s: %d tool calls, %d lines; %d spans, %d log records; the report has %+v", run, calls, lines, spans, records, r.Records)
		}
	}
}

// countFields counts the fields of an archive, its lines without the layer times, and its tool calls.
func countFields(t *testing.T, archive string) (fields, count, calls int) {
	ids, joined := map[string]bool{}, 0
	for name, b := range untar(t, archive) {
		list := [][]byte{b}
		if strings.HasSuffix(name, ".ndjson") {
			list = nil
			for line := range bytes.Lines(b) {
				list = append(list, line)
			}
			if name != "layers/times.ndjson" {
				count += len(list)
			}
		}
		for _, line := range list {
			var v map[string]any
			testkit.Must(t, json.Unmarshal(line, &v))
			fields += leaves(v)
			if id, ok := v["tool_call_id"].(string); ok {
				ids[id] = true
			}
			bindings, _ := v["bindings"].([]any)
			for _, b := range bindings {
				if b.(map[string]any)["sdk_tool_call_id"] != nil { // the SDK's name of a call that the policy names otherwise
					joined++
				}
			}
		}
	}
	return fields, count, len(ids) - joined
}

// leaves counts what is no object and no list of objects.
func leaves(v map[string]any) (n int) {
	for key, e := range v {
		list, _ := e.([]any)
		o, isObject := e.(map[string]any)
		objects := key == "bindings" || key == "states"
		switch {
		case isObject && key == "payload": // of an intent: it is one text
			n++
		case isObject:
			n += leaves(o)
		case objects:
			for _, e := range list {
				n += leaves(e.(map[string]any))
			}
		default:
			n++
		}
	}
	return n
}

var (
	otelIDs = map[string]*regexp.Regexp{"traceId": regexp.MustCompile(`^[0-9a-f]{32}$`), "spanId": regexp.MustCompile(`^[0-9a-f]{16}$`),
		"parentSpanId": regexp.MustCompile(`^[0-9a-f]{16}$`), "startTimeUnixNano": regexp.MustCompile(`^[0-9]+$`), "endTimeUnixNano": regexp.MustCompile(`^[0-9]+$`),
		"timeUnixNano": regexp.MustCompile(`^[0-9]+$`), "observedTimeUnixNano": regexp.MustCompile(`^[0-9]+$`)}
	otelNumbers = map[string]bool{"kind": true, "severityNumber": true, "droppedAttributesCount": true}
	otelTexts   = map[string]bool{"name": true, "eventName": true}
)

// checkOTLP checks requests as strictly as the specification of OTLP/JSON is, which receivers are not, and counts records.
func checkOTLP(t *testing.T, b []byte, groups, scopes, items string) (n int) {
	t.Helper()
	if !utf8.Valid(b) {
		t.Fatal("not UTF-8")
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 32<<20)
	for s.Scan() {
		var v map[string][]struct {
			Resource map[string][]any
			Spans    []otelScope `json:"scopeSpans"`
			Logs     []otelScope `json:"scopeLogs"`
		}
		testkit.Must(t, json.Unmarshal(s.Bytes(), &v))
		for _, g := range v[groups] {
			otelAttributes(t, g.Resource["attributes"])
			for _, scope := range append(g.Spans, g.Logs...) {
				list := append(scope.Spans, scope.Records...)
				if len(list) == 0 || len(list) > 512 {
					t.Fatalf("%d %s in a request", len(list), items)
				}
				n += len(list)
				for _, record := range list {
					otelRecord(t, record)
				}
			}
		}
	}
	testkit.Must(t, s.Err())
	return n
}

type otelScope struct {
	Spans   []map[string]any `json:"spans"`
	Records []map[string]any `json:"logRecords"`
}

func otelRecord(t *testing.T, record map[string]any) {
	t.Helper()
	if record["traceId"] == nil {
		t.Fatalf("no trace: %v", record)
	}
	for key, v := range record {
		text, isText := v.(string)
		_, isNumber := v.(float64)
		switch {
		case key == "attributes":
			otelAttributes(t, v)
		case key == "status":
			if fmt.Sprint(v) != "map[code:2]" {
				t.Fatalf("status %v", v)
			}
		case otelIDs[key] != nil && isText && otelIDs[key].MatchString(text), otelNumbers[key] && isNumber, otelTexts[key] && isText:
		default:
			t.Fatalf("%s: %v", key, v)
		}
	}
}

// otelAttributes checks keys, which are distinct, and values, which have one type each.
func otelAttributes(t *testing.T, v any) {
	t.Helper()
	seen := map[string]bool{}
	for _, a := range v.([]any) {
		a := a.(map[string]any)
		key, _ := a["key"].(string)
		value, ok := a["value"].(map[string]any)
		if key == "" || strings.Contains(key, "[") || seen[key] || len(a) != 2 || !ok {
			t.Fatalf("attribute %v", a)
		}
		seen[key] = true
		otelValue(t, value)
	}
}

func otelValue(t *testing.T, v map[string]any) {
	t.Helper()
	for kind, e := range v {
		text, isText := e.(string)
		_, isBool := e.(bool)
		o, _ := e.(map[string]any)
		switch {
		case len(v) != 1:
			t.Fatalf("value %v", v)
		case kind == "stringValue" && isText, kind == "boolValue" && isBool, kind == "intValue" && isText && regexp.MustCompile(`^-?[0-9]{1,19}$`).MatchString(text):
		case kind == "arrayValue":
			for _, e := range o["values"].([]any) {
				otelValue(t, e.(map[string]any))
			}
		case kind == "kvlistValue":
			otelAttributes(t, o["values"])
		default:
			t.Fatalf("value %v", v)
		}
	}
}

// TestOTelFlags: the same call gives the same bytes; another trace and another time change what they are about.
func TestOTelFlags(t *testing.T) {
	archive := packed(t, "tool-times", filepath.Join(t.TempDir(), "run.tar.gz"))
	traces, logs, _ := otel(t, archive)
	again, logsAgain, _ := otel(t, archive)
	if !bytes.Equal(traces, again) || !bytes.Equal(logs, logsAgain) {
		t.Error("two exports differ")
	}
	traces, logs, _ = otel(t, archive, "--traceparent", parent, "--generated-at", "2026-11-22T12:00:00Z")
	if !bytes.Contains(traces, []byte(`"traceId":"4bf92f3577b34da6a3ce929d0e0e4736"`)) || !bytes.Contains(traces, []byte(`"parentSpanId":"00f067aa0ba902b7"`)) ||
		bytes.Contains(traces, []byte(`"startTimeUnixNano":"0"`)) || bytes.Count(logs, []byte(`"observedTimeUnixNano":"1795348800000000000"`)) < 20 {
		t.Errorf("%s\n%.3000s", traces, logs)
	}
	checkOTLP(t, logs, "resourceLogs", "scopeLogs", "logRecords")
}

// TestOTelRefuses: what does not verify is not exported, and a failure leaves no file.
func TestOTelRefuses(t *testing.T) {
	dir := t.TempDir()
	archive := packed(t, "tool-denied", filepath.Join(dir, "run.tar.gz"))
	at := func(name string) string { return filepath.Join(dir, name) }
	testkit.Must(t, os.WriteFile(at("cut"), testkit.Read(t, archive)[:300], 0o600))
	testkit.Must(t, os.WriteFile(at("mine"), []byte("mine"), 0o600))
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{3, []string{"--logs", at("l"), "--mapping-report", at("m"), at("cut")}, "runner-otel: "},
		{2, []string{archive}, "--traces, --logs, --mapping-report or --endpoint is missing"},
		{2, []string{"--logs", at("mine"), archive}, "is not a file of logs: it is kept"},
		{2, []string{"--logs", at("l"), "--traces", at("l"), archive}, "name one file"},
		{2, []string{"--logs", "-", archive}, "the name of a file"},
		{2, []string{"--logs", at("l"), "--traceparent", "1", archive}, "is no traceparent"},
		{2, []string{"--logs", at("l"), "--state", at("s"), archive}, "--state without --endpoint"},
		{2, []string{"--endpoint", "ftp://x", archive}, "expected http://HOST:PORT"},
		{2, []string{"--endpoint", "http://127.0.0.1:1", "--header", "bad key=secret", archive}, "expected KEY=VALUE"},
		{5, []string{"--endpoint", "http://127.0.0.1:1", "--retry-for", "1ms", "--logs", at("l"), "--mapping-report", at("m"), archive}, "given up after"},
		{5, []string{"--logs", at("no/l"), archive}, "cannot write"},
	} {
		o := call(t, command(t, "runner-otel", c.args...))
		if o.code != c.code || !strings.Contains(o.stderr, c.says) || strings.Contains(o.stderr, "secret") || o.stdout != "" {
			t.Errorf("%q: %v", c.args, o)
		}
	}
	for _, name := range []string{"l", "m", "s"} {
		if _, err := os.Stat(at(name)); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}

// untar is what an archive has.
func untar(t *testing.T, name string) map[string][]byte {
	z, err := gzip.NewReader(bytes.NewReader(testkit.Read(t, name)))
	testkit.Must(t, err)
	list := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return list
		}
		testkit.Must(t, err)
		list[h.Name], err = io.ReadAll(r)
		testkit.Must(t, err)
	}
}

// validate checks a report against its schema.
func validate(t *testing.T, version string, b []byte) {
	t.Helper()
	form, ok := schemas.FormOf(version)
	if i := slices.IndexFunc(schemas.Reports[:], func(f schemas.Form) bool { return f.Schema == version }); i >= 0 {
		form = schemas.Reports[i]
	} else if !ok {
		t.Fatalf("%s has no form", version)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(form.JSONSchema()))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	testkit.Must(t, c.AddResource("urn:it", doc))
	s, err := c.Compile("urn:it")
	testkit.Must(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	testkit.Must(t, err)
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", version, err)
	}
}

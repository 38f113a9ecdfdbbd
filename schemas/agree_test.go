package schemas

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The tests in this file prove that the hand-written parsers and the published
// JSON Schemas accept the same lines. What a schema cannot say, the oracle below
// adds in the slow and obvious way.

// member is one key of an object with its value's source text.
type member struct{ key, value string }

// members splits one object into its members, in order.
func members(t testing.TB, line []byte) []member {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var out []member
	for d.More() {
		k, err := d.Token()
		testkit.Must(t, err)
		var v json.RawMessage
		testkit.Must(t, d.Decode(&v))
		out = append(out, member{k.(string), string(v)})
	}
	return out
}

func join(ms []member) []byte {
	b := []byte{'{'}
	for i, m := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendQuote(b, []byte(m.key))
		b = append(append(b, ':'), m.value...)
	}
	return append(b, '}')
}

// mutate changes one thing about an object; the result is compact JSON again.
func mutate(r *rand.Rand, ms []member) []member {
	ms = slices.Clone(ms)
	i, j := r.IntN(len(ms)), r.IntN(len(ms))
	switch r.IntN(8) {
	case 0:
		return slices.Delete(ms, i, i+1)
	case 1:
		ms = slices.Insert(ms, j, ms[i])
	case 2:
		ms[i], ms[j] = ms[j], ms[i]
	case 3:
		ms[i].key = pick(r, "colour", "", "Seq", "status", "kind", "marks", "resolve", "ret", ms[j].key)
	case 4:
		ms[i].value = ms[j].value
	case 5:
		ms = slices.Insert(ms, j, member{pick(r, "status", "resolve", "mode", "network_port", "file_type", "source", "child_pid", "colour"), oddValue(r)})
	default:
		ms[i].value = oddValue(r)
	}
	return ms
}

func oddValue(r *rand.Rand) string {
	return pick(r, "null", "true", `""`, `"x"`, "0", "1", "-1", "3", "6", "20", "999", "4294967295", "4294967296",
		"18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
		"9223372036854775808", "65536", "1.5", "1e300", "[]", "{}", `["create"]`, `["create","create"]`, `["append","create"]`, `["chroot"]`,
		`["chroot","addr_fault"]`, `[1]`, `[null]`, `"event_6"`, `"event_999"`, `"sendto"`, `"connect"`, `"event_3"`, `"event_03"`,
		`"success"`, `"error"`, `"unproven"`, `"changed"`, `"read"`, `"chr"`, `"cgroup"`, `"a\\b"`, `"a\\\\b"`, `"\\xff"`, `"\\x41"`, `"run_02"`, `"not ok"`,
		`"assay.runner.kernel_event.v0"`, `"runner.raw_event.v0"`)
}

// canonicalSource reports whether compact JSON b has no spelling that the
// schemas cannot see: spaces, floats, exponents, minus zero, escaped keys.
func canonicalSource(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case ' ', '\t', '\r', '\n', '.', 'E':
			return false
		case 'e': // of true and false, or of a number
			if i > 0 && '0' <= b[i-1] && b[i-1] <= '9' {
				return false
			}
		case '-':
			if i+1 < len(b) && b[i+1] == '0' {
				return false
			}
		case '"':
			start := i
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i+1 < len(b) && b[i+1] == ':' && bytes.IndexByte(b[start:i], '\\') >= 0 {
				return false
			}
		}
	}
	return true
}

type oracle func(t testing.TB, line []byte) bool

// kernelOracle: the schema, plus: the number of event_<n> is the event type, and
// the run is the expected one.
func kernelOracle(s *jsonschema.Schema) oracle {
	return func(t testing.TB, line []byte) bool {
		if !schemaTakes(s, line) {
			return false
		}
		var v struct {
			RunID     string `json:"run_id"`
			EventType uint32 `json:"event_type"`
			Kind      string `json:"kind"`
		}
		testkit.Must(t, json.Unmarshal(line, &v))
		n, numbered := strings.CutPrefix(v.Kind, "event_")
		return v.RunID == testRun && (!numbered || n == strconv.FormatUint(uint64(v.EventType), 10))
	}
}

// rawOracle: the schema, plus: keys in the schema's order, names in text form,
// marks sorted, the expected run.
func rawOracle(t testing.TB, s *jsonschema.Schema) oracle {
	f, _ := FormOf(SchemaRawEvent)
	var doc struct{ Properties json.RawMessage }
	testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
	var order []string
	for _, m := range members(t, doc.Properties) {
		order = append(order, m.key)
	}
	texts := []string{"path", "user_path", "base", "path2", "user_path2", "base2", "interp", "addr", "root"}
	return func(t testing.TB, line []byte) bool {
		if !schemaTakes(s, line) {
			return false
		}
		last := -1
		for _, m := range members(t, line) {
			at := slices.Index(order, m.key)
			if at <= last {
				return false
			}
			last = at
			var v any
			testkit.Must(t, json.Unmarshal([]byte(m.value), &v))
			if slices.Contains(texts, m.key) {
				if _, err := Untext(v.(string)); err != nil {
					return false
				}
			}
			if m.key == "marks" && !slices.IsSortedFunc(v.([]any), func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) {
				return false
			}
			if m.key == "run_id" && v != testRun {
				return false
			}
		}
		return true
	}
}

// agree runs generated, mutated and damaged lines past both sides.
func agree(t *testing.T, generate func(*rand.Rand) []byte, parse func([]byte) error, want oracle) {
	r := rand.New(rand.NewPCG(7, 8))
	taken, refused := 0, 0
	check := func(line []byte) {
		t.Helper()
		err := parse(line)
		if ok := want(t, line) && canonicalSource(line); ok != (err == nil) {
			t.Fatalf("schema accepts: %v, parser says: %v\n%s", ok, err, line)
		}
		if err == nil {
			taken++
		} else {
			refused++
		}
	}
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		line := generate(r)
		check(line)
		ms := members(t, line)
		for range 3 {
			ms = mutate(r, ms)
			if len(ms) == 0 {
				break
			}
			check(join(ms))
		}
		for range 4 {
			check(damage(r, line))
		}
	}
	t.Logf("%d lines accepted, %d refused by both", taken, refused)
	if taken < rounds || refused < rounds {
		t.Errorf("one-sided test: %d accepted, %d refused", taken, refused)
	}
}

// damage changes bytes without regard for JSON.
func damage(r *rand.Rand, line []byte) []byte {
	b := slices.Clone(line)
	i := r.IntN(len(b))
	switch r.IntN(4) {
	case 0:
		b[i] ^= 1 << r.IntN(8)
	case 1:
		b = slices.Delete(b, i, i+1)
	case 2:
		piece := pick(r, `\`, `"`, "\n", " ", "0", "-", ".", "e", `\u0041`, `\ud83d\ude00`, `\ud83d`, `\/`, "é", "\xff", "}", ",")
		b = slices.Insert(b, i, []byte(piece)...)
	default:
		b = b[:i]
	}
	return b
}

func TestKernelParserAgreesWithSchema(t *testing.T) {
	p := NewKernelParser(testRun)
	agree(t, func(r *rand.Rand) []byte { e := randomKernel(r); return e.AppendJSON(nil, testRun) },
		func(b []byte) error { return p.Parse(b, new(KernelEvent)) },
		kernelOracle(compileForm(t, SchemaKernelEvent)))
}

func TestRawParserAgreesWithSchema(t *testing.T) {
	p := NewRawParser(testRun)
	agree(t, func(r *rand.Rand) []byte { e := randomRaw(r); return e.AppendJSON(nil, testRun) },
		func(b []byte) error { return p.Parse(b, new(RawEvent)) },
		rawOracle(t, compileForm(t, SchemaRawEvent)))
}

// Every kernel line of another implementation is accepted, and what is read is
// what was written: lines in our key order come out byte for byte.
func TestKernelParserTakesTheCorpus(t *testing.T) {
	s := compileForm(t, SchemaKernelEvent)
	lines := 0
	corpus(t, SchemaKernelEvent, func(name string, b []byte) {
		eachLine(b, func(line []byte) {
			var id struct {
				RunID string `json:"run_id"`
			}
			testkit.Must(t, json.Unmarshal(line, &id))
			var e KernelEvent
			if err := NewKernelParser(id.RunID).Parse(line, &e); err != nil {
				t.Errorf("%s: %v: %s", name, err, line)
				return
			}
			if !schemaTakes(s, line) {
				t.Errorf("%s: the schema refuses %s", name, line)
			}
			if again := e.AppendJSON(nil, id.RunID); !bytes.Equal(again, line) {
				t.Errorf("%s: written differently\n got %s\nwant %s", name, again, line)
			}
			lines++
		})
	})
	t.Logf("%d lines", lines)
}

// The kernel lines that the runner writes also pass the line schema that the other
// implementation publishes, except for what CHANGES.md adds to them: lines in doubt, and results of
// pending connects.
func TestKernelLinesPassThePublishedSchema(t *testing.T) {
	path := testkit.Corpora(t, "assay/docs/reference/runner/schema/kernel-event-v0.schema.json")
	s, err := jsonschema.NewCompiler().Compile(path)
	testkit.Must(t, err)
	r := rand.New(rand.NewPCG(9, 10))
	for range 1000 {
		e := randomKernel(r)
		e.Kind = ""
		if e.Status == StatusUnproven {
			e.Status = ""
		}
		e.Has &^= KernelHasConnectResult
		if line := e.AppendJSON(nil, testRun); !schemaTakes(s, line) {
			t.Fatalf("the published schema refuses %s", line)
		}
	}
}

// The optional keys of a raw event come in one order: in the parser's table, in what
// is written, and in the JSON Schema.
func TestRawKeysHaveOneOrder(t *testing.T) {
	var table []string
	for _, k := range rawOptional {
		table = append(table, k.name)
		if k.name == "child_pid" {
			table = append(table, "child_tid")
		}
		if k.name == "uid" {
			table = append(table, "gid", "mount_ns")
		}
		if k.name == "ns_pid" {
			table = append(table, "pid_ns")
		}
	}
	name := []byte("x")
	e := RawEvent{Op: OpOpen, Has: 1<<14 - 1, Root: name, Arguments: &Arguments{}, Path: name, UserPath: name, Base: name, Path2: name, UserPath2: name, Base2: name, Interp: name, Addr: name,
		Source: RawSources[0], Hook: RawHooks[0], FileType: RawFileTypes[0], Marks: 1}
	f, _ := FormOf(SchemaRawEvent)
	var doc struct{ Properties json.RawMessage }
	testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
	for what, b := range map[string][]byte{"written": e.AppendJSON(nil, testRun), "the schema's": doc.Properties} {
		var keys []string
		for _, m := range members(t, b) {
			keys = append(keys, m.key)
		}
		if _, optional, _ := cutAfter(keys, "cpu_seq"); !slices.Equal(optional, table) {
			t.Errorf("%s keys are\n%q, the parser's\n%q", what, optional, table)
		}
	}
}

// cutAfter cuts a list after its element at.
func cutAfter(list []string, at string) (before, after []string, found bool) {
	i := slices.Index(list, at)
	return list[:i+1], list[i+1:], i >= 0
}

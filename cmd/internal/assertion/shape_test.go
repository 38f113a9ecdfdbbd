package assertion

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// documents are small ones, of a record with two kernel lines.
func documents() Documents {
	d := Documents{}
	for key, text := range map[string]string{
		"run":       `{"run_id":"r","success":true,"exit_code":0,"command":["a"]}`,
		"kernel":    `[{"seq":0,"pid":1,"kind":"exec","value":"/bin/a"},{"seq":1,"pid":1,"kind":"openat","value":"/b","status":"error"}]`,
		"policy":    `[{"tool":"t","decision":"allow"}]`,
		"sdk":       `[]`,
		"processes": `[{"pid":1,"execs":["/bin/a"],"events":2}]`,
		"effects":   `{"read":["/b"]}`,
		"filtered":  `{"some-rule":["/c"]}`,
		"counts":    `{"lines":{"layers/kernel.ndjson":2},"kinds":{"exec":1},"statuses":{"error":1},"refused":0}`,
		"health":    `{"kernel_layer":"complete","notes":[],"redaction":{"x":1}}`,
		"surface":   `{"filesystem_paths":["/b"],"process_execs":["/bin/a"]}`,
		"report":    `{"status":"clean","bindings":[{"tool_call_id":"c","window":{"start":"s","end":"e"}}]}`,
		"manifest":  `{"files":{"a":{"path":"a","sha256":"sha256:0","bytes":1}}}`,
	} {
		d[key] = Document{value: json.RawMessage(text)}
	}
	return d
}

// TestUnknownKeysAtDepth: a key that no document has there is refused wherever it is read, with the place and
// the nearest key, before the program runs.
func TestUnknownKeysAtDepth(t *testing.T) {
	for text, want := range map[string]string{
		`all(.kernel[]; .vaule == null)`:                          ".vaule in .kernel[], did you mean .value?",
		`[.kernel[].vaule] | length == 2`:                         ".vaule in .kernel[], did you mean .value?",
		`[.kernel[].vaule?] | length == 2`:                        ".vaule in .kernel[], did you mean .value?",
		`.kernel | map(.vaule) | length == 2`:                     ".vaule in .kernel[]",
		`.kernel | map(select(.vaule == "/b")) == []`:             ".vaule in .kernel[]",
		`[.kernel[] | select(.vaule == "/b")] == []`:              ".vaule in .kernel[]",
		`any(.kernel[] | select(.kind == "exec"); .pdi == 1)`:     ".pdi in .kernel[], did you mean .pid?",
		`.kernel[0].vaule == null`:                                ".vaule in .kernel[]",
		`.kernel[0:1] | .[0] | .vaule == null`:                    ".vaule in .kernel[]",
		`.kernel as $k | $k[0].vaule == null`:                     ".vaule in .kernel[]",
		`.kernel[0] as {vaule: $v} | $v == null`:                  ".vaule in .kernel[]",
		`.kernel[0] | {vaule} | .vaule == null`:                   ".vaule in .kernel[]",
		`[.kernel | sort_by(.vaule)[] | .pid] == [1]`:             ".vaule in .kernel[]",
		`.kernel | group_by(.pid) | map(.[0].vaule) == []`:        ".vaule in .kernel[]",
		`.kernel | max_by(.seq).vaule == null`:                    ".vaule in .kernel[]",
		`first(.kernel[]).vaule == null`:                          ".vaule in .kernel[]",
		`[limit(1; .kernel[])] | .[0].vaule == null`:              ".vaule in .kernel[]",
		`(.kernel | first | .vaule) == null`:                      ".vaule in .kernel[]",
		`[.kernel[], .policy[]] | all(.vaule == null)`:            ".vaule in .kernel[]",
		`if true then .kernel[0] else .policy[0] end | .x | not`:  ".x in .kernel[]",
		`reduce .kernel[] as $e (0; . + ($e.vaule | length)) > 9`: ".vaule in .kernel[]",
		`.kernel.value == null`:                                   ".value in .kernel, which is an array: write .kernel[]",
		`.run.succes | not`:                                       ".succes in .run, did you mean .success?",
		`.run["succes"] | not`:                                    ".succes in .run",
		`.run | .["succes"] == null`:                              ".succes in .run",
		`.run | ."succes" == null`:                                ".succes in .run",
		`.["run"]["succes"] == null`:                              ".succes in .run",
		`.run as {succes: $s} | $s | not`:                         ".succes in .run",
		`(.run.succes // true)`:                                   ".succes in .run",
		`try .run.succes catch true`:                              ".succes in .run",
		`.health.kernel == null`:                                  ".kernel in .health, did you mean .kernel_layer?",
		`.report.bindings[].window.strat == null`:                 ".strat in .report.bindings[].window, did you mean .start?",
		`.manifest.files[].sha265 == null`:                        ".sha265 in .manifest.files[], did you mean .sha256?",
		`.manifest.files["a"].sha265 == null`:                     ".sha265 in .manifest.files[]",
		`.manifest["x-asay"] == null`:                             `."x-asay" in .manifest, did you mean ."x-assay"?; the keys there are .files .run_id .schema ."x-assay"`,
		`.effects.raed | not`:                                     ".raed in .effects, did you mean .read?",
		`.counts.refuesd == null`:                                 ".refuesd in .counts, did you mean .refused?",
		`.counts.lines["kernel.ndjson"] == null`:                  `."kernel.ndjson" in .counts.lines; the keys there are ."events.ndjson" ."layers/clock.ndjson"`,
		`.processes[].exec == null`:                               ".exec in .processes[], did you mean .execs?",
		`.surface.files == null`:                                  ".files in .surface",
		`.kernl == []`:                                            "there is no .kernl, did you mean .kernel?; the keys are .counts",
	} {
		_, err := Parse(text)
		if unknown := new(jq.UnknownKeyError); !errors.As(err, &unknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", text, err, want)
		}
	}
}

// TestUnknownKeysOfRuns: where only a run can tell that there is no such key, the program does not hold.
func TestUnknownKeysOfRuns(t *testing.T) {
	for _, text := range []string{
		`def bad: .vaule == "/b"; [.kernel[] | select(bad)] == []`, `[.kernel | .. | .vaule?] | map(select(. != null)) == []`, `[.. | objects | .vaule?] | true`,
		`.kernel | to_entries | all(.value.vaule == null)`, `[.kernel, 1] | .[0][0].vaule == null`, `{a: .kernel[0]} | .a.vaule == null`,
		`def f($x): $x.vaule == null; f(.kernel[0])`, `def row: {vaule: .vaule}; [.kernel[] | row] | all(.vaule == null)`,
		`try (.kernel | flatten | .[0].vaule) catch true`, `del(.kernel[0].vaule) | true`, `[paths(objects) as $p | getpath($p) | .vaule?] | length > 0`,
	} {
		a, err := Parse(text)
		if unknown := new(jq.UnknownKeyError); errors.As(err, &unknown) {
			continue
		}
		testkit.Must(t, err)
		answer := a.Check(t.Context(), documents(), nil)
		if a.Close(); !strings.Contains(answer.Fault, "there is no .vaule") && !strings.Contains(answer.Fault, "there is no .kernl") {
			t.Errorf("%s: %+v", text, answer)
		}
	}
}

// TestValidRules: a rule that reads only keys that can be there, or are free, is never refused.
func TestValidRules(t *testing.T) {
	for _, text := range []string{
		`all(.kernel[]; .value | tostring | contains("/.ssh/") | not)`, `.health.redaction.anything == null`, `.filtered["no-rule"] == null`, `.filtered.any == null`,
		`.manifest.files["b"] == null`, `.counts.kinds.sendto == null`, `.kernel | to_entries | map(.key) == [0,1]`, `.run | to_entries | map(.key) | index("success") != null`,
		`.run | with_entries(select(.key == "success")) | .success`, `[.kernel[] | {v: .value, n: .pid}] | map(.v) == ["/bin/a","/b"]`, `.kernel | map(.len = (.value|length)) | max_by(.len).len == 6`,
		`.kernel | map(. + {len: (.value|length)}) | all(.len > 1)`, `[.kernel[], .policy[]] | map(.tool // .value) == ["/bin/a","/b","t"]`, `[.. | objects | .sha256? // empty] == ["sha256:0"]`,
		`[.. | .sha256?] | length > 1`, `[.kernel[], {x: 1}] | map(.x? // empty) == [1]`, `.kernel | group_by(.pid) | map({pid: .[0].pid, n: length}) | .[0].n == 2`,
		`reduce .kernel[] as $e ({}; .[$e.kind] += 1) | .exec == 1`, `.kernel[0] | has("vaule") | not`, `(.run | keys) - ["command"] | length > 1`, `def f: .tool; any(.kernel[], .policy[]; f == "t")`,
		`(.counts.kinds.exec // 0) == 1`, `[.kernel[].value | {a: .} | .a] | length == 2`, `.kernel | INDEX(.kind) | .exec.pid == 1`, `[.processes[] | select(.execs | any(. == "/bin/a")) | .pid] == [1]`,
		`.kernel[0] * {z: 1} | .z == 1`, `(.kernel + [{w: 1}]) | .[2].w == 1`, `[foreach .kernel[] as $e ({n: 0}; .n += 1; .n)] == [1,2]`, `.kernel[0].value as $v | .effects.read | index($v) == null`,
		`first(.kernel[] | select(.kind == "x")) // {made: 1} | .made == 1`, `label $out | .kernel[] | if .pid == 1 then true, break $out else false end`, `.kernel[0].kind |= "x" | .kernel[0].kind == "x"`,
		`[.kernel[], {"x": 1}] | map(.x? // empty) == [1]`, `true as $mark | [.kernel[] | if .kind == "exec" then . + {$mark} else . end | select(.mark)] | length == 1`,
		`[.kernel[] | if .kind == "exec" then .mark = true else . end | select(.mark)] | length == 1`, `[.kernel[] | if .kind == "exec" then .mark |= 1 else . end] | map(select(.mark)) | length == 1`,
		`[.kernel[] | if .kind == "exec" then setpath(["mark"]; true) else . end] | map(select(.mark)) | length == 1`, `"mark" as $k | .kernel | map(if .kind == "exec" then .[$k] = 1 else . end | select(.mark)) | length == 1`,
		`[recurse | .value?] | length > 2`, `. as $d | 1 | try error($d) catch (.kernel | length == 2)`, `. as $d | .run | try ($d | error) catch (.kernel | length == 2)`,
		`[.kernel[] | .new |= 1 | .new] == [1,1]`, `del(.kernel[0].status) | .kernel | length == 2`, `[.kernel | recurse | objects | .pid] == [1,1]`, `.kernel | map(.cgroup_id) | unique == [null]`,
		`input_line_number? // true`, `([.kernel[] | [.kind, .value]] | map({k: .[0], v: .[1]}) | map(.k)) == ["exec","openat"]`, `[.kernel[] | tojson | fromjson | .anything] == [null,null]`,
	} {
		a, err := Parse(text)
		if err != nil {
			if !strings.Contains(err.Error(), "is not available") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		answer := a.Check(t.Context(), documents(), nil)
		if a.Close(); answer.Fault != "" {
			t.Errorf("%s: %+v", text, answer)
		}
	}
}

// TestMeantKeys: the place and the keys that a message names are what a program can say.
func TestMeantKeys(t *testing.T) {
	said := regexp.MustCompile(`in (\..+), did you mean (\..+?)\?; the keys there are (\..+)$`)
	for _, text := range []string{`.manifest["x-asay"]`, `.counts.lines["layers/kernel.ndjsn"]`, `.effects.raed`, `.manifest.files[].sha265`} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		m := said.FindStringSubmatch(err.Error())
		if m == nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, key := range append(strings.Fields(m[3]), m[2]) {
			if _, err := Parse(m[1] + key); err != nil {
				t.Errorf("%s: %s%s: %v", text, m[1], key, err)
			}
		}
	}
}

// TestShapeHoldsDocuments: what is made here has no key that the shape does not have.
func TestShapeHoldsDocuments(t *testing.T) {
	c := Collect(nil)
	for _, e := range schemas.EventTypes {
		c.effects.kernel(&schemas.KernelEvent{EventType: e.ID, Value: []byte("x")})
	}
	var made map[string]any
	testkit.Must(t, json.Unmarshal(c.effects.document(nil).value, &made))
	for verb := range made {
		if _, has := shape().Keys[keyEffects].Keys[verb]; !has {
			t.Errorf("the shape of .effects has no %s", verb)
		}
	}
}

package main

import (
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const (
	aTasks = `{"suite_id":"s","world":"run-os","tasks":[{"task_id":"t","assertions":{"capabilities_required":["os.process.run_capture"],"requires_files":["b","a"],"expected_error_code_u32":1},
 "cases":[{"name":"c","requires_files":["a"],"input_b64":"AA==","expected_b64":"AAEAAAA="}]}]}`
	aSmoke = `{"schema_version":"x07.smoke_suite@0.1.0","suite_id":"s","world":"run-os-sandboxed","program_x07json":"p","policy_json":"q","notes":["n"],"cases":[{"name":"c","input_b64":"","expected_b64":""}]}`
)

// TestSuiteForms: what the two forms say, and what is refused.
func TestSuiteForms(t *testing.T) {
	s, err := parseSuite([]byte(aTasks))
	testkit.Must(t, err)
	if c := s.cases[0]; !slices.Equal(c.requires, []string{"a", "b"}) || c.task != "t" || string(c.input) != "\x00" || len(c.expected) != 5 {
		t.Errorf("%+v", c)
	}
	s, err = parseSuite([]byte(aSmoke))
	testkit.Must(t, err)
	if s.program != "p" || s.policy != "q" || len(s.cases) != 1 {
		t.Errorf("%+v", s)
	}
	for _, x := range []struct{ from, to, want string }{
		{`"world":"run-os"`, `"world":""`, "no world"}, {`"suite_id":"s"`, `"suite_id":""`, "no suite_id"}, {`"AA=="`, `"AA"`, "illegal base64"},
		{`"AA=="`, `"AB=="`, "illegal base64"}, {`"name":"c"`, `"name":""`, "expected name"}, {`run_capture"`, `shell"`, "needs"}, {`"world":"run-os"`, `"world":"run-os","world":"run-os"`, "world"},
		{`"task_id":"t"`, `"task":"t"`, "task"}, {`"requires_files":["b","a"]`, `"policy_required":true`, "requires a policy"},
		{`"cases":[{"name":"c","requires_files":["a"],"input_b64":"AA==","expected_b64":"AAEAAAA="}]`, `"cases":[]`, "no cases"},
	} {
		text := strings.Replace(aTasks, x.from, x.to, 1)
		if _, err := parseSuite([]byte(text)); text == aTasks || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, expected %q", x.to, err, x.want)
		}
	}
	for _, x := range []struct{ from, to, want string }{
		{`@0.1.0`, `@0.2.0`, "schema_version is"}, {`"policy_json":"q",`, ``, "policy_json"}, {`"run-os-sandboxed"`, `"run-os"`, "policy_json"}, {`"program_x07json":"p",`, ``, "no program_x07json"},
	} {
		text := strings.Replace(aSmoke, x.from, x.to, 1)
		if _, err := parseSuite([]byte(text)); text == aSmoke || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, expected %q", x.to, err, x.want)
		}
	}
}

// TestSuitesOfOthers reads the suites of the other implementation.
func TestSuitesOfOthers(t *testing.T) {
	for _, in := range []string{"ci/suites/smoke/*.json", "seed/benchmarks/*/*.json"} {
		list, err := filepath.Glob(filepath.Join(testkit.Corpora(t, "x07"), in))
		testkit.Must(t, err)
		n := 0
		for _, file := range list {
			if _, err := parseSuite(testkit.Read(t, file)); err != nil {
				t.Error(file, err)
			}
			n++
		}
		if n == 0 {
			t.Error("nothing in", in)
		}
	}
}

// FuzzSuite: no bytes end the reader, and what a suite says is what was written.
func FuzzSuite(f *testing.F) {
	f.Add([]byte(aTasks))
	f.Add([]byte(aSmoke))
	f.Add([]byte(`{"schema_version":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSuite(b)
		if err != nil {
			return
		}
		if s.id == "" || s.world == "" || len(s.cases) == 0 {
			t.Fatalf("%+v", s)
		}
		text := string(b)
		for _, c := range s.cases {
			if c.name == "" || len(c.requires) > 0 && s.world == worldSandboxed || !slices.IsSorted(c.requires) {
				t.Errorf("%+v", c)
			}
			if !strings.Contains(text, `\`) && !strings.Contains(text, base64.StdEncoding.EncodeToString(c.input)) {
				t.Errorf("the input %x is not in the suite", c.input)
			}
		}
		if _, err := schemas.Marshal(s.id); err != nil {
			t.Error(err)
		}
	})
}

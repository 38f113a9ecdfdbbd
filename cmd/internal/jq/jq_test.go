package jq

import "testing"

func TestCompile(t *testing.T) {
	for _, ok := range []string{".", ".a == 1", `.value | test("x")`, "def f: 1; f", "[limit(3; repeat(1))]"} {
		if _, err := Compile(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".a ==", "input", "[inputs]", "env.HOME", "$ENV.HOME", "now", "debug", "halt",
		`import "m" as m; .`, "def f: input; f", `.a | (if true then env else . end)`, "try halt catch .",
		"reduce input as $x (0; .)", `"\(env)"`, "undefined_function"} {
		if _, err := Compile(bad); err == nil && bad != "" {
			t.Errorf("%s was accepted", bad)
		}
	}
}

package cmd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestPipelines runs testdata/scripts: the tools as real processes in real pipes.
func TestPipelines(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/scripts",
		UpdateScripts:       testkit.Update(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+filepath.Join(root, "scripts")+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("ROOT", root)
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "jq": jq, "sealed": sealed,
		},
	})
}

func condition(cond string) (bool, error) {
	switch cond {
	case "bpf":
		err := probe()
		if err != nil && os.Getenv("RUNNER_REQUIRE_BPF") == "1" {
			return false, fmt.Errorf("kernel capture must be tested here: %w", err)
		}
		return err == nil, nil
	case "root":
		return os.Geteuid() == 0, nil
	case "cgroup2":
		b, err := os.ReadFile("/proc/self/mountinfo")
		return err == nil && strings.Contains(string(b), " - cgroup2 "), nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// exits runs a program and expects this exit code: exits N PROGRAM [ARG…].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit %d, expected %d", code, want)
	}
}

// jq expects every value of a jq program to be true: jq EXPR FILE. The program's input is
// the array of the JSON values in the file.
func jq(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: jq EXPR FILE")
	}
	query, err := gojq.Parse(args[0])
	ts.Check(err)
	var values []any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
		values = append(values, v)
	}
	seen := false
	for it := query.Run(values); ; {
		v, ok := it.Next()
		if !ok {
			break
		}
		if err, ok := v.(error); ok {
			ts.Fatalf("%s: %v", args[0], err)
		}
		if (v == true) == neg {
			ts.Fatalf("%s gives %v", args[0], v)
		}
		seen = true
	}
	if !seen {
		ts.Fatalf("%s gives nothing", args[0])
	}
}

// sealed expects a whole stream: sealed NAME FILE.
func sealed(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sealed NAME FILE")
	}
	r, err := stream.NewReader(strings.NewReader(ts.ReadFile(args[1])), args[1], args[0])
	for err == nil {
		_, err = r.Next()
	}
	if (err == io.EOF) == neg {
		ts.Fatalf("%s: %v", args[1], err)
	}
}

package main

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Worlds.
const (
	worldOpen      = "run-os"
	worldSandboxed = "run-os-sandboxed"
)

const (
	smokeSchema = "x07.smoke_suite@0.1.0"
	maxSuite    = 64 << 20
)

// suite is a file of cases, of either format.
type suite struct {
	file, id, world string
	program, policy string // of the later format; "" without them
	cases           []testCase
}

type testCase struct {
	task, name      string
	input, expected []byte
	requires        []string // files, sorted and each once; none outside of run-os
	code            uint32   // that the answer must have; 0: as expected says
	preflight       uint32   // that the files must give; 0: they must be there
}

// The two formats. A document has the keys of one of them.
type (
	caseJSON struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Requires    []string `json:"requires_files"`
		Input       *string  `json:"input_b64"`
		Expected    *string  `json:"expected_b64"`
	}
	assertionsJSON struct {
		Capabilities   []string `json:"capabilities_required"`
		Requires       []string `json:"requires_files"`
		PolicyRequired bool     `json:"policy_required"`
		Code           uint32   `json:"expected_error_code_u32"`
		Preflight      uint32   `json:"expect_runner_error_code_u32"`
	}
	taskJSON struct {
		ID          string         `json:"task_id"`
		Description string         `json:"description"`
		Assertions  assertionsJSON `json:"assertions"`
		Cases       []caseJSON     `json:"cases"`
	}
	tasksJSON struct {
		ID    string     `json:"suite_id"`
		World string     `json:"world"`
		Tasks []taskJSON `json:"tasks"`
	}
	smokeJSON struct {
		Schema  string     `json:"schema_version"`
		ID      string     `json:"suite_id"`
		World   string     `json:"world"`
		Program string     `json:"program_x07json"`
		Policy  string     `json:"policy_json"`
		Notes   []string   `json:"notes"`
		Cases   []caseJSON `json:"cases"`
	}
)

// capability is the only thing that a program that speaks the frame can be asked for.
const capability = "os.process.run_capture"

func openSuite(file string) (*suite, error) {
	b, err := tool.ReadFile(file, maxSuite)
	if err != nil {
		return nil, err
	}
	s, err := parseSuite(b)
	if err != nil {
		return nil, tool.Fail(tool.ExitInput, fmt.Errorf("%s: %w", schemas.Text(file), err), "a suite has suite_id, world and tasks, or schema_version "+smokeSchema+", suite_id, world, program_x07json and cases")
	}
	s.file = file
	return s, nil
}

func parseSuite(b []byte) (*suite, error) {
	var kind struct {
		Schema *string `json:"schema_version"`
	}
	if err := schemas.UnmarshalOpen(b, &kind); err != nil {
		return nil, err
	}
	var s *suite
	var err error
	if kind.Schema != nil {
		s, err = parseSmoke(b)
	} else {
		s, err = parseTasks(b)
	}
	switch {
	case err != nil:
		return nil, err
	case s.id == "":
		return nil, fmt.Errorf("no suite_id")
	case s.world == "":
		return nil, fmt.Errorf("no world")
	case len(s.cases) == 0:
		return nil, fmt.Errorf("no cases")
	case s.world == worldSandboxed:
		for i := range s.cases { // whether a file exists must not show
			s.cases[i].requires = nil
		}
	}
	return s, nil
}

func parseTasks(b []byte) (*suite, error) {
	var j tasksJSON
	if err := schemas.Unmarshal(b, &j); err != nil {
		return nil, err
	}
	s := &suite{id: j.ID, world: j.World}
	for _, t := range j.Tasks {
		for _, c := range t.Assertions.Capabilities {
			if c != capability {
				return nil, fmt.Errorf("task %q needs %q, expected only %s", t.ID, c, capability)
			}
		}
		if t.Assertions.PolicyRequired && j.World != worldSandboxed {
			return nil, fmt.Errorf("task %q requires a policy, and the world %q has none", t.ID, j.World)
		}
		for _, c := range t.Cases {
			x, err := c.parse(t.ID)
			if err != nil {
				return nil, err
			}
			x.requires = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Assertions.Requires, c.Requires))))
			x.code, x.preflight = t.Assertions.Code, t.Assertions.Preflight
			s.cases = append(s.cases, x)
		}
	}
	return s, nil
}

func parseSmoke(b []byte) (*suite, error) {
	var j smokeJSON
	if err := schemas.Unmarshal(b, &j); err != nil {
		return nil, err
	}
	switch {
	case j.Schema != smokeSchema:
		return nil, fmt.Errorf("schema_version is %.100q, expected %s", j.Schema, smokeSchema)
	case j.Program == "":
		return nil, fmt.Errorf("no program_x07json")
	case (j.World == worldSandboxed) != (j.Policy != ""):
		return nil, fmt.Errorf("policy_json is there exactly in the world %s", worldSandboxed)
	}
	s := &suite{id: j.ID, world: j.World, program: j.Program, policy: j.Policy}
	for _, c := range j.Cases {
		x, err := c.parse("")
		if err != nil {
			return nil, err
		}
		x.requires = slices.Compact(slices.Sorted(slices.Values(c.Requires)))
		s.cases = append(s.cases, x)
	}
	return s, nil
}

func (c *caseJSON) parse(task string) (x testCase, err error) {
	if c.Name == "" || c.Input == nil || c.Expected == nil {
		return x, fmt.Errorf("case %q: expected name, input_b64 and expected_b64", c.Name)
	}
	x = testCase{task: task, name: c.Name}
	if x.input, err = base64.StdEncoding.Strict().DecodeString(*c.Input); err == nil {
		x.expected, err = base64.StdEncoding.Strict().DecodeString(*c.Expected)
	}
	if err != nil {
		return x, fmt.Errorf("case %q: %w", c.Name, err)
	}
	return x, nil
}

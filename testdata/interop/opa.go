package main

import (
	"fmt"
	"os"
	"os/exec"
)

// opa lets OPA compile the sample policies and evaluate them, which a test of the package that runs them
// here compares. The arguments go to the test.
func (c *check) opa(args ...string) error {
	opa, err := c.command(opaCommand, opaVersion)
	if err != nil {
		return fmt.Errorf("OPA %s cannot be had: %w", opaVersion, err)
	}
	test := exec.Command("go", append([]string{"test", "-count=1", "-run", "^TestOPA$", "-v", "./cmd/internal/rego"}, args...)...)
	test.Env, test.Stdout, test.Stderr = append(os.Environ(), "RUNNER_OPA="+opa), os.Stderr, os.Stderr
	if err := test.Run(); err != nil {
		return fmt.Errorf("the policies that OPA %s compiles and evaluates: %w", opaVersion, err)
	}
	fmt.Printf("interop: OPA %s makes the same modules and gives the same decisions\n", opaVersion)
	return nil
}

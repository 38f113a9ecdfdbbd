package main

import (
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// outside refuses a directory of the tool's own in the one that is changed, before it is made there.
func outside(flag, dir, to string) error {
	within, err := tool.Within(dir, to)
	if err != nil || !within {
		return err
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("--%s %s is in --to %s: what is committed could change it", flag, schemas.Text(dir), schemas.Text(to)), "take a directory elsewhere")
}

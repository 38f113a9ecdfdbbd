package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// outside refuses a directory of the tool's own in the one that is changed, before it is made there.
func outside(flag, dir, to string) error {
	top, err := os.Stat(to)
	if err != nil {
		return tool.CannotRead(to, err)
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return tool.CannotRead(dir, err)
	}
	for real, err := filepath.EvalSymlinks(at); ; real, err = filepath.EvalSymlinks(at) {
		if err == nil {
			at = real
			break
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at) // it is to be made
	}
	for ; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, top) {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("--%s %s is in --to %s: what is committed could change it", flag, schemas.Text(dir), schemas.Text(to)), "take a directory elsewhere")
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

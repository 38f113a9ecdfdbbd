package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Codes of files that a case requires and that are not as they must be.
const (
	missingFile   = 9001
	notExecutable = 9002
	notRegular    = 9003
)

// runnerError says why nothing was run. Its texts are fixed.
type runnerError struct {
	Code         string   `json:"code"`
	CodeU32      uint32   `json:"code_u32"`
	MissingPaths []string `json:"missing_paths"`
	Message      string   `json:"message"`
	Hint         string   `json:"hint"`
	HintCmd      []string `json:"hint_cmd,omitzero"`
}

// helpers is what makes the files that suites require.
const helpers = "./scripts/build_os_helpers.sh"

// preflight looks at the files that a case requires. The first kind of fault is reported, with all files that have it.
func preflight(root string, requires []string) *runnerError {
	var missing, irregular, plain []string
	for _, name := range requires {
		info, err := os.Stat(filepath.Join(root, name))
		switch {
		case err != nil:
			missing = append(missing, name)
		case !info.Mode().IsRegular():
			irregular = append(irregular, name)
		case info.Mode().Perm()&0o111 == 0:
			plain = append(plain, name)
		}
	}
	for _, x := range []struct {
		paths []string
		e     runnerError
	}{
		{missing, runnerError{Code: "MISSING_REQUIRED_FILE", CodeU32: missingFile, Message: "Required file(s) missing: ", Hint: "Run " + helpers, HintCmd: []string{helpers}}},
		{irregular, runnerError{Code: "REQUIRED_FILE_NOT_REGULAR", CodeU32: notRegular, Message: "Required path(s) not regular files: ", Hint: "Fix deps layout; expected regular executable file(s)."}},
		{plain, runnerError{Code: "REQUIRED_FILE_NOT_EXECUTABLE", CodeU32: notExecutable, Message: "Required file(s) not executable: ", Hint: "chmod +x the helper or rerun " + helpers, HintCmd: []string{helpers}}},
	} {
		if len(x.paths) > 0 {
			e := x.e
			e.MissingPaths = slices.Sorted(slices.Values(x.paths))
			e.Message += strings.Join(e.MissingPaths, ", ")
			return &e
		}
	}
	return nil
}

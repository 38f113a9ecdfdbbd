package decisions

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Variable names the log of a run in the environment.
const Variable = schemas.EnvPolicyLog

// Target is where a log is.
type Target struct {
	Name string // as it was given, for messages; "" is none
	file string // "" if it is the descriptor fd
	fd   int
}

// ParseTarget reads the value of --log, which is FILE or fd:N. If the flag was not given, the environment has the value.
func ParseTarget(value string, given bool) (t Target, err error) {
	if t.Name = value; !given {
		t.Name = os.Getenv(Variable)
	}
	if t.Name == "" && given {
		return t, tool.Missing("--log FILE", "--log FILE or --log fd:N, or set "+Variable)
	}
	if t.Name == "-" {
		return t, tool.BadValue("log", "-", "a file: standard output carries the protocol; for a file with this name write ./-")
	}
	t.file = t.Name
	if n, ok := strings.CutPrefix(t.Name, "fd:"); ok {
		fd, err := strconv.ParseUint(n, 10, 20)
		if err != nil || fd <= 1 {
			return t, tool.BadValue("log", t.Name, "the number of a descriptor above 1; for a file with this name write ./"+t.Name)
		}
		t.file, t.fd = "", int(fd)
	}
	return t, nil
}

// FileTarget is the log in a file.
func FileTarget(name string) Target { return Target{Name: name, file: name} }

// Open opens the log for appending. An error has the code, and the hint says what to type.
func (t Target) Open(code int, hint string) (File, error) {
	f, err := Open(t.file, t.fd)
	switch {
	case errors.Is(err, errOther): // a wrong name, like an output that exists
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("%s: %w", t.Name, err), "give another name, or move the file away")
	case err != nil:
		hints := []string{hint}
		if t.file != "" {
			hints = append(tool.PlaceHints(t.file, err), hint)
		}
		return nil, tool.Fail(code, fmt.Errorf("%s: opening the decision log: %w", t.Name, err), hints...)
	}
	return f, nil
}

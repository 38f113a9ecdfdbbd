package schemas_test

import (
	"bytes"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// whatToDo is what somebody who meets an unknown call must do.
const whatToDo = "schemas/calls_table.go does not have it: give it the operation that tells it, the blind spot that it belongs to, " +
	"or the row of what a record is not about; then go test ./schemas -update"

// TestEveryCallIsCovered: the table has every system call whose number the Go project knows,
// on each architecture that programs of a run can be of.
func TestEveryCallIsCovered(t *testing.T) {
	sys, err := build.Import("golang.org/x/sys/unix", ".", build.FindOnly)
	testkit.Must(t, err)
	for _, arch := range []string{"amd64", "386", "arm64", "arm"} {
		n := 0
		for _, name := range callNumbers(t, filepath.Join(sys.Dir, "zsysnum_linux_"+arch+".go"), `\bSYS_([A-Z0-9_]+)\s`) {
			n++
			if _, ok := schemas.CanonicalCall(name); !ok {
				t.Errorf("%s has the system call %s: %s", arch, name, whatToDo)
			}
		}
		if n < 300 {
			t.Errorf("found only %d system calls of %s", n, arch)
		}
	}
	files, err := filepath.Glob("/usr/include/*/asm/unistd_*.h")
	testkit.Must(t, err)
	for _, f := range files { // of the machine, where its headers are installed
		for _, name := range callNumbers(t, f, `(?m)^#define __NR_([a-z0-9_]+) `) {
			if _, ok := schemas.CanonicalCall(name); !ok {
				t.Errorf("%s has the system call %s: %s", f, name, whatToDo)
			}
		}
	}
}

func callNumbers(t *testing.T, file, form string) (names []string) {
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	for _, m := range regexp.MustCompile(form).FindAllSubmatch(text, -1) {
		names = append(names, string(bytes.ToLower(m[1])))
	}
	return names
}

// TestCallTable: each call is in one row, but those that make several kinds of lines; rows without
// an operation say why; blind spots are those of the note, and each operation names its calls.
func TestCallTable(t *testing.T) {
	seen := map[string]string{}
	told := map[string]bool{}
	for _, c := range schemas.CallTable {
		told[c.Blind] = true
		if c.Op == "" && c.Blind == "" && c.Why == "" {
			t.Errorf("the row of %.40s says nothing", c.Calls+c.Opcodes)
		}
		if c.Blind != "" && !slices.Contains(schemas.BlindSpots[:], c.Blind) {
			t.Errorf("blind spot %q is not in the list of every run", c.Blind)
		}
		for _, name := range strings.Fields(c.Calls + " " + c.Opcodes + " " + c.Ioctls) {
			if before, twice := seen[name]; twice && before == "" {
				t.Errorf("%s is in two rows", name)
			}
			seen[name] = c.Op
		}
		for _, o := range schemas.Operations {
			for _, name := range strings.Fields(c.Calls) {
				if o.Name == c.Op && o.First != 0 && !slices.Contains(regexp.MustCompile(`\w+`).FindAllString(o.Calls+" "+o.Name, -1), name) {
					t.Errorf("operation %s does not say that %s reports it", o.Name, name)
				}
			}
		}
	}
	for _, b := range schemas.BlindSpots {
		if !told[b] && b != schemas.BlindSymlinks {
			t.Errorf("no call belongs to the blind spot %q", b)
		}
	}
}

// calls is the table of all calls: lines first, then blind spots, then the others.
func calls() table {
	t := table{{"recorded as", "system calls", "io_uring operations", "ioctls and their like"}}
	for _, c := range schemas.CallTable {
		says := "nothing: " + c.Why
		switch {
		case c.Op != "":
			says = fmt.Sprintf("[%s](#operations)", code(c.Op))
		case c.Blind != "":
			says = "blind spot *" + c.Blind + "*"
			if c.Why != "" {
				says += ": " + c.Why
			}
		}
		t = append(t, []string{says, c.Calls, c.Opcodes, c.Ioctls})
	}
	return t
}

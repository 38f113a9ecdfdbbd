// Package wrap lets wrappers know of each other. Each sets something up and runs the rest of its command line; only the last one
// starts the program. What takes rights away has to wait for that: a wrapper needs the rights that the program must not have.
package wrap

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Names are the wrappers.
var Names = [...]string{"runner-box", "runner-net", "runner-clock"}

// variable has the State, from one wrapper to the next. The program does not get it.
const variable = "RUNNER_WRAPPERS"

// State is what wrappers further out leave to the last one.
type State struct {
	Boxed  bool        `json:"boxed,omitempty"`  // the program is in a box
	Netted bool        `json:"netted,omitempty"` // it has a network of its own
	User   *child.User `json:"user,omitempty"`   // who it runs as; nil is who we are

	// In a measured run: descriptors of the cgroup that the program is started in, and of the pipe on which its end is
	// reported. The wrappers and their own processes are outside of that cgroup.
	Cgroup  int           `json:"cgroup,omitempty"`
	Control int           `json:"control,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"` // how long what outlives the program may go on
	// Record is a descriptor of the directory that takes the records of all wrappers, and RunID the run's.
	Record int    `json:"record,omitempty"`
	RunID  string `json:"run_id,omitempty"`
	// Ticks is a descriptor of the record that runner-clock is to replay, which a box would not show: its flag is --replay with
	// the path of this descriptor.
	Ticks int `json:"ticks,omitempty"`
	// Logs is the directory that runner-exec collects the logs of tool calls in, which a box shows too; "" if it collects none.
	Logs string `json:"logs,omitempty"`
	// Chain is the wrappers up to this one, from the outermost.
	Chain []string `json:"chain,omitempty"`
}

// Take returns the state that came with an environment, and the environment without it.
func Take(env []string) (s State, rest []string, err error) {
	for _, e := range env {
		text, ours := strings.CutPrefix(e, variable+"=")
		if !ours {
			rest = append(rest, e)
			continue
		}
		if e := json.Unmarshal([]byte(text), &s); e != nil { // without it the program would get rights that wrappers took away
			err = tool.Fail(tool.ExitOwn, fmt.Errorf("%s: %w", variable, e), "wrappers set this variable for each other: unset "+variable)
		}
	}
	return s, rest, err
}

// Environ adds the state to the environment of the next wrapper.
func (s State) Environ(env []string) ([]string, error) {
	b, err := json.Marshal(s)
	return append(slices.Clone(env), variable+"="+string(b)), err
}

// Confinement is what the program is started without.
func (s State) Confinement() confine.Confinement {
	return confine.Confinement{Boxed: s.Boxed, Netted: s.Netted && !s.Boxed, Switches: s.Boxed && s.User != nil && s.User.UID != 0, Cloned: s.Cgroup > 0}
}

// Descriptors is how many descriptors of ours there are that the program does not get.
func (s State) Descriptors() (n uint64) {
	for _, fd := range s.descriptors() {
		if fd > 0 {
			n++
		}
	}
	return n
}

func (s State) descriptors() []int { return []int{s.Cgroup, s.Control, s.Record, s.Ticks} }

// Join is the state behind one more wrapper, and where that puts its record: the place that was asked for or, in a measured run, the
// directory of runner-exec.
func (s State) Join(wrapper, output string) (State, string, error) {
	if slices.Contains(s.Chain, wrapper) && s.Record > 0 {
		return s, "", tool.Fail(tool.ExitUsage, fmt.Errorf("%s twice: a run has one record of each wrapper", wrapper), "leave one out, or run without runner-exec")
	}
	s.Chain = append(slices.Clone(s.Chain), wrapper)
	if s.Record <= 0 {
		return s, output, nil
	}
	if output != "" {
		return s, "", tool.Fail(tool.ExitUsage, fmt.Errorf("-o of %s in a measured run: its record goes into the archive", wrapper), "leave -o out")
	}
	return s, fmt.Sprintf("/proc/self/fd/%d/%s", s.Record, wrapper), nil
}

// Dir is the directory of our own programs, "" if it is not known.
func Dir() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(exe)
}

// Is reports whether a program is a wrapper: the file of that name in dir, and no other one of the same name.
func Is(program, dir string) bool {
	name := filepath.Base(program)
	if dir == "" || !slices.Contains(Names[:], name) {
		return false
	}
	ours, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return false
	}
	given, err := os.Stat(program)
	return err == nil && os.SameFile(ours, given)
}

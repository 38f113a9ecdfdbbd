// Package box runs a program in a box of its own: private mounts, processes, message queues and host name, a read-only
// root, a workspace of which every change is known at the end, empty directories for temporary files, no capabilities. No
// container engine is needed, and no root where the kernel has user namespaces.
//
// Two processes of ours take part. The one outside (Run) waits, and passes signals on. The one inside is process 1 of
// the box: it makes the box, starts the program, and when nothing of the program is left it describes the workspace. If
// one of them ends, the kernel ends all of the box, and there is no record.
package box

import (
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// Workdir is where the workspace is unless another place is asked for.
const Workdir = "/workspace"

// Grace is how long what outlives the program may go on, unless another time is asked for.
const Grace = 10 * time.Second

// Fallbacks: what to do where no overlay can be mounted.
const (
	FallbackFail = "fail"
	FallbackCopy = "copy"
)

// BaseNone is the kind of the base of a workspace that is empty at first.
const BaseNone = "none"

// Config says what box to make. It goes to process 1 as JSON.
type Config struct {
	RunID    string        `json:"run_id"`
	Base     string        `json:"base"` // absolute path of a directory or a tar; "" for none
	Kind     string        `json:"kind"`
	Device   uint64        `json:"device"` // of the base, which must be the same inside
	Inode    uint64        `json:"inode"`
	Foreign  string        `json:"foreign"` // a file of the base that a Rootless box could not change; "" for none
	Workdir  string        `json:"workdir"` // absolute and clean
	Fallback string        `json:"fallback"`
	CPU      *int          `json:"cpu"` // the one that everything in the box runs on; nil: all that we have
	Grace    time.Duration `json:"grace"`
	State    wrap.State    `json:"state"`    // of wrappers further out, and the program's user
	Tools    string        `json:"tools"`    // directory of our own programs
	Rootless bool          `json:"rootless"` // the box has a user namespace of its own
	Narrow   bool          `json:"narrow"`   // it is in a user namespace, its own or one around, which has one user only
	Record   bool          `json:"record"`   // descriptor 4 is the directory for the record
	Pack     bool          `json:"pack"`     // the bytes of the base are part of it
	Command  []string      `json:"command"`
	Env      []string      `json:"env"`
}

// Result is what became of the program.
type Result struct {
	End     child.Ending
	Changes int // names of the workspace that differ from the base
}

// Failure of process 1, as it tells it.
type failure struct {
	Code  int      `json:"code"`
	Text  string   `json:"text"`
	Hints []string `json:"hints"`
}

// report is a message of process 1.
type report struct {
	Failed  *failure `json:"failed,omitempty"`
	Started bool     `json:"started,omitempty"`
	Ended   bool     `json:"ended,omitempty"`
	Exit    int      `json:"exit,omitempty"`
	Signal  int      `json:"signal,omitempty"`
	Done    bool     `json:"done,omitempty"`
	Changes int      `json:"changes,omitempty"`
}

// order is a message to process 1: a signal for the program.
type order struct {
	Signal int `json:"signal"`
}

// missing is the error of something that the machine lacks, with the name of what it is, and what to do.
func missing(code string, err error, hints ...string) error {
	return tool.Fail(tool.ExitCannot, fmt.Errorf("%s: %w", code, err), hints...)
}

// Codes of what a machine lacks.
const (
	NoNamespaces = "box_no_namespaces"
	NoOverlay    = "box_no_overlay"
	NoReadOnly   = "box_no_read_only_root"
	NoProc       = "box_no_proc"
)

// failed is the report of an error.
func failed(err error) report {
	f := failure{Code: tool.ExitOwn, Text: err.Error()}
	var coded *tool.Error
	if errors.As(err, &coded) {
		f.Code, f.Hints = coded.Code, coded.Hints
	}
	return report{Failed: &f}
}

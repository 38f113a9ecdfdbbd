// Package guest is what the lane of kernels and the init of its guests agree on: the plan
// that a guest carries out, and the lines in which checks tell their results.
package guest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
)

// Result says how a check ended.
type Result string

// The results of a check.
const (
	OK          Result = "ok"
	Failed      Result = "failed"
	Unavailable Result = "unavailable" // this kernel does not have it; the detail says why
	Told        Result = "told"        // events were missed, and the record says so with the exact number
)

// Results lists all results, the worst first.
var Results = []Result{Failed, Told, Unavailable, OK}

// Line is one result. A program of checks prints one JSON line for each.
type Line struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Detail string `json:"detail,omitempty"`
	// Cost is what the line says, for the record of what measuring costs.
	Cost *emulated.Row `json:"cost,omitempty"`
}

// Parse reads one line. It is strict: a damaged line must not count as a result.
func Parse(b []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return l, err
	}
	if l.Check == "" || !slices.Contains(Results, l.Result) {
		return l, fmt.Errorf("not a result of a check: %.100q", b)
	}
	l.Detail = strings.Join(strings.Fields(l.Detail), " ") // a result is one line of a table
	return l, nil
}

// Job is one program that a guest runs.
type Job struct {
	Name string   `json:"name"` // prefix of its checks
	Args []string `json:"args"` // the program, in /lane/bin, and its arguments
	// Test says that the program is a compiled Go test: each of its tests is a check.
	Test    bool `json:"test,omitempty"`
	Capture bool `json:"capture,omitempty"` // runs only where runner-capture can observe
	Shell   bool `json:"shell,omitempty"`   // needs /bin/sh
	Seconds int  `json:"seconds"`
	// Cores is how many of the guest's cores are in use, or 0 for all that are.
	Cores int `json:"cores,omitempty"`
}

// Plan is what a guest reads from PlanFile.
type Plan struct {
	Arch    string   `json:"arch"`
	Variant string   `json:"variant"`
	Modules []string `json:"modules"` // in the order in which they are loaded
	Jobs    []Job    `json:"jobs"`
}

// Variants of a guest.
const (
	Plain    = ""
	Realtime = "rt"
	Lockdown = "lockdown" // lockdown=confidentiality on the command line
	NoBTF    = "nobtf"    // the image's BTF is not valid, and /sys/kernel/btf is empty
	CgroupV1 = "cgroup1"  // only hierarchies of version 1 are mounted
)

// Folders and files of a guest.
const (
	Lane     = "/lane"
	PlanFile = Lane + "/plan.json"
	Bin      = Lane + "/bin"
	Modules  = Lane + "/modules"
	Busybox  = Bin + "/busybox" // where a guest has a shell
)

// End is the last line that a guest sends. Without it a guest has not finished.
type End struct {
	End     bool   `json:"end"`
	Lines   int    `json:"lines"`   // lines before this one
	Release string `json:"release"` // uname -r
	Version string `json:"version"` // uname -v
}

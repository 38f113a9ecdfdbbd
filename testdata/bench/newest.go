//go:build linux

package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
)

// same is what the column of the newest kernel says of a row that neither a kernel nor its probes decide, such as what a stage or a proxy
// does in a second.
const same = "same"

//go:embed results
var results embed.FS

// readNewest reads what was recorded of the newest kernel of the lane. Without a record the column is empty.
func readNewest() (emulated.Result, error) {
	folder, err := fs.Sub(results, "results")
	if err != nil {
		return emulated.Result{}, err
	}
	r, err := emulated.Newest(folder)
	if errors.Is(err, emulated.ErrNone) {
		err = nil
	}
	return r, err
}

// withNewest gives rows of a section what was recorded of them, or says that there is nothing to record.
func withNewest(rows []row, kernel bool, r emulated.Result) {
	for i := range rows {
		if x, ok := r.Find(rows[i].what); ok {
			rows[i].newest = x.Value
		} else if !kernel {
			rows[i].newest = same
		}
	}
}

// newestHead is the head of the column.
func newestHead(r emulated.Result) string {
	if r.Kernel == "" {
		return "newest"
	}
	return "on " + r.Kernel
}

// newestLine says where the column is from.
func newestLine(r emulated.Result) string {
	if r.Kernel == "" {
		return "newest: no kernel of the lane is recorded (testdata/bench/results)\n"
	}
	return fmt.Sprintf("%s: recorded on %s by %s on Linux %s, emulated by %s: ratios of CPU time, unless %s says otherwise;\n"+
		"  %q: neither a kernel nor its probes decide the row; empty: nothing is recorded\n",
		newestHead(r), r.Date, r.Version, r.Release, r.Machine, emulated.FileName(r.Kernel), same)
}

// Package emulated is what the lane of kernels and bench agree on: the record of what measuring costs on a kernel that an emulated machine
// runs. Its seconds are counted instructions, so only ratios say something.
package emulated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Row is what such a machine says about one row of bench's table.
type Row struct {
	What   string `json:"what"`  // the name of the row
	Value  string `json:"value"` // a ratio, or a size
	Of     string `json:"of"`    // what the value is, and how much was measured
	Spread string `json:"spread,omitempty"`
}

// Result is what is recorded for one kernel.
type Result struct {
	Kernel  string `json:"kernel"`  // its name in the list of the lane
	Release string `json:"release"` // what uname -r prints there
	Arch    string `json:"arch"`
	Date    string `json:"date"`
	Version string `json:"version"` // of the tools
	Machine string `json:"machine"` // what emulates it
	Rows    []Row  `json:"rows"`
}

// Folder has the results, below the root of the repository.
const Folder = "testdata/bench/results"

const suffix = "-emulated.json"

// FileName is the name of a kernel's result in Folder.
func FileName(kernel string) string { return kernel + suffix }

// Encode is the text of the file.
func (r Result) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(r)
	return b.Bytes()
}

// Find is the row with this name.
func (r Result) Find(what string) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.What == what })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}

// ErrNone says that no kernel has a result.
var ErrNone = errors.New("no result of an emulated machine")

// Newest is the result of the newest kernel in a folder.
func Newest(folder fs.FS) (Result, error) {
	names, err := fs.Glob(folder, "*"+suffix)
	if err != nil {
		return Result{}, err
	}
	if len(names) == 0 {
		return Result{}, ErrNone
	}
	name := slices.MaxFunc(names, func(a, b string) int {
		return Compare(strings.TrimSuffix(a, suffix), strings.TrimSuffix(b, suffix))
	})
	b, err := fs.ReadFile(folder, name)
	if err != nil {
		return Result{}, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var r Result
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%s: %w", path.Base(name), err)
	}
	if FileName(r.Kernel) != name {
		return r, fmt.Errorf("%s: it is the result of kernel %q", name, r.Kernel)
	}
	return r, nil
}

// Compare orders names of kernels by their numbers: 6.9 is before 6.18.
func Compare(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(name string) (all []int) {
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(w)
		all = append(all, n)
	}
	return all
}

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/bench/emulated"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// again records what these tests find missing.
const again = `make test-kernels KERNELS=%s LANE="-job cost -update" records it`

// TestNewestRecorded: each row that the kernel decides has a value on the newest kernel of the lane, and each value is that of a row.
func TestNewestRecorded(t *testing.T) {
	r, err := readNewest()
	testkit.Must(t, err)
	names := kernelRows()
	seen := map[string]bool{}
	for _, x := range r.Rows {
		if seen[x.What] || !slices.Contains(names, x.What) || x.Value == "" || x.Of == "" {
			t.Errorf("%s has a row that the table does not have, or has not once, or has without a value: %+v", emulated.FileName(r.Kernel), x)
		}
		seen[x.What] = true
	}
	for _, what := range emulatedRows() {
		if !seen[what] {
			t.Errorf("%q has no value of the newest kernel: "+again, what, r.Kernel)
		}
	}
}

// TestNewestKernel: the newest kernel that is recorded is the newest that the lane boots.
func TestNewestKernel(t *testing.T) {
	b, err := os.ReadFile("../kernels/kernels.json")
	testkit.Must(t, err)
	var list []struct{ Name, Arch, Variant string }
	testkit.Must(t, json.Unmarshal(b, &list))
	newest := ""
	for _, k := range list {
		if k.Arch == "amd64" && k.Variant == guest.Plain && emulated.Compare(k.Name, newest) > 0 {
			newest = k.Name
		}
	}
	r, err := readNewest()
	testkit.Must(t, err)
	if r.Kernel != newest || !strings.HasPrefix(r.Release, newest+".") {
		t.Errorf("the costs are recorded on %q (%s), the newest kernel of the lane is %s: "+again, r.Kernel, r.Release, newest, newest)
	}
}

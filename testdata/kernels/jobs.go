package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// Everything that a guest runs. A new program of checks is a line in programs and one in
// jobs; a package with tests is a line in tests and one in jobs.
//
// programs are built by go build and lie in one folder of the guest, which is its PATH.
var programs = []string{
	"./cmd/runner-capture", "./cmd/runner-correlate", "./cmd/runner-exec", "./cmd/runner-normalize",
	"./cmd/runner-pack", "./cmd/runner-verify",
	"./testdata/kernels/check", "./testdata/kernels/init",
	"./testdata/workload/bypass", "./testdata/workload/kinds", "./testdata/workload/shapes",
}

// programsWhole are those that only a whole run needs. Each costs every guest time.
var programsWhole = []string{"./cmd/runner-policy", "./testdata/hostile"}

// programs32 are built for 32 bits too, by the name that they have in the guest: for the
// architecture whose programs an architecture's kernels run as well.
var programs32 = []struct{ arch, arch32, name, pkg string }{
	{"amd64", "386", "compat32", "./testdata/workload/compat32"},
	{"amd64", "386", "kinds32", "./testdata/workload/kinds"},
	{"arm64", "arm", "kinds32", "./testdata/workload/kinds"},
}

// tests are packages whose tests are compiled, by the name that they have in the guest.
var tests = map[string]string{
	"bpf.test":            "./bpf",
	"runner-capture.test": "./cmd/runner-capture",
}

// ordinary are the checks of an ordinary run on the kernels that .ci/run does not boot: two
// emulated machines do all kernels in some minutes.
var ordinary = []string{"probe", "gate", "kinds", "kinds-io_uring", "pid-namespaces", "paths", "path-objects", "opens-4", "execs", "network-rules", "files-lsm", "no-cgroup2", "shared-probes"}

// jobs are what a kernel runs, in this order. A whole run has all checks on all kernels,
// with the whole numbers and the hostile root on those of .ci/run.
func jobs(k kernel, whole bool) []guest.Job {
	checks := guest.Job{Name: "check", Args: []string{"check", "-short"}, Seconds: 1500}
	switch {
	case !whole && !k.CI:
		checks.Args = append(checks.Args, ordinary...)
	case whole && k.CI:
		checks.Args = []string{"check"}
		return []guest.Job{
			checks,
			{Name: "hostile", Args: []string{"hostile", "check", guest.Bin, "--short"}, Capture: true, Shell: true, Seconds: 1500},
			{Name: "bpf", Args: goTest("bpf.test", "Session|RulesRefused|RulesCannotBeAvoided|PathObjects|Lookup|Shared"), Test: true, Capture: true, Seconds: 600},
			{Name: "runner-capture", Args: goTest("runner-capture.test", "Escape|RulesAreEnforced"), Test: true, Capture: true, Seconds: 600},
		}
	}
	return []guest.Job{checks}
}

// megabytes is the memory of a guest. A kernel prepares all of it, and attacks need much, as do thirty runs at once.
func megabytes(k kernel, whole, costs bool) int {
	if whole && k.CI || costs {
		return 3072
	}
	return 1024
}

func goTest(binary, run string) []string {
	return []string{binary, "-test.v", "-test.count=1", "-test.run=" + run}
}

// build compiles everything for one architecture into a folder.
func build(ctx context.Context, arch, dir string, whole, costs bool) error {
	chosen := programs
	if costs {
		tool := func(pkg string) bool { return strings.HasPrefix(pkg, toolFolder) }
		chosen = append(slices.DeleteFunc(slices.Clone(programs), tool), "./testdata/bench")
		if err := makeTools(ctx, arch, dir, slices.DeleteFunc(slices.Clone(programs), func(pkg string) bool { return !tool(pkg) })); err != nil {
			return err
		}
	}
	if whole {
		chosen = slices.Concat(programs, programsWhole)
	}
	if err := goTool(ctx, arch, append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", dir + "/"}, chosen...)); err != nil {
		return err
	}
	for _, p := range programs32 {
		if arch != p.arch || !whole {
			continue // the short set has no check of them
		}
		if err := goTool(ctx, p.arch32, []string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, p.name), p.pkg}); err != nil {
			return err
		}
	}
	for name, pkg := range tests {
		if arch != "amd64" || !whole {
			break // only the kernels of .ci/run need them
		}
		if err := goTool(ctx, arch, []string{"test", "-c", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg}); err != nil {
			return err
		}
	}
	return nil
}

// toolFolder begins the packages of tools.
const toolFolder = "./cmd/"

// makeTools builds tools as a user does: what is measured is what make build makes, and its commit is known.
func makeTools(ctx context.Context, arch, dir string, packages []string) error {
	names := strings.ReplaceAll(strings.Join(packages, " "), toolFolder, "")
	return buildBy(ctx, arch, "make", "-s", "build", "TO="+dir+"/", "TOOLS="+names, "LINK=-s -w")
}

func goTool(ctx context.Context, arch string, args []string) error {
	return buildBy(ctx, arch, "go", args...)
}

func buildBy(ctx context.Context, arch, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s for %s: %w\n%s", program, args[0], arch, err, out)
	}
	return nil
}

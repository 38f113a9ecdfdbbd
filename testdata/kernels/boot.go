package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// A machine is how QEMU plays an architecture. All CPUs share one thread of the host: with
// several, kernels that patch their own code while another CPU runs it crash.
type machine struct {
	program, install string
	args             []string
	port             []string // the serial port for results, which reads %s
	console          string   // on the kernel's command line
}

var machines = map[string]machine{
	"amd64": {"qemu-system-x86_64", "qemu-system-x86", nil,
		[]string{"-serial", "file:%s"}, "console=ttyS0 no_timer_check"}, // a busy host fails that check
	"arm64": {"qemu-system-aarch64", "qemu-system-arm", []string{"-machine", "virt"},
		[]string{"-chardev", "file,id=results,path=%s", "-device", "pci-serial,chardev=results"}, "console=ttyAMA0"},
}

// cpus are what QEMU emulates: all but what is slow there and changes no record. Without
// them a kernel copies eight bytes at a time instead of one, and switches less.
var cpus = map[string]string{
	"amd64": "max,-erms,-fsrm,-avx,-avx2,-xsave,-pku,-la57,-smap,-smep,-umip",
	"arm64": "max,pauth=off,sve=off,sme=off,lpa2=off",
}

// quick are words for the kernel's command line that leave out work which emulation makes
// dear: clearing each page twice, workarounds for faults of real CPUs, tests of ciphers.
var quick = []string{"init_on_alloc=0", "mitigations=off", "cryptomgr.notests=1"}

const guestLimit = 75 * time.Minute // a last net: each job has its limit

// bootLine is the kernel's command line.
func bootLine(arch, variant string) string {
	words := []string{machines[arch].console, "quiet", "loglevel=4", "panic=-1", "oops=panic"}
	words = append(words, quick...)
	if variant == guest.Lockdown {
		words = append(words, "lockdown=confidentiality")
	}
	return strings.Join(words, " ")
}

// An outcome is what a guest left: its console and the results that it sent.
type outcome struct {
	console, results []byte
	took             time.Duration // of a host's CPU
	err              error         // QEMU failed or was killed
}

// bootKernel boots an image and waits until the machine is off.
func bootKernel(ctx context.Context, arch, variant, image, initrd, dir string, megabytes int, more ...string) outcome {
	m := machines[arch]
	results := filepath.Join(dir, "results.ndjson")
	args := append([]string{"-accel", "tcg,thread=single", "-cpu", cpus[arch], "-smp", "2", "-m", strconv.Itoa(megabytes),
		"-nodefaults", "-display", "none", "-no-reboot", "-nic", "none",
		"-kernel", image, "-initrd", initrd, "-append", bootLine(arch, variant), "-serial", "stdio"}, slices.Concat(m.args, more)...)
	for _, a := range m.port {
		args = append(args, strings.ReplaceAll(a, "%s", results))
	}
	ctx, cancel := context.WithTimeout(ctx, guestLimit)
	defer cancel()
	c := exec.CommandContext(ctx, m.program, args...)
	c.WaitDelay = 2 * time.Second
	console, err := c.CombinedOutput()
	o := outcome{console: console, err: err}
	if s := c.ProcessState; s != nil {
		o.took = s.UserTime() + s.SystemTime()
	}
	if ctx.Err() != nil {
		o.err = fmt.Errorf("not finished after %v", guestLimit)
	}
	var readErr error
	if o.results, readErr = os.ReadFile(results); o.err == nil {
		o.err = readErr
	}
	return o
}

// emulators says which emulator is missing, with the package to install.
func emulators(list []kernel) error {
	var missing []error
	seen := map[string]bool{}
	for _, k := range list {
		m := machines[k.Arch]
		if seen[k.Arch] {
			continue
		}
		seen[k.Arch] = true
		if _, err := exec.LookPath(m.program); err != nil {
			missing = append(missing, fmt.Errorf("%s is not installed (package %s)", m.program, m.install))
		}
	}
	return errors.Join(missing...)
}

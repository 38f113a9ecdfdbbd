//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() { stages["_wait"] = wait }

// wait says that it runs, and ends with its input.
func wait([]string) {
	fmt.Println("here")
	io.Copy(io.Discard, os.Stdin)
}

// sharedChecks use probes that several runs share.
var sharedChecks = []check{{"shared-probes", true, sharedProbes}}

// sharedProbes makes one marked event of each kind beside another run that uses the same probes.
func sharedProbes(m *machine) (detail string, err error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	dir := m.dir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		return "", fmt.Errorf("mounting a BPF file system: %w", err)
	}
	defer unix.Unmount(dir, 0)
	beside := m.command("runner-exec", "--probes", schemas.ProbesShared, "--stream", os.DevNull, "--", m.tool("check"), "_wait")
	in, err := beside.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := beside.StdoutPipe()
	if err != nil {
		return "", err
	}
	said := new(strings.Builder)
	beside.Stderr = said
	if err := beside.Start(); err != nil {
		return "", err
	}
	line := make([]byte, 5)
	if n, _ := out.Read(line); string(line[:n]) != "here\n" {
		in.Close()
		beside.Wait()
		_, why, _ := strings.Cut(said.String(), "sharing probes: ")
		if why, _, _ = strings.Cut(why, "\n"); strings.HasPrefix(why, "without cast") {
			return "", absent(why)
		}
		return "", fmt.Errorf("the run beside did not start: %s", said)
	}
	r, skips, err := m.workload([]string{"--probes", schemas.ProbesAuto}, append([]string{"kinds", m.dir()}, groups...)...)
	in.Close()
	if e := beside.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("the run beside: %w: %s", e, said))
	}
	if err != nil {
		return "", err
	}
	if r.health.Facts[schemas.FactProbes] != schemas.ProbesShared {
		return "", errors.New("the run has probes of its own")
	}
	names, err := os.ReadDir(dir)
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".debug") { // the kernel's own
			return "", fmt.Errorf("left on the BPF file system: %s", n.Name())
		}
	}
	return kindsDetail(r) + skipped(skips), err
}

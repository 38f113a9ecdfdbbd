//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// What is found is what kernels of each release were seen to do, and it is found quickly.
func TestDetectPreemption(t *testing.T) {
	types := new(kernelBTF)
	if _, err := types.Kernel(); err != nil {
		testkit.Missing(t, "this kernel's types", err)
	}
	begin := time.Now()
	p := DetectPreemption(types)
	t.Logf("%s in %v", p, time.Since(begin))
	if errors.Is(p.Err, unix.EPERM) {
		testkit.Missing(t, "the probes", p.Err)
	}
	var u unix.Utsname
	testkit.Must(t, unix.Uname(&u))
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	want := schemas.PreemptionTasksCalls
	switch {
	case major < 7:
		want = schemas.PreemptionNone
	case major == 7 && minor < 2:
		want = schemas.PreemptionTasks
	}
	if p.String() != want {
		t.Errorf("%q, expected %q on Linux %d.%d", p, want, major, minor)
	}
}

func TestPreemptionAsFact(t *testing.T) {
	for want, p := range map[string]Preemption{
		"none": {}, "tasks": {Tasks: true}, "calls": {Calls: true}, "tasks calls": {Tasks: true, Calls: true},
		"unknown: no types": {Tasks: true, Calls: true, Err: errors.New("no types\nat all")},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

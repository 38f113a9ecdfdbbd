//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// numbersCaller makes the test binary a process that makes the calls of which the environment has the numbers.
const (
	numbersCaller = "numbers"
	numbersEnv    = "RUNNER_TEST_NUMBERS"
)

// numbersCallerMain makes each call twice with arguments that no call takes.
func numbersCallerMain() {
	runtime.LockOSThread()
	none := ^uintptr(0)
	for _, text := range strings.Fields(os.Getenv(numbersEnv)) {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for range 2 {
			syscall.RawSyscall6(uintptr(number), none, none, none, none, none, none)
		}
	}
}

// TestEveryCallIsSeenToEnd: with copies, a call that was entered and did not end was missed. So each call of the table must be
// seen at both ends, whatever its class: also those that make no line.
func TestEveryCallIsSeenToEnd(t *testing.T) {
	s, run := inOwnCgroup(t)
	var numbers []string
	classes := map[byte]bool{}
	for number, row := range callRows(t, map[string]string{"amd64": "x86", "arm64": "arm64"}[runtime.GOARCH], "native") {
		if row[0] == 0 || opNames[row[0]] == schemas.OpFork && row[1] != classGuard && row[1] != classReceive && row[1] != classChange {
			continue // some of those that make processes take no arguments; other tests have them
		}
		classes[row[1]] = true
		numbers = append(numbers, strconv.Itoa(number))
	}
	if len(numbers) < 80 || !classes[classReceive] || !classes[classChange] {
		t.Errorf("the table has only %d calls of the classes %v", len(numbers), classes)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), callerEnv+"="+numbersCaller, numbersEnv+"="+strings.Join(numbers, " "))
	cmd.Stderr = os.Stderr
	testkit.Must(t, run(cmd))
	if st := whole(t, s); len(st.Missed) != 0 || st.Lost != 0 {
		t.Errorf("missed %v of calls that all ended", st.Missed)
	}
}

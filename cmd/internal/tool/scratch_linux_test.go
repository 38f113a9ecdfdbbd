package tool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// A process whose scratch file another one opens ends, before the other one can use it.
func TestScratchOpenedByAnother(t *testing.T) {
	if os.Getenv("RUNNER_TEST_SCRATCH") == "1" {
		f, err := Spool()
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("mine")
		other := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo hostile >/proc/%d/fd/%d", os.Getpid(), f.Fd()))
		if err := other.Run(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4)
		f.ReadAt(b, 0)
		fmt.Printf("not ended, reads %q\n", b)
		return
	}
	f, err := Nameless()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); errors.Is(err, unix.EINVAL) {
		testkit.Skip(t, "a lease on a scratch file", "the file system of ", os.TempDir(), " has none")
	} else if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run", "^TestScratchOpenedByAnother$")
	c.Env = append(os.Environ(), "RUNNER_TEST_SCRATCH=1")
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != ExitIO || !strings.Contains(string(out), "another process opened a scratch file") {
		t.Errorf("%v: %s", err, out)
	}
}

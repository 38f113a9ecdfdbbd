package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// The test binary is also the program.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNER_PROC_TEST_AS") == "program" {
		tool.Main(app())
	}
	testkit.Heed()
	os.Exit(m.Run())
}

// TestEndsWithUs: what was started ends when this program is asked to end, or is killed.
func TestEndsWithUs(t *testing.T) {
	for _, word := range []string{"run", "serve"} {
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGKILL} {
			t.Run(fmt.Sprint(word, " ", sig), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "pid")
				request := `{"argv":["/bin/sh","-c","echo $$ >` + file + `; exec sleep 300"]}`
				var frame, errs bytes.Buffer
				if code := app().Call(t.Context(), strings.NewReader(request), &frame, &errs, []string{"encode"}); code != 0 {
					t.Fatal(errs.String())
				}
				c := exec.Command(os.Args[0], word)
				c.Env = append(os.Environ(), "RUNNER_PROC_TEST_AS=program")
				in, err := c.StdinPipe()
				testkit.Must(t, err)
				testkit.Must(t, c.Start())
				if word == "run" {
					in.Write(frame.Bytes())
					in.Close()
				} else {
					fmt.Fprintf(in, `{"op":"spawn","frame":%s}`+"\n", `"`+base64.StdEncoding.EncodeToString(frame.Bytes())+`"`)
				}
				pid := 0
				for end := time.Now().Add(20 * time.Second); pid == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
					b, _ := os.ReadFile(file)
					fmt.Sscan(string(b), &pid)
				}
				c.Process.Signal(sig)
				state := c.Wait()
				if want := map[unix.Signal]string{unix.SIGTERM: "exit status 143", unix.SIGINT: "exit status 130", unix.SIGKILL: "signal: killed"}[sig]; fmt.Sprint(state) != want {
					t.Errorf("%v, expected %s", state, want)
				}
				for end := time.Now().Add(10 * time.Second); unix.Kill(pid, 0) == nil && alive(pid); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("process %d is left", pid)
					}
				}
			})
		}
	}
}

// alive reports whether a process has not ended: one that nobody has reaped has.
func alive(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

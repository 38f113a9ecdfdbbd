package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMain lets the test binary run as the tool, for tests that need limits of a whole
// process.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNER_TEST_AS_TOOL") == "1" {
		if os.Getenv("RUNNER_TEST_FILE_LIMIT") != "" {
			lim := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &lim); err != nil {
				panic(err)
			}
		}
		tool.Main(app())
	}
	os.Exit(m.Run())
}

// large is a stream whose kernel layer does not fit in 64 KiB, and does not
// compress to 16 KiB either.
func large(t *testing.T) []byte {
	j := whole()
	j.kernel = nil
	for i := range 4000 {
		j.kernel = append(j.kernel, strings.Replace(whole().kernel[0], "/usr/bin/cat", fmt.Sprintf("/%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})), 1))
	}
	n := len(j.kernel)
	j.health, j.stages = []string{healthOf(n)}, []string{stage("runner-capture", n, 0), stage("runner-normalize", n, 0), stage("runner-correlate", n, 4)}
	return j.build(t)
}

func asTool(t *testing.T, in []byte, env []string, args ...string) (int, string) {
	t.Helper()
	exe, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(append(os.Environ(), "RUNNER_TEST_AS_TOOL=1"), env...)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// TestFileLimit: the scratch files reach the limit of a file's size.
func TestFileLimit(t *testing.T) {
	path, tmp := scratch(t)
	code, stderr := asTool(t, large(t), []string{"RUNNER_TEST_FILE_LIMIT=1"}, "-o", path)
	if code != 5 || !strings.Contains(stderr, "scratch file of layers/kernel.ndjson: ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if left := append(testkit.Names(t, filepath.Dir(path)), testkit.Names(t, tmp)...); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestFullDisk writes to a file system of 16 KiB.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "a full disk needs root to mount a small tmpfs; run", "make test as root")
	}
	path, tmp := scratch(t)
	dir := filepath.Dir(path)
	testkit.Must(t, unix.Mount("none", dir, "tmpfs", 0, "size=16k"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	testkit.Must(t, os.WriteFile(path, []byte("older"), 0o600))
	code, stderr := asTool(t, large(t), nil, "--force", "-o", path)
	if code != 5 || !strings.Contains(stderr, "no space left on device") {
		t.Errorf("full target: exit %d: %s", code, stderr)
	}
	if b, _ := os.ReadFile(path); string(b) != "older" || len(testkit.Names(t, dir)) != 1 {
		t.Errorf("the older file holds %.20q, the directory %v", b, testkit.Names(t, dir))
	}
	path = filepath.Join(tmp, "run.tar.gz")
	code, stderr = asTool(t, large(t), []string{"TMPDIR=" + dir}, "-o", path)
	if code != 5 || !strings.Contains(stderr, "no space left on device") || len(testkit.Names(t, tmp)) > 0 {
		t.Errorf("full scratch directory: exit %d: %s", code, stderr)
	}
}

func TestDevFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer full.Close()
	var stderr bytes.Buffer
	if code := app().Call(t.Context(), bytes.NewReader(whole().build(t)), full, &stderr, []string{"-o", "-"}); code != 5 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

// TestMemory packs a stream of many lines and names and checks the peak of the
// process's resident memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "memory over a large stream takes seconds; run without -short")
	}
	const lines, calls, limit = 400000, 100000, 64 << 10 // KiB
	path, _ := scratch(t)
	exe, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(exe, "-o", path)
	cmd.Env = append(os.Environ(), "RUNNER_TEST_AS_TOOL=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	w, err := stream.NewWriter(in, stream.Header{Stream: schemas.StreamJoined, RunID: testRun, Tool: "runner-correlate", Version: "test"})
	testkit.Must(t, err)
	j := whole()
	for _, line := range j.events {
		w.WriteRaw([]byte(line))
	}
	var b []byte
	for i := range lines {
		e := schemas.KernelEvent{Seq: uint64(i), EventType: schemas.EventOpenat, Value: fmt.Appendf(nil, "/some/where/%09d", i)}
		b = e.AppendJSON(b[:0], testRun)
		w.WriteRaw(b)
	}
	writeCalls(w, calls, func() {
		for i := range lines {
			w.WriteRaw([]byte(entry("filesystem_paths", fmt.Sprintf("/some/where/%09d", i))))
		}
	})
	for _, line := range []string{j.report[0], healthOf(lines), stage("runner-capture", lines, 0), stage("runner-normalize", lines, 0), strings.Replace(stage("runner-correlate", lines, lines), `"counters":{`, fmt.Sprintf(`"counters":{"policy_events":%d,`, calls), 1)} {
		w.WriteRaw([]byte(line))
	}
	testkit.Must(t, w.Seal(schemas.StatusPartial))
	testkit.Must(t, in.Close())
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; rss > limit {
		t.Errorf("peak of %d KiB resident, at most %d", rss, limit)
	}
}

func TestTerminal(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testkit.Skip(t, "an archive to a terminal, no pseudo terminal here", err)
	}
	defer tty.Close()
	var stderr bytes.Buffer
	code := app().Call(t.Context(), bytes.NewReader(whole().build(t)), tty, &stderr, []string{"-o", "-"})
	if code != 2 || !strings.Contains(stderr.String(), "hint: runner-pack -o run.tar.gz") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func script(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		argv    []string
		code    int
		archive bool
		stderr  string
	}{
		{"0", []string{"true"}, 0, true, "runner-pack: summary\n"},
		{"1", []string{"false"}, 1, true, "runner-pack: summary\n"},
		{"4", []string{"sh", "-c", "exit 4"}, 4, true, "runner-pack: summary\n"},
		{"125", []string{"sh", "-c", "exit 125"}, 125, true, "runner-pack: summary\n"},
		{"255", []string{"sh", "-c", "exit 255"}, 255, true, "runner-pack: summary\n"},
		{"TERM", []string{"sh", "-c", "kill -TERM $$"}, 143, true, "runner-pack: summary\n"},
		{"KILL", []string{"sh", "-c", "kill -KILL $$"}, 137, true, "runner-pack: summary\n"},
		{"PIPE", []string{"sh", "-c", "kill -PIPE $$"}, 141, true, "runner-pack: summary\n"},
		{"named help", []string{"help"}, 127, false, "help: command not found"},
		{"not found", []string{"no-such-command-here"}, 127, false, "no-such-command-here: command not found"},
		{"empty name", []string{""}, 127, false, "not found"},
		{"no such path", []string{"./nothing"}, 127, false, "not found"},
		{"file as directory", []string{"/etc/passwd/x"}, 127, false, "not found"},
		{"directory", []string{"/etc"}, 126, false, "it is a directory"},
		{"not executable", []string{script(t, "plain", "#!/bin/sh\n", 0o644)}, 126, false, "permission denied"},
		{"no interpreter", []string{script(t, "lost", "#!/no/such/interpreter\n", 0o755)}, 127, false, "the interpreter that it names does not"},
		{"no binary", []string{script(t, "cut", "\x7fELF\x02\x01\x01\x00", 0o755)}, 127, true, ""},
		{"no #!", []string{script(t, "bare", "exit $1\n", 0o755), "23"}, 23, true, "runner-pack: summary\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := call(t, append([]string{"--no-kernel", "--archive", "run.tar.gz", "--"}, c.argv...)...)
			if c.name == "no binary" {
				// The shell runs it, as with execvp; the result depends on the shell.
				if r.code != 126 && r.code != 127 && r.code != 2 {
					t.Errorf("%v", r)
				}
				return
			}
			if r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
				t.Errorf("expected exit %d and %q, got %v", c.code, c.stderr, r)
			}
			if exists(filepath.Join(r.dir, "run.tar.gz")) != c.archive {
				t.Errorf("archive expected: %v, got %v", c.archive, r)
			}
			if c.archive && r.stderr != "runner-pack: summary\n" {
				t.Errorf("runner-exec adds to the summary: %v", r)
			}
			if !c.archive && strings.Count(r.stderr, "error:") != 1 {
				t.Errorf("expected one error: %v", r)
			}
			if rest := leftovers(t, r.dir, "run.tar.gz"); len(rest) > 0 {
				t.Errorf("not removed: %q", rest)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--"}, {"--no-kernel"}, {"--run-id", "a b", "--", "true"}, {"--run-id", "", "--", "true"},
		{"--agent-shim", "mcp", "--", "true"}, {"--ring-size", "3000", "--", "true"}, {"--ring-size", "12K", "--", "true"},
		{"--ring-size", "x", "--", "true"}, {"--spool-size", "0", "--", "true"}, {"--grace", "-1s", "--", "true"},
		{"--redundant", "perhaps", "--", "true"}, {"--stream", "-", "--keep", "d", "--", "true"},
		{"--stream", "-", "--archive", "a", "--", "true"}, {"--stream", "-", "--drop", ".", "--", "true"},
		{"--run-id", "a", "--run-id", "b", "--", "true"}, {"--unknown", "--", "true"},
	} {
		r := call(t, args...)
		if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, "error:") || !strings.Contains(r.stderr, "hint:") {
			t.Errorf("%q: expected a usage error, got %v", args, r)
		}
	}
	if r := call(t, "--help"); r.code != 0 || !strings.HasPrefix(r.stdout, "runner-exec ") {
		t.Errorf("--help: %v", r)
	}
}

// TestDevices: what is written to /dev/null is gone, and that is no failure. /dev/full fails the run.
func TestDevices(t *testing.T) {
	for _, args := range [][]string{
		{"--archive", os.DevNull}, {"--stream", os.DevNull}, {"--archive", os.DevNull, "--policy-log", os.DevNull},
		{"--stream", os.DevNull, "--policy-log", os.DevNull, "--sdk-log", os.DevNull, "--agent-shim", "openai-agents"},
	} {
		r := call(t, append(append([]string{"--no-kernel"}, args...), "--", "true")...)
		if st, err := os.Stat(os.DevNull); r.code != 0 || err != nil || st.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("%q: %v, %v, %v", args, r, st, err)
		}
		if rest := leftovers(t, r.dir); len(rest) > 0 {
			t.Errorf("%q: left %q", args, rest)
		}
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		testkit.Skip(t, "/dev/full", err)
	}
	if r := call(t, "--no-kernel", "--stream", "/dev/full", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "no space left on device") {
		t.Errorf("/dev/full: %v", r)
	}
}

// TestChecksums: streams that stay between the stages have the cheap seal, those that become files SHA-256.
func TestChecksums(t *testing.T) {
	t.Setenv("FAKE_PACK", "checksum")
	for want, args := range map[string][]string{
		schemas.ChecksumCRC32C: {"--no-kernel"}, "": {"--no-kernel", "--keep", "kept"},
	} {
		r := call(t, append(args, "--archive", "run.tar.gz", "--", "true")...)
		if r.code != 125 || !strings.Contains(r.stderr, fmt.Sprintf("the checksum is %q", want)) {
			t.Errorf("%q: expected %q, got %v", args, want, r)
		}
	}
	r := call(t, "--no-kernel", "--stream", "raw", "--", "true")
	f, err := os.Open(filepath.Join(r.dir, "raw"))
	testkit.Must(t, err)
	defer f.Close()
	in, err := stream.NewReader(f, "raw", schemas.StreamRaw)
	if err != nil || in.Header().Checksum != "" {
		t.Errorf("--stream: %v, %v", r, err)
	}
}

// TestOutputsFirst: an output that cannot be written is reported before the command runs.
func TestOutputsFirst(t *testing.T) {
	file, fifo := script(t, "file", "", 0o644), filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, syscall.Mkfifo(fifo, 0o600))
	for _, args := range [][]string{
		{"--archive", "no/such/dir/run.tar.gz"}, {"--archive", "."}, {"--keep", "no/such/dir"},
		{"--keep", file}, {"--stream", "no/such/dir/raw"}, {"--archive", fifo}, {"--stream", fifo},
	} {
		r := call(t, append(append([]string{"--no-kernel"}, args...), "--", "touch", "ran")...)
		if r.code != 125 || strings.Count(r.stderr, "error:") != 1 {
			t.Errorf("%q: expected 125 and one error, got %v", args, r)
		}
		if rest := leftovers(t, r.dir); len(rest) > 0 {
			t.Errorf("%q: not removed: %q", args, rest)
		}
	}
}

func TestMissingStage(t *testing.T) {
	c := command(t, "--no-kernel", "--", "true")
	lone := filepath.Join(c.Dir, "bin")
	os.Mkdir(lone, 0o755)
	if err := copyFile(filepath.Join(bin, "runner-exec"), filepath.Join(lone, "runner-exec")); err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(lone, "runner-exec")
	r := outcome(t, c, c.Run())
	if r.code != 125 || !strings.Contains(r.stderr, "runner-normalize is neither in "+lone) {
		t.Errorf("expected the missing stage's name, got %v", r)
	}
	c = command(t, "--no-kernel", "--archive", "a", "--", "true")
	c.Path = filepath.Join(lone, "runner-exec")
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if r := outcome(t, c, c.Run()); r.code != 0 {
		t.Errorf("stages on PATH: %v", r)
	}
}

// TestPassThrough compares what a command sees with and without runner-exec.
func TestPassThrough(t *testing.T) {
	const show = `cat; cat <&7; echo out; echo err >&2; pwd; umask; ulimit -n; ulimit -s; ulimit -c;
tr '\0' '\n' </proc/$$/environ 2>/dev/null | grep -v '^_='; for f in /proc/$$/fd/*; do case $f in */1[0-9]) ;; *) echo fd ${f##*/} ;; esac; done; grep -E 'Sig(Blk|Ign)|Umask|NoNewPrivs' /proc/self/status; echo "$0 $@"`
	see := func(args ...string) (string, string) {
		dir := "/tmp"
		c := exec.Command("sh", append([]string{"-c", `umask 027; ulimit -n 256; trap '' HUP; exec 7<"$0"; exec "$@"`,
			script(t, "seven", "from seven\n", 0o600)}, args...)...)
		c.Dir = dir
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "A=1", "EMPTY=", "PWD=/tmp", "X=two words\nand a line"}
		c.Stdin = strings.NewReader("from stdin\n")
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatal(err, errs.String())
		}
		return out.String(), strings.Replace(errs.String(), "runner-pack: summary\n", "", 1)
	}
	argv := []string{"sh", "-c", show, "zero", "", "a b", "-c", "--"}
	wantOut, wantErr := see(argv...)
	archive := filepath.Join(t.TempDir(), "a")
	gotOut, gotErr := see(append([]string{filepath.Join(bin, "runner-exec"), "--no-kernel", "--archive", archive, "--"}, argv...)...)
	if gotOut != wantOut || gotErr != wantErr {
		t.Errorf("with runner-exec:\n%s%s\nwithout:\n%s%s", gotOut, gotErr, wantOut, wantErr)
	}
	if !strings.Contains(wantOut, "from stdin\nfrom seven\nout\n") {
		t.Errorf("the comparison compares nothing: %s", wantOut)
	}
}

func TestNoKernelStream(t *testing.T) {
	argv := []string{"sh", "-c", "echo out; kill -9 $$", "\xff\\"}
	r := call(t, append([]string{"--no-kernel", "--run-id", "r1", "--stream", "-", "--"}, argv...)...)
	if r.code != 137 || r.stderr != "out\n" {
		t.Errorf("expected 137 and the command's output on stderr, got %v", r)
	}
	checkNoKernel(t, r.stdout)
	r = call(t, append([]string{"--no-kernel", "--run-id", "r1", "--stream", "raw", "--"}, argv...)...)
	b, err := os.ReadFile(filepath.Join(r.dir, "raw"))
	if err != nil || r.stdout != "out\n" {
		t.Fatal(err, r)
	}
	checkNoKernel(t, string(b))
}

func checkNoKernel(t *testing.T, text string) {
	t.Helper()
	in, err := stream.NewReader(strings.NewReader(text), "raw", schemas.StreamRaw)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for {
		rec, err := in.Next()
		if in.Trailer() != nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(rec.Bytes))
	}
	if len(lines) != 3 || in.Trailer().Status != schemas.StatusPartial {
		t.Fatalf("expected 3 records, partial: %s", text)
	}
	want := `{"schema":"assay.runner.event.v0","run_id":"r1","seq":0,"type":"run_started","agent_shim":"none","command":["sh","-c","echo out; kill -9 $$","\\xff\\\\"],"env_keys":[]}`
	if lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	want = `{"schema":"assay.runner.event.v0","run_id":"r1","seq":1,"type":"run_finished","exit_code":null,"signal":9,"success":false}`
	if lines[1] != want {
		t.Errorf("got  %s\nwant %s", lines[1], want)
	}
	var h schemas.StageHealth
	if err := schemas.Unmarshal([]byte(lines[2]), &h); err != nil || len(h.Counters) != 20 || h.Facts["canary_before"] != "not_run" {
		t.Errorf("health %s: %v", lines[2], err)
	}
}

func TestKeep(t *testing.T) {
	r := call(t, "--no-kernel", "--archive", "a", "--keep", "kept", "--", "sh", "-c", "exit 5")
	if r.code != 5 {
		t.Fatal(r)
	}
	for i, name := range keepNames {
		f, err := os.Open(filepath.Join(r.dir, "kept", name))
		if err != nil {
			t.Fatal(err)
		}
		in, err := stream.NewReader(f, name, [...]string{schemas.StreamRaw, schemas.StreamNormalized, schemas.StreamJoined}[i])
		for err == nil {
			_, err = in.Next()
		}
		if in == nil || in.Trailer() == nil {
			t.Errorf("%s is not whole: %v", name, err)
		}
		f.Close()
	}
	c := command(t, "--no-kernel", "--archive", "a", "--keep", "kept", "--", "true")
	c.Env = append(os.Environ(), "FAKE_PACK=fail")
	r = outcome(t, c, c.Run())
	if r.code != 125 || len(leftovers(t, r.dir)) > 0 || !strings.Contains(r.stderr, "no space left") {
		t.Errorf("a failed pack: %v, left %q", r, leftovers(t, r.dir))
	}
}

func TestSignals(t *testing.T) {
	c := command(t, "--no-kernel", "--archive", "a", "--", filepath.Join(bin, "probe"), "wait")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal: INT is passed on
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = pw
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	buf := make([]byte, 100)
	expect := func(want string) {
		t.Helper()
		n, err := pr.Read(buf)
		if got := strings.TrimSpace(string(buf[:n])); got != want {
			t.Errorf("expected %q, got %q, %v", want, got, err)
		}
	}
	expect("waiting")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		c.Process.Signal(s)
		expect(s.String())
	}
	if r := outcome(t, c, c.Wait()); r.code != 7 || !exists(filepath.Join(r.dir, "a")) {
		t.Errorf("%v", r)
	}
}

// TestIgnoredSignals: the command inherits what was ignored when runner-exec was started, as by nohup, and the signal ends
// neither of them.
func TestIgnoredSignals(t *testing.T) {
	c := command(t, "--no-kernel", "--archive", "a", "--", "sh", "-c", `kill -HUP $$ $PPID && kill -INT $$ $PPID && echo alive`)
	c.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$@"`, "sh", c.Path}, c.Args[1:]...)
	c.Path = "/bin/sh"
	var out bytes.Buffer
	c.Stdout = &out
	if r := outcome(t, c, c.Run()); r.code != 0 || out.String() != "alive\n" || !exists(filepath.Join(r.dir, "a")) {
		t.Errorf("%v: %q", r, out.String())
	}
}

func TestTimeout(t *testing.T) {
	r := call(t, "--no-kernel", "--archive", "a", "--timeout", "50ms", "--", "sleep", "30")
	if r.code != 143 || !strings.Contains(r.stderr, "sending it SIGTERM") || !exists(filepath.Join(r.dir, "a")) {
		t.Errorf("%v", r)
	}
	for limit := 50 * time.Millisecond; limit < 10*time.Second; limit *= 4 {
		r = call(t, "--no-kernel", "--archive", "a", "--timeout", limit.String(), "--grace", "50ms", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
		if r.code != 143 { // which says that the machine was busy: the limit came before the trap
			break
		}
	}
	if r.code != 137 || !strings.Contains(r.stderr, "killing it") || !exists(filepath.Join(r.dir, "a")) {
		t.Errorf("%v", r)
	}
}

func TestBrokenStdout(t *testing.T) {
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr.Close()
	c := command(t, "--no-kernel", "--archive", "a", "--", "sh", "-c", "echo x; exit 6")
	c.Stdout = pw
	r := outcome(t, c, c.Run())
	// SIGPIPE ends sh, or sh reports the failed write: the signal has its default action.
	if r.code != 141 && r.code != 6 || !exists(filepath.Join(r.dir, "a")) {
		t.Errorf("%v", r)
	}
	c = command(t, "--no-kernel", "--stream", "-", "--", "true")
	c.Stdout = pw
	if r := outcome(t, c, c.Run()); r.code != 125 || !strings.Contains(r.stderr, "broken pipe") {
		t.Errorf("a stream to nobody: %v", r)
	}
}

// TestFailedRunKeepsOthers: a run that failed removes its own archive, and nothing that somebody else put there meanwhile.
func TestFailedRunKeepsOthers(t *testing.T) {
	for content, ours := range map[string]bool{
		"": false, "mine": false, "manifest.json": false, "manifest.json\x00{\"run_id\":\"other\"}": false, "manifest.json\x00{\"run_id\":\"this-2\"}": false,
		"manifest.json\x00{\"run_id\":\"this\"}": true,
	} {
		path := filepath.Join(t.TempDir(), "a")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		(&outputs{archive: path, runID: "this"}).discard()
		if exists(path) == ours {
			t.Errorf("%q is there: %t", content, exists(path))
		}
	}
}

//go:build unix

package evidence

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// verifier builds runner-verify once, in a folder of its own.
var verifier = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "evidence")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "runner-verify"), "../../runner-verify")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(err.Error() + "\n" + string(out))
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := verifier(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// real puts the real runner-verify on PATH.
func real(t *testing.T) {
	dir, err := verifier()
	testkit.Must(t, err)
	t.Setenv("PATH", dir)
}

// fake puts a shell script in its place.
func fake(t *testing.T, script string) {
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "runner-verify"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

// open runs a tool that opens an archive, given as a file or as its standard input, and does
// something with it.
func open(t *testing.T, in []byte, file bool, use func(ctx context.Context, e *Evidence) error) (code int, stdout, stderr string) {
	t.Helper()
	app := tool.App{Name: "runner-test", Usage: "\nusage: runner-test FILE\n", Run: func(ctx context.Context, env *tool.Env) error {
		e, err := Open(ctx, env)
		if err != nil {
			return err
		}
		defer e.Close()
		return use(ctx, e)
	}}
	args := []string{"-"}
	if file {
		args = []string{archiveFile(t, in)}
	}
	var out, errs bytes.Buffer
	code = app.Call(t.Context(), bytes.NewReader(in), &out, &errs, args)
	return code, out.String(), errs.String()
}

func archiveFile(t *testing.T, in []byte) string {
	path := filepath.Join(t.TempDir(), "run.tar")
	testkit.Must(t, os.WriteFile(path, in, 0o600))
	return path
}

func never(context.Context, *Evidence) error { return errors.New("the archive was used") }

func sample(t *testing.T) []byte { return archivetest.Sample().Digest(t).Tar(t) }

// countLines visits an archive.
func countLines(ctx context.Context, e *Evidence) (lines int, err error) {
	err = e.Read(ctx, archive.Visitor{Line: func(*archive.Line) error { lines++; return nil }})
	return lines, err
}

// A valid archive can be read as often as needed, from a file and from a pipe, also after its
// file was replaced.
func TestValid(t *testing.T) {
	real(t)
	in := sample(t)
	for _, file := range []bool{true, false} {
		code, _, errs := open(t, in, file, func(ctx context.Context, e *Evidence) error {
			if file {
				testkit.Must(t, os.WriteFile(e.Name, []byte("something else"), 0o600))
			}
			want := map[bool]string{true: "run.tar", false: "stdin"}[file]
			if filepath.Base(e.Name) != want || e.Report.Archive != schemas.Text(e.Name) || !e.Report.Valid || e.Report.Explanation == nil {
				t.Errorf("%s: %+v", e.Name, e.Report)
			}
			for range 2 {
				if n, err := countLines(ctx, e); err != nil || n != 12 {
					t.Errorf("%d lines, %v", n, err)
				}
			}
			return nil
		})
		if code != tool.ExitOK || errs != "" {
			t.Errorf("exit %d: %s", code, errs)
		}
	}
}

// An archive of an earlier release, or of another implementation, is one all the same.
func TestOldArchive(t *testing.T) {
	real(t)
	a := archivetest.Sample()
	a[schemas.MemberHealth] = strings.Replace(a[schemas.MemberHealth], `"s2_blind_spots`, `"s2_capture_end: stopped by a signal while the cgroup still had tasks","s2_blind_spots`, 1)
	for name, in := range map[string][]byte{"an earlier release": a.Digest(t).Tar(t), "compressed": archivetest.Gzip(t, a.Digest(t).Tar(t), 9)} {
		if code, _, errs := open(t, in, false, func(context.Context, *Evidence) error { return nil }); code != tool.ExitOK {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
}

// What runner-verify refuses is refused with its findings, and never used.
func TestRefused(t *testing.T) {
	real(t)
	good := sample(t)
	other := archivetest.Sample()
	other[schemas.MemberKernel] = strings.Replace(other[schemas.MemberKernel], "/tmp/out", "/tmp/in", 1)
	for name, c := range map[string]struct {
		in  []byte
		say string
	}{
		"empty":       {nil, "archive.container"},
		"a text":      {[]byte("hello\n"), "archive.container"},
		"cut":         {good[:len(good)/2], "archive.container"},
		"cut gzip":    {archivetest.Gzip(t, good, 1)[:200], "archive.container"},
		"bytes after": {append(bytes.Clone(good), 1), "archive.trailing"},
		"a lie":       {other.Digest(t).Tar(t), "surface.derived"},
	} {
		for _, file := range []bool{true, false} {
			code, out, errs := open(t, c.in, file, never)
			if code != tool.ExitInput || out != "" || !strings.Contains(errs, c.say) || !strings.HasPrefix(errs, "runner-test: ") {
				t.Errorf("%s: exit %d, %q, %s", name, code, out, errs)
			}
		}
	}
}

// Whatever takes the place of runner-verify: what it says must be a verdict, and about these bytes.
func TestOtherVerifiers(t *testing.T) {
	valid := func(extra string) string {
		return `echo '{"schema":"runner.verify_report.v0","archive":"x","container":"tar","run_id":"run_test","identity":"sha256:00","valid":true,"met":true,"finding_count":0,"findings":[],"demands":[],` +
			`"record":{"origin":"runner"},"claims":[],"non_claims":[]` + extra + `}'`
	}
	const digest = `,"archive_digest":"sha256:00"`
	const explained = digest + `,"explanation":{"calls":[],"ambiguities":[],"surface":{},"refusals":[],"forbidden_claim":"x"}`
	for _, c := range []struct{ name, script, say string }{
		{"silent", "exit 0", "verify report"},
		{"no JSON", "echo hello", "verify report"},
		{"another document", `echo '{"schema":"x"}'`, "verify report"},
		{"valid, and exit 1", valid(explained) + "; exit 1", "its report says valid=true, its exit code 1"},
		{"not valid, and exit 0", `echo '{"schema":"runner.verify_report.v0","valid":false}'`, "its report says valid=false, its exit code 0"},
		{"valid without an explanation", valid(digest), "is it of another release?"},
		{"valid without a digest", valid(strings.TrimPrefix(explained, digest)), "is it of another release?"},
		{"a wrong call", "echo no such flag >&2; exit 2", "no such flag"},
		{"bytes for a terminal", `printf '\033[31mred' >&2; exit 2`, `\x1b[31mred`},
		{"a failure", "exit 5", "exit status 5"},
		{"killed", "kill -9 $$", "killed"},
		{"another archive", valid(explained), "those that runner-verify judged sha256:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake(t, c.script)
			code, _, errs := open(t, sample(t), true, func(ctx context.Context, e *Evidence) error {
				_, err := countLines(ctx, e)
				return err
			})
			if code != tool.ExitIO || !strings.Contains(errs, c.say) || strings.Contains(errs, "\x1b") {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
}

// Bytes of the copy that are others than those that were judged, and would be valid, too, are found.
func TestChangedCopy(t *testing.T) {
	real(t)
	archive := sample(t)
	at := bytes.Index(archive, []byte("/tmp/old"))
	if at < 0 {
		t.Fatal("the sample has no /tmp/old")
	}
	code, _, errs := open(t, archive, true, func(ctx context.Context, e *Evidence) error {
		if _, err := countLines(ctx, e); err != nil {
			return err
		}
		if _, err := e.file.WriteAt([]byte("/tmp/odd"), int64(at)); err != nil {
			return err
		}
		_, err := countLines(ctx, e)
		return err
	})
	if code != tool.ExitIO || !strings.Contains(errs, "their copy sha256:") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Without runner-verify nothing is judged.
func TestNoVerifier(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if code, _, errs := open(t, sample(t), true, never); code != tool.ExitIO || !strings.Contains(errs, "runner-verify is neither in ") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A file that is no archive at all, or is not there, is named with what to do.
func TestOperands(t *testing.T) {
	real(t)
	app := tool.App{Name: "runner-test", Usage: "\nusage\n", Run: func(ctx context.Context, env *tool.Env) error {
		_, err := Open(ctx, env)
		return err
	}}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{filepath.Join(t.TempDir(), "none")}, tool.ExitIO, "none"},
		{[]string{t.TempDir()}, tool.ExitInput, "is a directory"},
		{[]string{"a", "b"}, tool.ExitUsage, "unexpected operand"},
	} {
		var out, errs bytes.Buffer
		if code := app.Call(t.Context(), strings.NewReader(""), &out, &errs, c.args); code != c.code || !strings.Contains(errs.String(), c.say) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs.String())
		}
	}
}

// No room for the copy is an error that says so.
func TestNoScratch(t *testing.T) {
	real(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	path := filepath.Join(os.Getenv("PATH"), "..", "run.tar")
	testkit.Must(t, os.WriteFile(path, sample(t), 0o600))
	defer os.Remove(path)
	app := tool.App{Name: "runner-test", Usage: "\nusage\n", Run: func(ctx context.Context, env *tool.Env) error {
		_, err := Open(ctx, env)
		return err
	}}
	var out, errs bytes.Buffer
	if code := app.Call(t.Context(), strings.NewReader(""), &out, &errs, []string{path}); code != tool.ExitIO || !strings.Contains(errs.String(), "a scratch file") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// A tool that is told to stop does not wait for runner-verify.
func TestCancelled(t *testing.T) {
	fake(t, "exec sleep 60")
	file, err := tool.Spool()
	testkit.Must(t, err)
	defer file.Close()
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	begin := time.Now()
	if _, err := judge(ctx, file); err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// A report without an end is not kept, and whoever writes it is stopped.
func TestEndlessReport(t *testing.T) {
	l := limited{most: 10, full: func() {}}
	for range 3 {
		if n, err := l.Write([]byte("12345678")); n != 8 || err != nil {
			t.Error(n, err)
		}
	}
	if !l.cut || l.kept.String() != "1234567812" {
		t.Errorf("%t %q", l.cut, l.kept.String())
	}
	fake(t, "exec cat /dev/zero")
	file, err := tool.Spool()
	testkit.Must(t, err)
	defer file.Close()
	if _, err := judge(t.Context(), file); err == nil || !strings.Contains(err.Error(), "its report is longer than") {
		t.Error(err)
	}
}

package tool

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/schemas"
)

// flagged calls f in a tool that was given one flag, and returns its exit code and what
// it said.
func flagged(flag, value string, f func(*Env) error) (int, string) {
	var errw strings.Builder
	a := App{Name: "runner-test", Usage: usage, Flags: []cli.Flag{&cli.StringFlag{Name: flag}, &cli.DurationFlag{Name: "time"}},
		Run: func(_ context.Context, env *Env) error { return f(env) }}
	code := a.Call(context.Background(), nil, io.Discard, &errw, []string{"--" + flag + "=" + value})
	return code, errw.String()
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "1": 1, "4096": 4096, "64K": 64 << 10, "64k": 64 << 10, "16M": 16 << 20, "16m": 16 << 20, "4G": 4 << 30, "4g": 4 << 30,
	} {
		code, said := flagged("size", in, func(env *Env) error {
			got, err := env.Size("size", 0, 4<<30)
			if got != want {
				t.Errorf("%q is %d, want %d", in, got, want)
			}
			return err
		})
		if code != 0 {
			t.Errorf("%q: exit %d, %s", in, code, said)
		}
	}
	const tail = `: expected a number of bytes from 1K to 1G, such as 4096, 64K or 16M` + "\nrunner-test: hint: runner-test --help\n"
	for _, in := range []string{"", "-1", "1023", "2G", "16MB", "16KiB", "x", "M", "1.5M", " 4K", "99999999999999999999", "9223372036854775807G", "17179869185G"} {
		code, said := flagged("size", in, func(env *Env) error { _, err := env.Size("size", 1<<10, 1<<30); return err })
		if want := `runner-test: error: --size "` + in + `"` + tail; code != ExitUsage || said != want {
			t.Errorf("exit %d, %s, want %s", code, said, want)
		}
	}
	for in, ok := range map[string]bool{"4096": true, "4K": true, "16m": true, "1G": true, "": false, "0": false, "2K": false, "5000": false, "3M": false, "2G": false} {
		code, said := flagged("ring", in, func(env *Env) error { _, err := env.RingSize("ring"); return err })
		if (code == 0) != ok || !ok && !strings.Contains(said, "expected a power of two from 4K to 1G") {
			t.Errorf("ring %q: exit %d, %s", in, code, said)
		}
	}
}

func TestRunID(t *testing.T) {
	for in, ok := range map[string]bool{"r": true, "Run_1-2": true, "": false, "a/b": false, "é": false, strings.Repeat("r", 129): false} {
		code, said := flagged("run-id", in, func(env *Env) error {
			id, err := env.RunID()
			if ok && id != in {
				t.Errorf("%q is %q", in, id)
			}
			return err
		})
		if (code == 0) != ok || !ok && !strings.HasSuffix(strings.SplitAfter(said, "\n")[0], ": expected 1 to 128 of A-Z a-z 0-9 _ -\n") {
			t.Errorf("%q: exit %d, %s", in, code, said)
		}
	}
	if a, b := NewRunID(), NewRunID(); a == b || !schemas.ValidRunID(a) {
		t.Errorf("%s, %s", a, b)
	}
}

// Each usual error is one sentence.
func TestSentences(t *testing.T) {
	gone := &fs.PathError{Op: "open", Path: "/gone", Err: errors.New("no such file")}
	for _, c := range []struct {
		f    func(*Env) error
		code int
		said string
	}{
		{func(e *Env) error { _, err := e.Word("flag", "auto", "on", "off"); return err }, ExitUsage, `--flag "x": expected auto, on or off`},
		{func(e *Env) error { return e.NotEmpty("flag") }, ExitOK, ""},
		{func(e *Env) error { return Missing("COMMAND", "runner-test -- COMMAND") }, ExitUsage, "COMMAND is missing\nrunner-test: hint: runner-test -- COMMAND"},
		{func(e *Env) error { return CannotRead("FILE", gone) }, ExitIO, "cannot read FILE: no such file"},
		{func(e *Env) error { return CannotWrite("FILE", io.ErrShortWrite) }, ExitIO, "cannot write FILE: short write"},
		{func(e *Env) error { e.Args = []string{"a b"}; return e.NoOperands() }, ExitUsage, `unexpected operand "a b"`},
		{func(e *Env) error { return e.NoOperands() }, ExitOK, ""},
		{func(e *Env) error { e.Flag.Set("time", "-2s"); _, err := e.Duration("time"); return err }, ExitUsage, `--time "-2s": expected a duration of 0 or more`},
	} {
		code, said := flagged("flag", "x", c.f)
		want := ""
		if c.said != "" {
			want = "runner-test: error: " + c.said + "\n"
			if c.code == ExitUsage && !strings.Contains(c.said, "hint") {
				want += "runner-test: hint: runner-test --help\n"
			}
		}
		if code != c.code || said != want {
			t.Errorf("exit %d, %q, want %d, %q", code, said, c.code, want)
		}
	}
	if code, said := flagged("flag", "", func(e *Env) error { return e.NotEmpty("flag") }); code != ExitUsage || !strings.Contains(said, `--flag "": expected a name`) {
		t.Errorf("exit %d, %s", code, said)
	}
}

// TestPlaceHints: what to type where an output cannot be made is tried here.
func TestPlaceHints(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "a b", "c", "out")
	mkdir, within := "make its directory: mkdir -p '"+filepath.Dir(missing)+"'", "name a file in it: "+dir+"/NAME"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{missing, fs.ErrNotExist, mkdir}, {missing, &fs.PathError{Err: syscall.ENOENT}, mkdir}, {missing, syscall.EROFS, ""},
		{dir, ErrDirectory, within}, {dir, syscall.EISDIR, within}, {filepath.Join(dir, "out"), fs.ErrNotExist, ""}, {filepath.Join(dir, "out"), fs.ErrPermission, ""},
		{dir, syscall.EROFS, ""}, {dir, fs.ErrPermission, ""}, {dir, fs.ErrExist, ""}, {dir, syscall.ENOSPC, ""}, // the output is a directory
	} {
		if got := strings.Join(PlaceHints(c.name, c.err), "; "); got != c.want {
			t.Errorf("%s, %v: %q, expected %q", c.name, c.err, got, c.want)
		}
	}
	if out, err := exec.Command("sh", "-c", strings.TrimPrefix(PlaceHints(missing, fs.ErrNotExist)[0], "make its directory: ")).CombinedOutput(); err != nil {
		t.Errorf("%s: %v", out, err)
	}
	if err := WriteFile(missing, Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{dir: within, filepath.Join(dir, "no", "out"): "make its directory: mkdir -p " + filepath.Join(dir, "no")} {
		err := WriteFile(name, Bytes(nil))
		if _, e := codeOf(err); e == nil || strings.Join(e.Hints, "; ") != want {
			t.Errorf("%s: %v, %+v, expected %q", name, err, e, want)
		}
	}
}

// TestOneOf: the word that was probably meant is in the hint.
func TestOneOf(t *testing.T) {
	if err := OneOf("fail-on", "error", "info", "warning", "error"); err != nil {
		t.Error(err)
	}
	for value, hint := range map[string]string{"eror": "did you mean --fail-on error?", "warn": "did you mean --fail-on warning?", "foo": ""} {
		var hints []string
		if _, e := codeOf(OneOf("fail-on", value, "info", "warning", "error")); e != nil && e.Code == ExitUsage {
			hints = e.Hints
		}
		if strings.Join(hints, "") != hint {
			t.Errorf("%s: %q, expected %q", value, hints, hint)
		}
	}
}

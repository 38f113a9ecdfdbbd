package tool

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func TestOpenInput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	testkit.Must(t, os.WriteFile(file, []byte("from file"), 0o600))
	dash := filepath.Join(dir, "-dash")
	testkit.Must(t, os.WriteFile(dash, []byte("from dash"), 0o600))
	t.Chdir(dir)
	cat := func(_ context.Context, env *Env) error {
		r, name, err := OpenInput(env)
		if err != nil {
			return err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		env.Stdout.Write([]byte(name + ": " + string(b)))
		return err
	}
	for _, c := range []struct {
		args        []string
		code        int
		out, stderr string
	}{
		{nil, 0, "stdin: input", ""},
		{[]string{"-"}, 0, "stdin: input", ""},
		{[]string{file}, 0, file + ": from file", ""},
		{[]string{"--", "-dash"}, 0, "-dash: from dash", ""},
		{[]string{"in", "in"}, ExitUsage, "", `unexpected operand "in": at most one FILE is read`},
		{[]string{"in", "-"}, ExitUsage, "", `unexpected operand "-": at most one FILE is read`},
		{[]string{"in", "--name", "x"}, 0, "in: from file", ""},
		{[]string{"in", "--", "-dash"}, ExitUsage, "", `unexpected operand "-dash": at most one FILE is read`},
		{[]string{"gone"}, ExitIO, "", "cannot read gone: no such file or directory"},
		{[]string{"."}, ExitInput, "", ". is a directory, expected a file"},
	} {
		code, out, errw := call(cat, c.args...)
		if code != c.code || out != c.out || !strings.Contains(errw, c.stderr) || (errw == "") != (c.stderr == "") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", c.args, code, out, errw)
		}
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	return strings.Join(testkit.Names(t, dir), " ")
}

// openers are the two ways to hold a file that has no name yet.
func openers() map[string]func(string) (*AtomicFile, error) {
	return map[string]func(string) (*AtomicFile, error){
		"usual": CreateAtomic,
		// As on a file system without nameless files.
		"named": func(path string) (*AtomicFile, error) {
			f, err := os.CreateTemp(filepath.Dir(path), ".runner-*")
			if err != nil {
				return nil, err
			}
			return &AtomicFile{File: f, name: path, path: path, temp: f.Name()}, nil
		},
	}
}

func TestAtomicFile(t *testing.T) {
	for name, open := range openers() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			write := func(content string) *AtomicFile {
				a, err := open(path)
				testkit.Must(t, err)
				_, err = a.WriteString(content)
				testkit.Must(t, err)
				return a
			}
			content := func() string {
				b, err := os.ReadFile(path)
				testkit.Must(t, err)
				return string(b)
			}

			a := write("lost")
			if _, err := os.Stat(path); err == nil {
				t.Error("the file is there before Commit")
			}
			a.Abort()
			a.Abort()
			if n := names(t, dir); n != "" {
				t.Errorf("after Abort: %s", n)
			}

			a = write("first")
			testkit.Must(t, a.Commit())
			a.Abort()
			if content() != "first" || names(t, dir) != "out" {
				t.Errorf("after Commit: %q in %s", content(), names(t, dir))
			}

			// An older file is replaced as a whole, also while someone reads it.
			old, err := os.Open(path)
			testkit.Must(t, err)
			defer old.Close()
			a = write("second")
			if content() != "first" {
				t.Error("the older file changed before Commit")
			}
			testkit.Must(t, a.Commit())
			if b, _ := io.ReadAll(old); string(b) != "first" || content() != "second" || names(t, dir) != "out" {
				t.Errorf("after replacing: old reader has %q, file %q in %s", b, content(), names(t, dir))
			}

			a = write("third")
			a.Abort()
			if content() != "second" || names(t, dir) != "out" {
				t.Errorf("after a second Abort: %q in %s", content(), names(t, dir))
			}
		})
	}
}

// After a Commit that failed to name the file, Abort removes everything.
func TestAtomicFileCommitFails(t *testing.T) {
	for name, open := range openers() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			a, err := open(path)
			testkit.Must(t, err)
			testkit.Must(t, os.Mkdir(path, 0o755))
			if a.Commit() == nil {
				t.Error("replaced a directory")
			}
			a.Abort()
			if n := names(t, dir); n != "out" {
				t.Errorf("not removed: %s", n)
			}
		})
	}
}

func TestAtomicFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "gone", "out")} {
		if a, err := CreateAtomic(path); err == nil {
			a.Abort()
			t.Errorf("opened %s", path)
		}
	}
	if n := names(t, dir); n != "" {
		t.Errorf("not removed: %s", n)
	}
}

func TestSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := Spool()
	testkit.Must(t, err)
	defer f.Close()
	_, err = f.WriteString("abc")
	testkit.Must(t, err)
	b := make([]byte, 3)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "abc" || names(t, dir) != "" {
		t.Errorf("read %q, %v; directory holds %q", b, err, names(t, dir))
	}
}

func TestAtomicFileFollowsSymlink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	testkit.Must(t, os.WriteFile(file, []byte("old"), 0o644))
	if err := os.Symlink("file", link); err != nil {
		testkit.Skip(t, "symlinks", err)
	}
	a, err := CreateAtomic(link)
	testkit.Must(t, err)
	_, err = a.WriteString("new")
	testkit.Must(t, err)
	testkit.Must(t, a.Commit())
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the symlink was replaced: %v, %v", st, err)
	}
	if b, _ := os.ReadFile(file); string(b) != "new" || filepath.Base(a.Path()) != "file" {
		t.Errorf("the file reads %q, and %s was said to be written", b, a.Path())
	}
	testkit.Must(t, os.Remove(file))
	if a, err := CreateAtomic(link); err == nil {
		a.Abort()
		t.Error("a symlink to nothing was accepted")
	}
}

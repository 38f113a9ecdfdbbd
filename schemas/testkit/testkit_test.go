package testkit

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

type cat struct{}

func (cat) Call(_ context.Context, in io.Reader, out, errw io.Writer, args []string) int {
	io.Copy(out, in)
	io.WriteString(errw, strings.Join(args, " "))
	return len(args)
}

func TestCall(t *testing.T) {
	if code, out, errs := Call(cat{}, []byte("in"), "a", "b"); code != 2 || out != "in" || errs != "a b" {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	said  string
	ended bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(a ...any)         { r.said, r.ended = a[0].(string), true }
func (r *recorder) Log(a ...any)          { r.said = a[0].(string) }
func (r *recorder) Fatal(...any)          { r.ended = true }
func (r *recorder) Errorf(string, ...any) { r.said = "differs" }

func TestSkip(t *testing.T) {
	r := &recorder{TB: t}
	if Skip(r, "a thing", "no ", 1); r.said != "SKIPPED, NOT TESTED: a thing: no 1" || !r.ended {
		t.Errorf("%q", r.said)
	}
	if Note(r, "a thing"); r.said != "SKIPPED, NOT TESTED: a thing" {
		t.Errorf("%q", r.said)
	}
}

func TestGolden(t *testing.T) {
	if Update() {
		return // with -update, Golden would write the file
	}
	file := filepath.Join(t.TempDir(), "golden")
	Write(t, file, []byte("one\ntwo\n"))
	for got, same := range map[string]bool{"one\ntwo\n": true, "one\nTWO\n": false, "one\n": false, "": false} {
		r := &recorder{TB: t}
		if Golden(r, file, []byte(got)); (r.said == "") != same {
			t.Errorf("%q: %q", got, r.said)
		}
	}
	r := &recorder{TB: t}
	if Golden(r, file+".none", nil); r.said == "" {
		t.Error("a missing golden file was accepted")
	}
}

package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// when runs f at the first step of this name.
func when(t *testing.T, name string, f func()) {
	t.Helper()
	done := false
	step = func(now string) {
		if now == name && !done {
			done = true
			f()
		}
	}
	t.Cleanup(func() {
		step = nil
		if !done {
			t.Errorf("the step %q did not happen", name)
		}
	})
}

const faultsBefore = "printf old >a; printf old >b; mkdir d; printf old >d/f; ln -s x l; touch -d 2001-02-03 d ."

var faultsList = []Transition{
	{"a", file("old"), file("new")}, {"b", file("old"), nil}, {"d", folder(), nil}, {"d/f", file("old"), nil}, {"l", link("x"), folder()}, {"l/n", nil, file("new")}, {"z", nil, file("new")},
}

// begun makes the directory of the tests for faults.
func begun(t *testing.T) (at string, before []string, x *Transaction) {
	t.Helper()
	at = room(t)
	testkit.Must(t, os.Mkdir(at+"/target", 0o755))
	shell(t, at+"/target", faultsBefore)
	return at, picture(t, at+"/target"), &Transaction{ID: "tx", Dir: at + "/target", Transitions: faultsList, Content: texts("new")}
}

// TestChangedMeanwhile: others change a name after it was checked. What was done is taken back, and the name is left as they made it.
func TestChangedMeanwhile(t *testing.T) {
	for name, x := range map[string]struct{ script, path, want string }{
		"content":     {"printf foreign >target/a", "/a", "a: somebody else changed it: it has 7 bytes, expected 3"},
		"kind":        {"rm target/a; ln -s / target/a", "/a", "a: somebody else changed it: it is a symlink"},
		"mode":        {"chmod 0777 target/b", "/b", "b: somebody else changed it: its mode is 0777, expected 0644"},
		"gone":        {"rm target/a", "/a", "a: somebody else changed it: it is not there"},
		"new name":    {"printf foreign >target/z", "/z", "z: somebody else changed it: it has 7 bytes"},
		"link parent": {"rm target/l; ln -s .. target/l", "/l", "l: somebody else changed it: its target is .., expected x"},
		"held":        {"printf foreign >target/d/held", "/d/held", "d: somebody else changed it: it holds something"},
	} {
		t.Run(name, func(t *testing.T) {
			at, before, tx := begun(t)
			j := open(t, at+"/journal")
			when(t, "after applying", func() { shell(t, at, x.script) })
			_, err := j.Commit(background, tx, nil)
			var u *UndoneError
			if !errors.As(err, &u) || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v, expected %q", err, x.want)
			}
			foreign := func(line string) bool {
				return strings.HasPrefix(line, fmt.Sprintf("%q", x.path)) || strings.HasPrefix(line, `"" `) || name == "held" && strings.HasPrefix(line, `"/d" `)
			}
			equal(t, name, slices.DeleteFunc(picture(t, at+"/target"), foreign), slices.DeleteFunc(before, foreign))
			if s := j.Status()[0]; s.Unfinished || s.Step != StepUndone && (s.Step != StepFailed || !strings.Contains(join(s.Left), strings.TrimPrefix(filepath.Dir(x.path), "/"))) {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestDirectorySwapped: a directory is replaced by a link to another place while its names are changed. Nothing there changes.
func TestDirectorySwapped(t *testing.T) {
	for _, at := range []string{"after applying", "make", "rename", "remove", "mkdir", "line applied"} {
		t.Run(at, func(t *testing.T) {
			dir := room(t)
			testkit.Must(t, os.MkdirAll(dir+"/target/d/e", 0o755))
			testkit.Must(t, os.MkdirAll(dir+"/outside/e", 0o755))
			for _, path := range []string{"target/d/f", "target/d/e/f", "outside/f", "outside/e/f"} {
				testkit.Write(t, filepath.Join(dir, path), []byte("old"))
			}
			before := picture(t, dir+"/outside")
			j := open(t, dir+"/journal")
			when(t, at, func() {
				testkit.Must(t, os.Rename(dir+"/target/d", dir+"/target/moved"))
				testkit.Must(t, os.Symlink("../outside", dir+"/target/d"))
			})
			list := []Transition{{"d/e/f", file("old"), file("new")}, {"d/f", file("old"), nil}, {"d/g", nil, file("new")}, {"d/e/h", nil, folder()}}
			_, err := j.Commit(background, &Transaction{ID: "tx", Dir: dir + "/target", Transitions: list, Content: texts("new")}, nil)
			if err == nil && at != "line applied" {
				t.Error("it was committed")
			}
			equal(t, "outside", picture(t, dir+"/outside"), before)
		})
	}
}

// TestRacing: another process swaps a directory and a link all the time. Nothing outside changes, whatever the commit says.
func TestRacing(t *testing.T) {
	dir := room(t)
	testkit.Must(t, os.MkdirAll(dir+"/outside", 0o755))
	testkit.Must(t, os.MkdirAll(dir+"/target/d", 0o755))
	testkit.Must(t, os.Symlink("../outside", dir+"/target/l"))
	var list []Transition
	for i := range 20 {
		name := fmt.Sprintf("f%d", i)
		testkit.Write(t, dir+"/outside/"+name, []byte("old"))
		testkit.Write(t, dir+"/target/d/"+name, []byte("old"))
		list = append(list, Transition{"d/" + name, file("old"), file("new")})
	}
	before := picture(t, dir+"/outside")
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, dir+"/target/d", unix.AT_FDCWD, dir+"/target/l", unix.RENAME_EXCHANGE)
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	refused := 0
	for i := range 60 {
		j, err := Open(fmt.Sprintf("%s/journal%d", dir, i))
		testkit.Must(t, err)
		if _, err := j.Commit(background, &Transaction{ID: "tx", Dir: dir + "/target", Transitions: list, Content: texts("new")}, nil); err != nil {
			refused++
		}
		j.Close()
	}
	close(stop)
	<-stopped
	equal(t, "outside", picture(t, dir+"/outside"), before)
	if refused == 0 {
		t.Error("no commit noticed anything")
	}
}

// TestBusy: one journal at a time works on a directory, and one process on a journal.
func TestBusy(t *testing.T) {
	at, _, x := begun(t)
	j := open(t, at+"/journal")
	if _, err := Open(at + "/journal"); !errors.Is(err, ErrBusy) {
		t.Errorf("the journal twice: %v", err)
	}
	other := open(t, at+"/other")
	when(t, "after applying", func() {
		if _, err := other.Commit(background, x, nil); !errors.Is(err, ErrBusy) {
			t.Errorf("the directory twice: %v", err)
		}
	})
	if _, err := j.Commit(background, x, nil); err != nil {
		t.Error(err)
	}
	var c *ConflictError
	if _, err := other.Commit(background, x, nil); !errors.As(err, &c) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestApart: a journal is no part of the directory, and the other way round.
func TestApart(t *testing.T) {
	at, _, x := begun(t)
	for _, name := range []string{at + "/target/journal", at + "/target/d/journal"} {
		if _, err := open(t, name).Commit(background, x, nil); err == nil || !strings.Contains(err.Error(), "must be apart") {
			t.Errorf("%s: %v", name, err)
		}
	}
	j := open(t, at+"/journal")
	testkit.Must(t, os.Mkdir(at+"/journal/target", 0o755))
	x.Dir = at + "/journal/target"
	if _, err := j.Commit(background, x, nil); err == nil || !strings.Contains(err.Error(), "must be apart") {
		t.Error(err)
	}
	testkit.Must(t, os.Mkdir(at+"/open", 0o755))
	if _, err := Open(at + "/open"); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Error(err)
	}
}

// scripted is a driver that does what a test says.
type scripted struct {
	done, undone []string
	fail, keep   map[string]error // by keys
}

func (s *scripted) Do(_ context.Context, e Effect) (json.RawMessage, error) {
	if err := s.fail[e.Key]; err != nil {
		return nil, err
	}
	s.done = append(s.done, e.Key)
	return nil, nil
}

func (s *scripted) Undo(_ context.Context, e Effect, _ json.RawMessage) error {
	if err := s.fail["undo "+e.Key]; err != nil {
		return err
	}
	s.undone = append(s.undone, e.Key)
	return nil
}

func (s *scripted) CannotUndo(e Effect, _ json.RawMessage) string {
	if err := s.keep[e.Key]; err != nil {
		return err.Error()
	}
	return ""
}

// TestEffectFails: effects before it are undone in reverse, then the directory; what cannot be is named.
func TestEffectFails(t *testing.T) {
	at, before, x := begun(t)
	for _, key := range []string{"1", "2", "3", "4"} {
		x.Effects = append(x.Effects, Effect{Key: key})
	}
	d := &scripted{fail: map[string]error{"4": errors.New("it says 400")}}
	j := open(t, at+"/journal")
	res, err := j.Commit(background, x, d)
	var u *UndoneError
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "4: it says 400; all that was done before is taken back") || res.Step != StepUndone || strings.Join(d.undone, "") != "321" {
		t.Fatalf("%v %+v %v", err, res, d)
	}
	equal(t, "taken back", picture(t, at+"/target"), before)

	d = &scripted{fail: map[string]error{"4": ErrUnsure, "undo 1": errors.New("it says 500")}, keep: map[string]error{"3": errors.New("mail is gone")}}
	res, err = j.Commit(background, x, d)
	if !errors.As(err, &u) || res.Step != StepFailed || strings.Join(res.Left, "; ") != "4: it is not known whether it happened; 3: mail is gone; 1: it says 500" {
		t.Fatalf("%v %+v", err, res)
	}
	equal(t, "taken back", picture(t, at+"/target"), before)
	if _, err := j.Commit(background, x, d); !errors.Is(err, ErrState) {
		t.Errorf("a commit of what has failed: %v", err)
	}
	j.Close()
	j = open(t, at+"/journal") // what failed can be tried once more
	d.fail, d.undone = nil, nil
	res, err = j.Revert(background, "tx", d)
	if err != nil || res.Step != StepFailed || strings.Join(d.undone, "") != "1" || len(res.Left) != 2 {
		t.Errorf("%v %+v %v", err, res, d)
	}
}

// TestCannotUndo: what cannot be undone is said before.
func TestCannotUndo(t *testing.T) {
	at, _, x := begun(t)
	x.Effects = []Effect{{Key: "1"}, {Key: "2"}}
	d := &scripted{keep: map[string]error{"2": errors.New("mail is gone")}}
	j := open(t, at+"/journal")
	if _, err := j.Commit(background, x, d); err != nil {
		t.Fatal(err)
	}
	list, err := j.CannotUndo("tx", d)
	if err != nil || strings.Join(list, ";") != "2: mail is gone" {
		t.Errorf("%q %v", list, err)
	}
	if list, err = j.CannotUndo("tx", nil); err != nil || len(list) != 2 {
		t.Errorf("without a driver: %q %v", list, err)
	}
	if _, err := j.CannotUndo("other", d); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	res, err := j.Revert(background, "tx", d)
	if err != nil || res.Step != StepFailed || strings.Join(res.Left, ";") != "2: mail is gone" {
		t.Errorf("%+v %v", res, err)
	}
}

// TestInterrupted: between effects the transaction stops, and goes on at the next call.
func TestInterrupted(t *testing.T) {
	at, before, x := begun(t)
	x.Effects = []Effect{{Key: "1"}, {Key: "2"}}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	when(t, "after effect_receipt", cancel)
	j := open(t, at+"/journal")
	d := &scripted{}
	if _, err := j.Commit(ctx, x, d); !errors.Is(err, ErrInterrupted) || !j.Status()[0].Unfinished {
		t.Fatal(err)
	}
	if _, err := j.Commit(background, &Transaction{ID: "other", Dir: x.Dir}, nil); !errors.Is(err, ErrState) {
		t.Errorf("another one before: %v", err)
	}
	if res, err := j.Commit(background, x, d); err != nil || res.Step != StepCommitted || strings.Join(d.done, "") != "12" {
		t.Fatalf("%+v %v %v", res, err, d)
	}
	if res, err := j.Revert(background, "tx", d); err != nil || res.Step != StepReverted || strings.Join(d.undone, "") != "21" {
		t.Fatalf("%+v %v %v", res, err, d)
	}
	equal(t, "reverted", picture(t, at+"/target"), before)
	ctx, cancel = context.WithCancel(background) // while the directory changes, all is taken back
	defer cancel()
	when(t, "rename", cancel)
	x.ID = "next"
	var u *UndoneError
	if _, err := j.Commit(ctx, x, d); !errors.As(err, &u) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	equal(t, "taken back", picture(t, at+"/target"), before)
}

// TestRevertConflicts: what was changed after the commit is not overwritten.
func TestRevertConflicts(t *testing.T) {
	for script, want := range map[string]string{
		"printf changed >a":   "a: somebody else changed it: it has 7 bytes",
		"chmod 600 a":         "a: somebody else changed it: its mode is 0600",
		"rm z":                "z: somebody else changed it: it is not there",
		"printf x >b":         "b: somebody else changed it: it is still there",
		"printf x >l/other":   "l: it holds other, which is no part of the change",
		"ln a other":          "a: somebody else changed it: the file has 2 names, expected 1",
		"rm -r l; ln -s .. l": "l: somebody else changed it: it is a symlink",
		"setfattr -n user.x -v 1 a || python3 -c 'import os; os.setxattr(\"a\", \"user.x\", b\"1\")'": "a: somebody else changed it: it has an attribute user.x",
	} {
		at, before, x := begun(t)
		j := open(t, at+"/journal")
		_, err := j.Commit(background, x, nil)
		testkit.Must(t, err)
		shell(t, at+"/target", "cp -a . ../committed; "+script)
		now := picture(t, at+"/target")
		_, err = j.Revert(background, "tx", nil)
		var c *ConflictError
		if !errors.As(err, &c) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", script, err, want)
		}
		equal(t, script, picture(t, at+"/target"), now)
		shell(t, at, "rm -r target/*; cp -a committed/. target; touch target/a")
		if res, err := j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted {
			t.Fatalf("%s: %+v %v", script, res, err)
		}
		equal(t, script, picture(t, at+"/target"), before)
	}
}

// TestStates: calls that make no sense.
func TestStates(t *testing.T) {
	at, before, x := begun(t)
	j := open(t, at+"/journal")
	if _, err := j.Revert(background, "tx", nil); !errors.Is(err, ErrState) {
		t.Errorf("not known: %v", err)
	}
	if _, err := j.Commit(background, x, nil); err != nil {
		t.Fatal(err)
	}
	other := *x
	other.Transitions = other.Transitions[1:]
	if _, err := j.Commit(background, &other, nil); !errors.Is(err, ErrState) {
		t.Errorf("another change: %v", err)
	}
	other = *x
	testkit.Must(t, os.Mkdir(at+"/elsewhere", 0o755))
	other.Dir = at + "/elsewhere"
	if _, err := j.Commit(background, &other, nil); !errors.Is(err, ErrState) {
		t.Errorf("elsewhere: %v", err)
	}
	if res, err := j.Revert(background, "tx", nil); err != nil || res.Already {
		t.Error(err)
	}
	if res, err := j.Revert(background, "tx", nil); err != nil || !res.Already {
		t.Errorf("twice: %+v %v", res, err)
	}
	equal(t, "reverted", picture(t, at+"/target"), before)
	other = Transaction{ID: "e", Dir: x.Dir, Effects: []Effect{{Key: "1"}, {Key: "1"}}}
	if _, err := j.Commit(background, &other, &scripted{}); err == nil {
		t.Error("two effects of one key")
	}
	if _, err := j.Commit(background, &Transaction{ID: "e", Dir: x.Dir, Effects: []Effect{{Key: "1"}}}, nil); err == nil {
		t.Error("no driver")
	}
	var b bytes.Buffer
	for _, r := range j.Log() {
		fmt.Fprintf(&b, "%s ", r.Step)
	}
	if got := b.String(); got != "begin checked saved applying applied committed reverting reverted " {
		t.Error(got)
	}
}

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// killed tells a process of this test binary what to do, and at which step to kill itself.
const killed = "RUNNER_JOURNAL_KILLED"

// order is the value of killed.
type order struct {
	Dir    string `json:"dir"`
	Revert bool   `json:"revert"`
	At     int    `json:"at"` // 0: never
}

func TestMain(m *testing.M) {
	testkit.Heed()
	if v := os.Getenv(killed); v != "" {
		os.Exit(obey(v))
	}
	os.Exit(m.Run())
}

// obey is the process that is killed. It prints how many steps there were, if it comes to its end.
func obey(v string) int {
	var o order
	if err := json.Unmarshal([]byte(v), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	n := 0
	step = func(string) {
		if n++; n == o.At {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	j, err := Open(o.Dir + "/journal")
	if err == nil {
		defer j.Close()
		if o.Revert {
			_, err = j.Revert(background, "tx", &outside{o.Dir + "/outside"})
		} else {
			var x *Transaction
			if x, err = asked(o.Dir); err == nil {
				_, err = j.Commit(background, x, &outside{o.Dir + "/outside"})
			}
		}
	}
	if err != nil && !errors.Is(err, ErrState) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(n)
	return 0
}

// outside is a driver whose effects are files. It does the same key once.
type outside struct{ dir string }

func (o *outside) Do(_ context.Context, e Effect) (json.RawMessage, error) {
	at("do")
	err := os.WriteFile(filepath.Join(o.dir, e.Key), e.Data, 0o600)
	at("done")
	return json.RawMessage(`{"file":"` + e.Key + `"}`), err
}

func (o *outside) Undo(_ context.Context, e Effect, receipt json.RawMessage) error {
	if string(receipt) != `{"file":"`+e.Key+`"}` {
		return fmt.Errorf("the receipt is %s", receipt)
	}
	at("undo")
	err := os.Remove(filepath.Join(o.dir, e.Key))
	at("did undo")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (o *outside) CannotUndo(Effect, json.RawMessage) string { return "" }

// wish is what a test asks for, kept in a file for the process that is killed.
type wish struct {
	List    []Transition
	Effects []Effect
}

// asked reads the wish. Paths of tests for it are text.
func asked(dir string) (*Transaction, error) {
	b, err := os.ReadFile(dir + "/wish")
	if err != nil {
		return nil, err
	}
	var w wish
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, err
	}
	open := contents(quiet{}, dir+"/wanted")
	return &Transaction{ID: "tx", Dir: dir + "/target", Transitions: w.List, Content: open, Effects: w.Effects}, nil
}

// quiet is a test for helpers in a process that is none.
type quiet struct{ testing.TB }

func (quiet) Helper()        {}
func (quiet) Fatal(a ...any) { panic(fmt.Sprint(a...)) }

// scene is one change to be killed in.
type scene struct {
	name, before, after string // shell commands in the directory; after follows before
	closed              string // paths in the directory, which get modes that keep their owner out, before and afterwards
}

var scenes = []scene{
	{"add", "mkdir -p a/b", "mkdir -p a/b/c d; echo 1 >a/b/c/f; echo 2 >d/g; ln -s /etc d/l; mkfifo a/p; echo r >r", ""},
	{"delete", "mkdir -p a/b/c; echo 1 >a/b/c/f; ln -s x a/l; mkfifo a/p; echo k >keep; chmod 0555 a/b/c", "chmod -R u+w a; rm -rf a", ""},
	{"modify", "mkdir a; echo one >a/f; echo two >g; ln -s a l; chmod 0640 g", "echo another >a/f; echo x >>g; ln -sfn b l", ""},
	{"linked files", "echo one >a; ln a b; mkdir d; ln a d/c; echo k >k", "echo two2 >a; echo again >>a; echo >n", ""},
	{"linked, same size", "echo one >b; ln b c; mkdir a; ln b a/z", "echo two >b", ""},
	{"join", "echo one >a; echo two >b; echo three >c; ln c d", "rm b c; ln a b; ln d e; ln a f", ""},
	{"split", "echo one >a; ln a b; ln a c; ln a d; echo x >x", "rm c; echo one >c; rm a", ""},
	{"directory to link", "mkdir -p d/e; echo 1 >d/e/f; echo 2 >d/g", "rm -r d; ln -s /tmp d", ""},
	{"link to directory", "ln -s /tmp d; ln -s x e", "rm d e; mkdir -p d/e e; echo 1 >d/e/f; chmod 0500 d/e", ""},
	{"file to directory", "echo 1 >a; mkfifo p; mkdir q; echo 3 >q/x; echo 4 >h; ln h i", "rm a p i; mkdir a p i; echo 2 >a/f; rm -r q; echo q >q; ln a/f i/f", ""},
	{"kinds", "echo 1 >a; ln -s x b; mkfifo c; echo 4 >d; ln -s y e", "rm *; ln -s z a; echo b >b; echo c >c; mkfifo d; mkfifo e", ""},
	{"modes", "mkdir d; echo 1 >f; echo 2 >g; ln g h; chmod 0600 f; mkdir s; chmod 1777 s", "chmod 0511 d; chmod 4755 f; chmod 0640 g; chmod 0700 s; chmod 0750 .", ""},
	{"closed directories", "mkdir -p a/b; echo 1 >a/b/f; echo 2 >a/g; chmod 0555 a/b a", "chmod 0755 a a/b; echo 3 >a/b/f; rm a/g; echo 4 >a/b/n; chmod 0511 a/b; chmod 0555 a", ""},
	{"kept out", "mkdir -p a/b c d/e; echo 1 >a/b/f; echo 2 >c/f; echo 3 >g; echo 4 >d/e/f", "echo 5 >a/b/f; echo 6 >a/n; rm -r c; mkdir a/m; echo 7 >>g; echo 8 >d/e/n", "a/b/f a/b a c/f c g d/e d"},
	{"moved", "mkdir a; echo content >a/f; touch -d 2001-02-03 a/f; echo k >k", "mkdir b; mv a/f b/g; mv k a/k", ""},
}

// TestKillMatrix kills a commit at each step, and a revert at each step, in processes that are really killed; then the transaction
// goes on, or is taken back, or is killed once more before. The directory is as before or as wanted, never in between.
func TestKillMatrix(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) { killEach(t, s, 1) })
	}
}

// TestKilled is a part of the matrix.
func TestKilled(t *testing.T) {
	for i, s := range scenes {
		t.Run(s.name, func(t *testing.T) { killEach(t, s, 17+i%3) })
	}
}

func killEach(t *testing.T, s scene, stride int) {
	rnd := rand.New(rand.NewPCG(uint64(len(s.name)), 4))
	set := setOf(t, s)
	first := stageOf(t, s, set)
	steps := first.child(t, false, 0)
	first.wanted(t)
	back := first.child(t, true, 0)
	first.restored(t)
	if steps < 40 || back < 20 {
		t.Fatalf("%d steps of commit, %d of revert: too few to be all", steps, back)
	}
	for at := 1 + rnd.IntN(stride); at <= steps; at += stride {
		for _, way := range []string{"on", "back", "twice"} {
			st := stageOf(t, s, set)
			st.child(t, false, at)
			if way == "twice" {
				st.child(t, false, 1+rnd.IntN(steps))
			}
			st.goOn(t, way)
			if t.Failed() {
				t.Fatalf("killed at step %d of %d of the commit, then %s", at, steps, way)
			}
			st.drop(t)
		}
	}
	for at := 1 + rnd.IntN(stride); at <= back; at += stride {
		st := stageOf(t, s, set)
		st.child(t, false, 0)
		st.child(t, true, at)
		if at%3 == 0 {
			st.child(t, true, 1+rnd.IntN(back))
		}
		st.revert(t)
		if t.Failed() {
			t.Fatalf("killed at step %d of %d of the revert", at, back)
		}
		st.drop(t)
	}
}

// stage is a directory that a scene is played in.
type stage struct {
	dir    string
	before []string
	closed []string
	modes  []os.FileMode
}

// setOf makes the directory of a scene as it is before, and as it is wanted. Thousands of stages are copies of it.
func setOf(t *testing.T, s scene) (dir string) {
	t.Helper()
	dir = room(t)
	for name, script := range map[string]string{"target": s.before, "wanted": s.before + "\n" + s.after} {
		testkit.Must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		c := exec.Command("sh", "-ec", script)
		c.Dir = filepath.Join(dir, name)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	return dir
}

func stageOf(t *testing.T, s scene, set string) *stage {
	t.Helper()
	st := &stage{dir: room(t)}
	testkit.Must(t, os.Mkdir(st.dir+"/outside", 0o700))
	copyTree(t, st.dir, set+"/target", set+"/wanted")
	list := change(t, st.dir+"/target", st.dir+"/wanted")
	st.close(t, s, &list)
	w := wish{list, []Effect{{Key: "one", Data: json.RawMessage(`1`)}, {Key: "two", Data: json.RawMessage(`2`)}}}
	b, err := json.Marshal(w)
	testkit.Must(t, err)
	testkit.Write(t, st.dir+"/wish", b)
	st.before = picture(t, st.dir+"/target")
	return st
}

// close takes rights away from the owner. What is compared with the wanted tree are then contents, and these modes.
func (st *stage) close(t *testing.T, s scene, list *[]Transition) {
	t.Helper()
	modes := []os.FileMode{0, 0o311, 0o700, 0o444}
	for i, path := range strings.Fields(s.closed) {
		before, after := modes[i%len(modes)], modes[(i+1)%len(modes)]
		at := slices.IndexFunc(*list, func(x Transition) bool { return x.Path == path })
		if at < 0 && path == "a" {
			after = before // it is no part of the change
		} else if at < 0 {
			info, err := os.Lstat(filepath.Join(st.dir, "target", path))
			testkit.Must(t, err)
			*list = append(*list, Transition{path, folder(), folder()})
			if at = len(*list) - 1; !info.IsDir() {
				t.Fatal(path)
			}
		}
		testkit.Must(t, os.Chmod(filepath.Join(st.dir, "target", path), before))
		st.closed, st.modes = append(st.closed, path), append(st.modes, after)
		if at < 0 {
			continue
		}
		x := &(*list)[at]
		if x.From.Mode = uint32(before); x.To != nil {
			x.To.Mode = uint32(after)
		}
	}
}

func (st *stage) drop(t *testing.T) { removeAll(t, st.dir) }

// child runs a process that is killed at a step, or ends by itself. It returns how many steps there were.
func (st *stage) child(t *testing.T, revert bool, at int) (steps int) {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	b, err := json.Marshal(order{st.dir, revert, at})
	testkit.Must(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), killed+"="+string(b))
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err == nil {
		fmt.Sscan(string(out), &steps)
		return steps
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || at == 0 {
		t.Fatalf("step %d: %v %s", at, err, errs.String())
	}
	return 0
}

// goOn calls again after a kill in a commit.
func (st *stage) goOn(t *testing.T, way string) {
	t.Helper()
	j, err := Open(st.dir + "/journal")
	testkit.Must(t, err)
	defer j.Close()
	x, err := asked(st.dir)
	testkit.Must(t, err)
	if way == "back" {
		_, err := j.Revert(background, "tx", &outside{st.dir + "/outside"})
		if err != nil && !errors.Is(err, ErrState) {
			t.Errorf("revert: %v", err)
		}
		st.restored(t)
		if err == nil && j.log.txs["tx"].step == StepReverted {
			return
		}
	}
	res, err := j.Commit(background, x, &outside{st.dir + "/outside"})
	if err != nil || res.Step != StepCommitted {
		t.Errorf("commit: %+v %v", res, err)
		return
	}
	st.wanted(t)
	if res, err := j.Revert(background, "tx", &outside{st.dir + "/outside"}); err != nil || res.Step != StepReverted {
		t.Errorf("revert: %+v %v", res, err)
	}
	st.restored(t)
}

func (st *stage) revert(t *testing.T) {
	t.Helper()
	j, err := Open(st.dir + "/journal")
	testkit.Must(t, err)
	defer j.Close()
	if res, err := j.Revert(background, "tx", &outside{st.dir + "/outside"}); err != nil || res.Step != StepReverted {
		t.Errorf("revert: %+v %v", res, err)
	}
	st.restored(t)
	x, err := asked(st.dir)
	testkit.Must(t, err)
	if _, err := j.Commit(background, x, &outside{st.dir + "/outside"}); !errors.Is(err, ErrState) {
		t.Errorf("a commit of what was reverted: %v", err)
	}
}

// wanted checks that all is done.
func (st *stage) wanted(t *testing.T) {
	t.Helper()
	for i, path := range st.closed {
		if info, err := os.Lstat(filepath.Join(st.dir, "target", path)); os.Geteuid() == 0 && err == nil && info.Mode().Perm() != st.modes[i] {
			t.Errorf("%s has mode %o, expected %o", path, info.Mode().Perm(), st.modes[i])
		}
	}
	restore := ease(t, st.dir+"/target")
	defer restore()
	for i, path := range st.closed {
		if mode, ok := eased[st.dir+"/target"][filepath.Join(st.dir, "target", path)]; ok && os.FileMode(mode).Perm() != st.modes[i] {
			t.Errorf("%s has mode %o, expected %o", path, mode, st.modes[i])
		}
	}
	one, two := scan(t, st.dir+"/target"), scan(t, st.dir+"/wanted")
	for _, list := range [][]tree.Entry{one, two} {
		for i := range list {
			if st.closed != nil {
				list[i].Mode = 0
			}
		}
	}
	if d := tree.Diff(one, two); len(d) > 0 {
		t.Errorf("%d names differ, the first: %+v %+v", len(d), d[0].Before, d[0].After)
	}
	for _, key := range []string{"one", "two"} {
		if !testkit.Exists(st.dir + "/outside/" + key) {
			t.Errorf("the effect %s is not done", key)
		}
	}
}

// restored checks that all is as before.
func (st *stage) restored(t *testing.T) {
	t.Helper()
	equal(t, "taken back", picture(t, st.dir+"/target"), st.before)
	if list := testkit.Names(t, st.dir+"/outside"); len(list) > 0 {
		t.Errorf("effects are left: %q", list)
	}
}

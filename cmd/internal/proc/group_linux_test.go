package proc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestGroupsAreUsedAgain: only one that is as it was made.
func TestGroupsAreUsedAgain(t *testing.T) {
	g := &groups{}
	g.keep()
	one := g.take()
	if one == nil {
		testkit.Skip(t, "cgroups cannot be made here")
		return
	}
	one.release()
	two := g.take()
	if two != one {
		t.Errorf("another one: %v", two)
	}
	for name, change := range map[string]func(dir string) error{
		"a cgroup below it": func(dir string) error { _, err := cgroup.MakeBelow(dir, "x-"); return err },
		"a setting":         func(dir string) error { return os.WriteFile(dir+"/cgroup.max.depth", []byte("3"), 0) },
		"a look":            func(dir string) error { _, err := os.ReadFile(dir + "/cgroup.procs"); return err },
		"an attribute":      func(dir string) error { return unix.Setxattr(dir, "user.x", []byte("y"), 0) },
		"its mode":          func(dir string) error { return os.Chmod(dir, 0o711) },
	} {
		testkit.Must(t, change(two.dir))
		two.release()
		three := g.take()
		if three == two {
			t.Errorf("one with %s", name)
		}
		two = three
	}
	two.release()
	g.close()
	if list, _ := filepath.Glob(g.in + "/proc-*"); cgroup.Exists(one.dir) == nil && len(list) > 0 && slices.Contains(list, one.dir) {
		t.Error("it is there after the end")
	}
}

// TestGroupsOfTheDead: the cgroup of a runner that was killed goes with the next start, that of one that lives stays.
func TestGroupsOfTheDead(t *testing.T) {
	own, err := cgroup.Own()
	if err != nil {
		testkit.Skip(t, "no cgroup: "+err.Error())
	}
	in, err := cgroup.MakeBelow(own, "test-")
	if err != nil {
		testkit.Skip(t, "cgroups cannot be made here: "+err.Error())
	}
	defer cgroup.Remove(in)
	g := &groups{}
	g.once.Do(func() { g.start(in) })
	defer g.close()
	dead, lives := g.take(), g.take()
	if dead == nil || lives == nil || dead.dir == lives.dir {
		t.Fatal("no groups")
	}
	defer lives.release()
	dead.f.Close() // its lock ends, as when its runner is killed
	cgroup.ClearLeftovers(in, groupMark)
	if cgroup.Exists(dead.dir) == nil || cgroup.Exists(lives.dir) != nil {
		t.Errorf("the dead one is there: %v, the living one: %v", cgroup.Exists(dead.dir) == nil, cgroup.Exists(lives.dir) == nil)
	}
}

// TestGroupRefuses: where nothing can be started in a cgroup, programs run without one, and their descendants end all the same.
func TestGroupRefuses(t *testing.T) {
	r := newRunner(t, nil)
	r.groups.keep()
	g := r.groups.take()
	if g == nil {
		testkit.Skip(t, "cgroups cannot be made here")
		return
	}
	if err := os.WriteFile(g.dir+"/cgroup.type", []byte("threaded"), 0); err != nil {
		testkit.Skip(t, "no threaded cgroups", err)
	}
	r.groups.mu.Lock()
	r.groups.idle = append(r.groups.idle, g)
	r.groups.mu.Unlock()
	p := &Pool{Runner: r}
	if o := p.Run(shell("(setsid sleep 300 &); echo ran").Append(nil), enough.Append(nil)); string(o.Stdout) != "ran\n" {
		t.Errorf("%v %s %q", o.Code, o.Why, o.Stdout)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
	if next := r.groups.take(); next == g {
		t.Error("it is used again")
	} else {
		next.release()
	}
}

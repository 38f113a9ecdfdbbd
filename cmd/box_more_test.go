//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBoxOneProcessor: with --cpu the program and its children have this processor and no other, and the record says so.
func TestBoxOneProcessor(t *testing.T) {
	testkit.Programs(t, "processors", "nproc")
	var set unix.CPUSet
	testkit.Must(t, unix.SchedGetaffinity(0, &set))
	for _, c := range callers(t) {
		for n := range runtime.NumCPU() {
			if !set.IsSet(n) {
				continue
			}
			dir := c.dir(t) + "/r"
			o := call(t, c.box(t, "--cpu", fmt.Sprint(n), "-o", dir, "--", "sh", "-c", "nproc; (sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)"))
			if want := fmt.Sprintf("1\n%d\n", n); o.code != 0 || o.stdout != want {
				t.Errorf("%s: %v, expected %q", c.name, o, want)
			}
			if b := readBox(t, dir).box; b.CPU == nil || int(*b.CPU) != n {
				t.Errorf("%s: %+v", c.name, b)
			}
		}
	}
}

// TestBoxGitClone: what BOX.md says of hard links to files of the base, and what it says to type works.
func TestBoxGitClone(t *testing.T) {
	testkit.Programs(t, "git in a box", "git")
	for _, c := range callers(t) {
		dir := c.dir(t)
		repo := command(t, "sh", "-ec", `cd "$0"; mkdir base; git init -q base/repo; cd base/repo; echo a >a; git add a; git -c user.name=a -c user.email=a@b commit -qm a`, dir)
		repo.SysProcAttr = c.box(t).SysProcAttr
		repo.Env = append(repo.Env, "HOME="+dir)
		if o := call(t, repo); o.code != 0 {
			t.Fatal(o)
		}
		for _, x := range []struct {
			says, script string
			flags        []string
		}{
			{"hardlink different from source", "git clone -q repo copy", []string{"--base", dir + "/base"}},
			{"", "git clone -q --no-hardlinks repo copy && cmp repo/a copy/a", []string{"--base", dir + "/base"}},
			{"", `git clone -q "file://$PWD/repo" copy && cmp repo/a copy/a`, []string{"--base", dir + "/base"}},
			{"", "mkdir x && cp -r repo x && git clone -q x/repo copy && cmp repo/a copy/a", []string{"--base", dir + "/base"}},
		} {
			cmd := c.box(t, append(x.flags, "--", "sh", "-c", x.script)...)
			cmd.Env = append(cmd.Env, "HOME=/nonexistent")
			if o := call(t, cmd); o.code == 0 && x.says != "" {
				t.Logf("git does not compare the names of a link: %q works too", x.script)
			} else if (o.code == 0) != (x.says == "") || !strings.Contains(o.stderr, x.says) {
				t.Errorf("%s, %s: %v", c.name, x.script, o)
			}
		}
	}
}

// TestBoxDevices: devices in a base cannot be opened, and what an overlay would take for a mark of its own is refused: the program
// is never said to have removed it.
func TestBoxDevices(t *testing.T) {
	c := callers(t)[0]
	if c.uid != 0 {
		testkit.Skip(t, "bases with devices", "needs root")
	}
	base, out := c.dir(t), c.dir(t)
	c.sh(t, base, "mknod null c 1 3; mknod disk b 7 0; mkdir opaque; echo x >opaque/f")
	testkit.Must(t, unix.Setxattr(filepath.Join(base, "opaque"), "trusted.overlay.opaque", []byte("y"), 0))
	script := "ls; ls opaque; ! cat null 2>/dev/null && ! (echo >null) 2>/dev/null && ! head -c 1 disk 2>/dev/null && ! mknod n c 1 3 2>/dev/null; rm -f disk"
	o := call(t, c.box(t, "--base", base, "-o", out+"/a", "--", "sh", "-c", script))
	if b := readBox(t, out+"/a"); o.code != 0 || o.stdout != "disk\nnull\nopaque\nf\n" || !slices.Equal(b.said(), []string{"delete disk"}) || b.box.Workspace != schemas.WorkspaceOverlay {
		t.Errorf("%v %q", o, b.said())
	}
	c.sh(t, base, "mknod opaque/white c 0 0")
	if o := call(t, c.box(t, "--base", base, "--", "true")); o.code != 125 || !strings.Contains(o.stderr, "box_no_overlay") || !strings.Contains(o.stderr, "opaque/white") {
		t.Error(o)
	}
	if o := call(t, c.box(t, "--base", base, "--fallback", "copy", "--", "true")); o.code != 125 || !strings.Contains(o.stderr, "devices") {
		t.Error(o)
	}
}

// TestBoxFallbackNoted: the health of a run says that its workspace was a copy, and so does the report.
func TestBoxFallbackNoted(t *testing.T) {
	list := callers(t)
	if len(list) < 2 {
		testkit.Skip(t, "bases with files of others", "needs root")
	}
	c := list[1]
	base, file := c.dir(t), filepath.Join(c.dir(t), "run.tar.gz")
	testkit.Must(t, os.WriteFile(base+"/roots", []byte("x"), 0o644))
	cmd := c.box(t)
	cmd.Path, cmd.Args = tool("runner-exec"), []string{"runner-exec", "--no-kernel", "--archive", file, "--", tool("runner-box"), "--base", base, "--fallback", "copy", "--", "true"}
	if o := call(t, cmd); o.code != 0 {
		t.Fatal(o)
	}
	if health := string(openArchive(t, file).members[schemas.MemberHealth]); !strings.Contains(health, `"s8_box: workspace=copy changes=0 `) {
		t.Error(health)
	}
	if o := call(t, command(t, "runner-verify", "-v", file)); o.code != 0 || !strings.Contains(o.stdout, "a copy of the base, as no overlay could be mounted") {
		t.Error(o)
	}
}

// TestBoxManyContents: what has no room in an archive is told as not known, and the rest of the record is there.
func TestBoxManyContents(t *testing.T) {
	testkit.Programs(t, "many files", "python3")
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	file := filepath.Join(t.TempDir(), "run.tar.gz")
	o := call(t, command(t, "runner-exec", "--no-kernel", "--archive", file, "--", tool("runner-box"), "--", "python3", "-c", "for i in range(30000): open('f%d' % i, 'w').write(str(i))"))
	o.expect(t, 0)
	o = call(t, command(t, "runner-verify", file))
	o.expect(t, 0)
	box, err := schemas.ParseBox(openArchive(t, file).members[schemas.MemberRunBox])
	testkit.Must(t, err)
	if box.Unread != 30_000-(schemas.MaxBlobs-4096) || box.Changes[schemas.ChangeAdd] != 30_000 {
		t.Errorf("%+v", box)
	}
}

// TestBoxBrokenBase: a file that is named for the base and is no whole tar is named, with what was expected and what to type, and nothing runs.
func TestBoxBrokenBase(t *testing.T) {
	for _, c := range callers(t) {
		dir := c.dir(t)
		c.sh(t, dir, "mkdir d; head -c 5000 /dev/urandom >d/f; tar -C d -czf whole.tar.gz .; tar -C d -cf whole.tar .; head -c 4000 whole.tar >cut.tar; head -c 700 whole.tar.gz >cut.tar.gz; printf x >tiny; printf '\\037\\213' >tiny.gz; : >empty; printf '\\037\\213garbage, and more of it' >bad.gz; tail -c +201 whole.tar >middle.tar")
		for _, name := range []string{"cut.tar", "cut.tar.gz", "tiny", "tiny.gz", "empty", "bad.gz", "middle.tar"} {
			o := call(t, c.box(t, "--base", dir+"/"+name, "--", "echo", "ran"))
			if o.code != 125 || o.stdout != "" || !strings.Contains(o.stderr, dir+"/"+name+" is no whole tar: ") || !strings.Contains(o.stderr, "expected a directory, or a tar") || !strings.Contains(o.stderr, "hint: --base DIR, or ") {
				t.Errorf("%s: %s: %v", c.name, name, o)
			}
		}
		for _, name := range []string{"whole.tar", "whole.tar.gz", "d"} {
			if o := call(t, c.box(t, "--base", dir+"/"+name, "--", "test", "-s", "f")); o.code != 0 {
				t.Errorf("%s: %s: %v", c.name, name, o)
			}
		}
	}
}

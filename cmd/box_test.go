//go:build linux

package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// boxWorks asks runner-box what it can do here.
var boxWorks = sync.OnceValue(func() error {
	out, err := exec.Command(tool("runner-box"), "--probe").CombinedOutput()
	if err != nil {
		return fmt.Errorf("runner-box --probe: %w: %s", err, out)
	}
	return nil
})

// caller is somebody who runs boxes.
type caller struct {
	name string
	uid  uint32
	own  bool // who we are
}

// callers are root and somebody else, or without root who we are.
func callers(t *testing.T) []caller {
	t.Helper()
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	if os.Geteuid() != 0 {
		testkit.Note(t, "boxes of root", "needs root")
		return []caller{{"us", uint32(os.Geteuid()), true}}
	}
	if !confine.MayAdminister(0) {
		testkit.Missing(t, "boxes of root", "needs CAP_SYS_ADMIN")
	}
	return []caller{{"root", 0, true}, {"user", 4242, false}}
}

// box is a call of runner-box by c.
func (c caller) box(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, "runner-box", args...)
	cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin")
	if !c.own {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	}
	return cmd
}

// dir is an empty directory of the caller.
func (c caller) dir(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	if !c.own {
		testkit.Must(t, os.Chown(dir, int(c.uid), int(c.uid)))
	}
	return dir
}

// sh runs a script as the caller, outside of any box.
func (c caller) sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := command(t, "/bin/sh", "-c", script)
	cmd.Dir = dir
	if !c.own {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	}
	o := call(t, cmd)
	if o.code != 0 {
		t.Fatal(script, o)
	}
	return o.stdout
}

// boxRecord is what a record says.
type boxRecord struct {
	changes []*schemas.FileChange
	box     *schemas.Box
	status  schemas.Status
	raw     []byte
}

func readBox(t *testing.T, dir string) *boxRecord {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "box.ndjson"))
	testkit.Must(t, err)
	r, err := stream.NewReader(bytes.NewReader(raw), "box.ndjson", schemas.StreamBox)
	testkit.Must(t, err)
	b := &boxRecord{raw: raw}
	for {
		rec, err := r.Next()
		if err != nil {
			break
		}
		if rec.Schema == schemas.SchemaBox {
			b.box, err = schemas.ParseBox(rec.Bytes)
			testkit.Must(t, err)
			continue
		}
		c, err := schemas.ParseFileChange(rec.Bytes)
		testkit.Must(t, err)
		b.changes = append(b.changes, c)
	}
	trailer := r.Trailer()
	if trailer == nil || b.box == nil {
		t.Fatal("no seal, or no box")
	}
	b.status = trailer.Status
	return b
}

// said are the changes as text.
func (b *boxRecord) said() (list []string) {
	for _, c := range b.changes {
		list = append(list, c.Op+" "+c.Path)
	}
	return list
}

// state is what find(1) and sha256sum(1) say of a directory: a line for each name.
const state = `find . -mindepth 1 -printf '%P|%y|%m|%l\n' | LC_ALL=C sort; find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2`

// after applies a record to a base's state, as text of the same form.
func (b *boxRecord) after(t *testing.T, before string) string {
	t.Helper()
	names, sums := map[string]string{}, map[string]string{}
	for line := range strings.Lines(before) {
		line = strings.TrimSuffix(line, "\n")
		if name, rest, ok := strings.Cut(line, "|"); ok {
			names[name] = rest
		} else if sum, name, ok := strings.Cut(line, "  ./"); ok {
			sums[name] = sum
		}
	}
	letter := map[string]string{"file": "f", "dir": "d", "symlink": "l", "fifo": "p", "socket": "s"}
	for _, c := range b.changes {
		delete(names, c.Path)
		delete(sums, c.Path)
		if s := c.After; s != nil {
			names[c.Path] = fmt.Sprintf("%s|%o|%s", letter[s.Kind], s.Mode, s.Target)
		}
	}
	for _, c := range b.changes { // a link is to a file that may have changed or not
		if s := c.After; s != nil && s.Kind == "file" {
			if sums[c.Path] = strings.TrimPrefix(s.SHA256, "sha256:"); s.Link != "" {
				sums[c.Path] = sums[s.Link]
			}
		}
	}
	var lines, digests []string
	for name, rest := range names {
		lines = append(lines, name+"|"+rest)
	}
	for name := range sums {
		digests = append(digests, name)
	}
	slices.Sort(lines)
	slices.Sort(digests)
	for _, name := range digests {
		lines = append(lines, sums[name]+"  ./"+name)
	}
	return strings.Join(lines, "\n") + "\n"
}

// change is a script that changes a tree at random.
func change(rnd *rand.Rand, n int) string {
	names := []string{"a", "b", "c", "a/x", "a/y", "b/z", "b/z/deep", "c.d", "é", "-n", "long"}
	name := func() string { return "./" + names[rnd.IntN(len(names))] }
	var s strings.Builder
	for range n {
		switch p := name(); rnd.IntN(9) {
		case 0:
			fmt.Fprintf(&s, "mkdir -p %s\n", p)
		case 1:
			fmt.Fprintf(&s, "[ -p %s ] || echo %d >%s\n", p, rnd.IntN(3), p)
		case 2:
			fmt.Fprintf(&s, "[ -p %s ] || echo more >>%s\n", p, p)
		case 3:
			fmt.Fprintf(&s, "rm -rf %s\n", p)
		case 4:
			fmt.Fprintf(&s, "ln -s %s %s\n", name(), p)
		case 5:
			fmt.Fprintf(&s, "ln %s %s\n", name(), p)
		case 6:
			fmt.Fprintf(&s, "mv %s %s\n", name(), p)
		case 7:
			fmt.Fprintf(&s, "chmod %o %s\n", []int{0o711, 0o755, 0o700}[rnd.IntN(3)], p)
		case 8:
			fmt.Fprintf(&s, "mkfifo %s\n", p)
		}
	}
	return "exec 2>/dev/null\n" + s.String() + "true\n"
}

// TestBoxChanges: what a program finds at its end, by find and sha256sum, is the base with the recorded changes; three
// runs leave the same bytes; an overlay, a copy and a tar give the same; the base stays as it was.
func TestBoxChanges(t *testing.T) {
	for _, c := range callers(t) {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(c.name, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 14))
				base, out := c.dir(t), c.dir(t)
				c.sh(t, base, change(rnd, 60))
				before := c.sh(t, base, state)
				script := change(rnd, 60) + state
				c.sh(t, out, "tar -C "+base+" -czf base.tar.gz .")
				var first *boxRecord
				for i, args := range [][]string{{"--base", base}, {"--base", base}, {"--base", base}, {"--base", base, "--cpu", "0"}, {"--base", out + "/base.tar.gz"}} {
					dir := fmt.Sprintf("%s/record%d", out, i)
					o := call(t, c.box(t, append(args, "--run-id", "r", "-o", dir, "--", "sh", "-c", script)...))
					if o.code != 0 {
						t.Fatal(o)
					}
					b := readBox(t, dir)
					if b.status != schemas.StatusComplete || b.box.Rootless != (c.uid != 0) {
						t.Errorf("%s %+v", b.status, b.box)
					}
					if got := b.after(t, before); got != o.stdout {
						t.Errorf("the record gives\n%s\nthe program found\n%s", got, o.stdout)
					}
					if first == nil {
						first = b
					}
					if i <= 2 && !bytes.Equal(first.raw, b.raw) {
						t.Error("three runs differ")
					}
					if !slices.Equal(first.said(), b.said()) {
						t.Errorf("%q\nexpected %q", b.said(), first.said())
					}
					if digest := b.box.Base.Digest; digest != first.box.Base.Digest {
						t.Errorf("%v: the base is %s, expected %s", args, digest, first.box.Base.Digest)
					}
					checkBlobs(t, dir, b)
				}
				if now := c.sh(t, base, state); now != before {
					t.Errorf("the base is now\n%s\nwas\n%s", now, before)
				}
			})
		}
	}
}

// checkBlobs compares the blobs with their names, by sha256sum, and with what the record needs.
func checkBlobs(t *testing.T, dir string, b *boxRecord) {
	t.Helper()
	blobs := filepath.Join(dir, "blobs", "sha256")
	list, err := os.ReadDir(blobs)
	testkit.Must(t, err)
	have := map[string]bool{}
	for _, d := range list {
		out, err := exec.Command("sha256sum", filepath.Join(blobs, d.Name())).Output()
		testkit.Must(t, err)
		if !strings.HasPrefix(string(out), d.Name()+" ") {
			t.Errorf("the blob %s has the digest %.64s", d.Name(), out)
		}
		have["sha256:"+d.Name()] = true
	}
	need := map[string]bool{}
	for _, c := range b.changes {
		if c.After != nil && c.After.SHA256 != "" {
			need[c.After.SHA256] = true
		}
	}
	if base := b.box.Base; base != nil && base.List != "" {
		need[base.List] = true
		text, err := os.ReadFile(filepath.Join(blobs, strings.TrimPrefix(base.List, "sha256:")))
		testkit.Must(t, err)
		for line := range bytes.Lines(text) {
			e, err := schemas.ParseBaseEntry(bytes.TrimSuffix(line, []byte("\n")))
			testkit.Must(t, err)
			if e.SHA256 != "" {
				need[e.SHA256] = true
			}
		}
	}
	for digest := range need {
		if !have[digest] {
			t.Errorf("there is no blob %s", digest)
		}
	}
	for digest := range have {
		if !need[digest] {
			t.Errorf("nothing names the blob %s", digest)
		}
	}
}

// TestBoxHolds: what must not be possible in a box is not.
func TestBoxHolds(t *testing.T) {
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/forbidden"))
	for _, c := range callers(t) {
		out, base := c.dir(t), c.dir(t)
		c.sh(t, base, "cp "+tool("forbidden")+" .")
		o := call(t, c.box(t, "--base", base, "-o", out+"/record", "--", "./forbidden"))
		if o.code != 0 {
			t.Fatal(o)
		}
		for line := range strings.Lines(o.stdout) {
			if !strings.HasSuffix(line, " EPERM\n") && !strings.HasSuffix(line, " true\n") && !(strings.HasPrefix(line, "chroot ") && !strings.HasSuffix(line, " \n")) {
				t.Errorf("%s: %s", c.name, line)
			}
		}
		if n := strings.Count(o.stdout, "\n"); n < 25 {
			t.Errorf("%d lines: %s", n, o.stdout)
		}
		caps := call(t, c.box(t, "--", "grep", "-h", "Cap\\|NoNewPrivs\\|Seccomp:", "/proc/self/status"))
		want := "CapInh:0CapPrm:0CapEff:0CapBnd:0CapAmb:0NoNewPrivs:1Seccomp:2"
		if got := strings.NewReplacer("0000000000000000", "0", "\t", "", "\n", "").Replace(caps.stdout); got != want {
			t.Errorf("%s: %s", c.name, caps)
		}
		home := call(t, c.box(t, "-o", out+"/refused", "--", "sh", "-c", "echo x >made; echo x >/etc/made"))
		if home.code == 0 || !strings.Contains(home.stderr, "ead-only") {
			t.Error(home)
		}
		if b := readBox(t, out+"/refused"); !slices.Equal(b.said(), []string{"add made"}) {
			t.Errorf("%q", b.said())
		}
		leftovers, err := filepath.Glob(out + "/.runner-record-*")
		testkit.Must(t, err)
		if len(leftovers) > 0 {
			t.Error(leftovers)
		}
	}
}

// TestBoxStatus: exit codes as env(1) has them, and signals are passed on.
func TestBoxStatus(t *testing.T) {
	for _, c := range callers(t) {
		dir := c.dir(t)
		for _, x := range []struct {
			want int
			args []string
		}{
			{0, []string{"--", "true"}}, {7, []string{"--", "sh", "-c", "exit 7"}}, {128 + 9, []string{"--", "sh", "-c", "kill -9 $$"}},
			{127, []string{"--", "no-such-program"}}, {127, []string{"--", "./none"}}, {126, []string{"--", "/etc"}}, {126, []string{"--", "/etc/passwd"}},
			{125, []string{"--"}}, {125, []string{"--base", dir + "/none", "--", "true"}}, {125, []string{"--workdir", "relative", "--", "true"}},
			{125, []string{"--workdir", "/usr/none", "--", "true"}}, {125, []string{"--workdir", "/proc/x", "--", "true"}}, {125, []string{"--workdir", "/tmp", "--", "true"}},
			{125, []string{"--cpu", "4000", "--", "true"}}, {125, []string{"--base", "/dev/null", "--", "true"}}, {125, []string{"--nonsense"}},
			{125, []string{"--base", dir, "-o", dir + "/in", "--", "true"}}, {125, []string{"--base", dir, "-o", dir, "--", "true"}},
			{125, []string{"-o", "/etc", "--", "true"}}, {125, []string{"-o", dir + "/none/x", "--", "true"}}, {125, []string{"--base", "/etc/passwd", "--", "true"}},
			{0, []string{"--workdir", "/tmp/a/b", "--", "sh", "-c", "test $PWD = /tmp/a/b && test $(pwd) = /tmp/a/b && touch x"}},
			{0, []string{"--workdir", "/new/place", "--", "sh", "-c", "touch x && ! touch ../y"}}, {0, []string{"--workdir", "/usr/share", "--", "sh", "-c", "touch x && ! touch ../y"}},
		} {
			o := call(t, c.box(t, x.args...))
			if o.code != x.want || x.want >= 125 && x.want < 128 && o.stderr == "" {
				t.Errorf("%s: %q: %v, expected %d", c.name, x.args, o, x.want)
			}
		}
	}
}

// TestBoxEnds: signals reach the program, survivors have the grace time, and when runner-box is killed nothing goes on.
func TestBoxEnds(t *testing.T) {
	for _, c := range callers(t) {
		dir := c.dir(t)
		cmd := c.box(t, "-o", dir+"/record", "--grace", "100ms", "--", "sh", "-c", "trap 'echo got; exit 3' TERM; (trap '' TERM; exec sleep 1000) & touch ready; echo; while :; do sleep 0.01; done")
		r, err := cmd.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		line := make([]byte, 1)
		_, err = r.Read(line)
		testkit.Must(t, err)
		testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		rest := make([]byte, 10)
		n, _ := r.Read(rest)
		cmd.Wait()
		if cmd.ProcessState.ExitCode() != 3 || string(rest[:n]) != "got\n" {
			t.Errorf("%s: %v %q", c.name, cmd.ProcessState, rest[:n])
		}
		if b := readBox(t, dir+"/record"); b.box.SurvivorsKilled == 0 || !slices.Equal(b.said(), []string{"add ready"}) {
			t.Errorf("%s: %+v %q", c.name, b.box, b.said())
		}

		cmd = c.box(t, "-o", dir+"/killed", "--", "sh", "-c", "echo; exec sleep 4711")
		r, err = cmd.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		_, err = r.Read(line)
		testkit.Must(t, err)
		testkit.Must(t, cmd.Process.Kill())
		gone := make(chan struct{})
		go func() { r.Read(line); close(gone) }() // the end of the last process that has it
		select {
		case <-gone:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the program goes on after runner-box was killed", c.name)
		}
		cmd.Wait()
		if testkit.Exists(dir + "/killed") {
			t.Error("a record of a run that was killed")
		}
	}
}

// TestBoxOfOthers: without root, a base with files of others is refused, or copied; and what nobody may read is told.
func TestBoxOfOthers(t *testing.T) {
	list := callers(t)
	if len(list) < 2 {
		testkit.Skip(t, "bases with files of others", "needs root")
	}
	c := list[1]
	base, out := c.dir(t), c.dir(t)
	testkit.Must(t, os.WriteFile(base+"/roots", []byte("x"), 0o644))
	if o := call(t, c.box(t, "--base", base, "--", "true")); o.code != 125 || !strings.Contains(o.stderr, "box_no_overlay") || !strings.Contains(o.stderr, "roots") || !strings.Contains(o.stderr, "--fallback copy") {
		t.Error(o)
	}
	if o := call(t, c.box(t, "--base", base, "--fallback", "copy", "-o", out+"/r", "--", "sh", "-c", "echo more >>roots")); o.code != 0 {
		t.Fatal(o)
	}
	if b := readBox(t, out+"/r"); b.box.Workspace != schemas.WorkspaceCopy || !slices.Equal(b.said(), []string{"modify roots"}) {
		t.Errorf("%+v %q", b.box, b.said())
	}
	testkit.Must(t, os.Chmod(base+"/roots", 0o600))
	if o := call(t, c.box(t, "--base", base, "--fallback", "copy", "--", "true")); o.code != 125 || !strings.Contains(o.stderr, "roots") {
		t.Error(o)
	}
	// Root changes what it owns, and the record tells owners only where they are not the program's.
	if o := call(t, list[0].box(t, "--base", base, "-o", out+"/s", "--", "sh", "-c", "echo more >>roots")); o.code != 0 {
		t.Fatal(o)
	}
	b := readBox(t, out+"/s")
	if !slices.Equal(b.said(), []string{"modify roots"}) || b.changes[0].After.UID != nil {
		text, _ := json.Marshal(b.changes)
		t.Errorf("%s", text)
	}
}

// TestBoxHostile: trees that mislead, names that are no text, and very many files.
func TestBoxHostile(t *testing.T) {
	for _, c := range callers(t) {
		files := 100_000
		if c.uid == 0 {
			files = 1000
		}
		base, out := c.dir(t), c.dir(t)
		c.sh(t, base, `ln -s loop loop; ln -s . self; ln -s /etc/passwd out; mkfifo fifo; printf x >"$(printf 'bad\377\nname')"; mkdir closed; echo s >closed/x; chmod 0 closed`)
		o := call(t, c.box(t, "--base", base, "-o", out+"/r", "--", "sh", "-c", `
			d=$(printf '%0200d' 0); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do mkdir $d; cd -P $d; done; echo deep >end
			cd /workspace; rm fifo; mkdir fifo; ln -sf /etc/shadow fifo/x; mkdir -p many; cd many; seq `+strconv.Itoa(files)+` | split -l 1 -a 5 -; printf y >"$(printf 'n\001\376')"; mkfifo full; chmod 000 full`))
		if o.code != 0 {
			t.Fatal(o)
		}
		b := readBox(t, out+"/r")
		said := b.said()
		for _, want := range []string{"replace fifo", "add fifo/x", "add many/n\x01\\xfe", "add many/full", "add many/xaaaaa", "add " + strings.Repeat(strings.Repeat("0", 200)+"/", 25) + "end"} {
			if !slices.Contains(said, want) {
				t.Errorf("%s: there is no %.100q", c.name, want)
			}
		}
		if want := files + 25 + 1 + 2 + 1 + 2; len(said) != want || b.status != schemas.StatusComplete {
			t.Errorf("%s: %d changes, expected %d; %s", c.name, len(said), want, b.status)
		}
		exec.Command("chmod", "700", base+"/closed").Run()
		testkit.Must(t, exec.Command("rm", "-rf", out).Run())
	}
}

package journal

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// file is a file of this content that belongs to whoever works.
func file(content string) *State {
	return &State{Kind: tree.File, Mode: 0o644, UID: -1, GID: -1, Size: uint64(len(content)), SHA256: schemas.DigestOf(content)}
}

func with(s *State, f func(*State)) *State {
	c := *s
	f(&c)
	return &c
}

func folder() *State { return &State{Kind: tree.Dir, Mode: 0o755, UID: -1, GID: -1} }
func link(to string) *State {
	return &State{Kind: tree.Symlink, Mode: 0o777, UID: -1, GID: -1, Target: to}
}
func linked(to string) *State {
	return &State{Kind: tree.File, Mode: 0o644, UID: -1, GID: -1, Link: to}
}
func fifo() *State                       { return &State{Kind: tree.FIFO, Mode: 0o644, UID: -1, GID: -1} }
func moded(s *State, mode uint32) *State { return with(s, func(s *State) { s.Mode = mode }) }

// texts opens contents that are their own text.
func texts(list ...string) func(string) (io.ReadCloser, error) {
	return func(digest string) (io.ReadCloser, error) {
		for _, s := range list {
			if schemas.DigestOf(s) == digest {
				return io.NopCloser(strings.NewReader(s)), nil
			}
		}
		return nil, os.ErrNotExist
	}
}

// play makes a target by a script, commits a change, and returns the error.
func play(t *testing.T, script string, list ...Transition) (at string, j *Journal, err error) {
	t.Helper()
	at = room(t)
	testkit.Must(t, os.Mkdir(at+"/target", 0o755))
	shell(t, at+"/target", script)
	j = open(t, at+"/journal")
	_, err = j.Commit(background, &Transaction{ID: "tx", Dir: at + "/target", Transitions: list, Content: texts("new", "old", "x", "")}, nil)
	return at, j, err
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	c := exec.Command("sh", "-ec", "umask 022\n"+script)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// conflicting are changes that the directory is not ready for: a script, the change, and what the conflict says.
var conflicting = map[string]struct {
	script string
	list   []Transition
	want   string
}{
	"it is there":             {"printf x >f", []Transition{{"f", nil, file("new")}}, "f: it is there, a file, expected nothing"},
	"it is not there":         {"", []Transition{{"f", file("old"), file("new")}}, "f: it is not there, expected a file"},
	"not there, to be gone":   {"", []Transition{{"f", file("old"), nil}}, "f: it is not there, expected a file"},
	"content":                 {"printf abc >f", []Transition{{"f", file("old"), file("new")}}, "f: it has another content than expected"},
	"size":                    {"printf longer >f", []Transition{{"f", file("old"), file("new")}}, "f: it has 6 bytes, expected 3"},
	"kind":                    {"ln -s old f", []Transition{{"f", file("old"), file("new")}}, "f: it is a symlink, expected a file"},
	"mode":                    {"printf old >f; chmod 600 f", []Transition{{"f", file("old"), file("new")}}, "f: its mode is 0600, expected 0644"},
	"target":                  {"ln -s other l", []Transition{{"l", link("old"), link("new")}}, "l: its target is other, expected old"},
	"owner":                   {"printf old >f", []Transition{{"f", with(file("old"), func(s *State) { s.UID, s.GID = 12345, 0 }), file("new")}}, "expected 12345:0"},
	"mode of a directory":     {"mkdir -m 700 d", []Transition{{"d", folder(), moded(folder(), 0o711)}}, "d: its mode is 0700, expected 0755"},
	"attribute":               {"printf old >f", []Transition{{"f", with(file("old"), func(s *State) { s.Xattrs = map[string]string{"user.x": "1"} }), file("new")}}, "f: its attribute user.x is not what was expected"},
	"the directory holds":     {"mkdir d; touch d/other", []Transition{{"d", folder(), nil}}, "d: it holds other, which is no part of the change"},
	"the replaced one holds":  {"mkdir d; touch d/other", []Transition{{"d", folder(), link("x")}}, "d: it holds other, which is no part of the change"},
	"a directory, not known":  {"mkdir d", []Transition{{"d", Unknown, file("new")}}, "d: it is a directory, which is not replaced"},
	"no directory for it":     {"", []Transition{{"d/f", nil, file("new")}}, "d/f: a directory above it is not there, or is no directory: d"},
	"below a file":            {"printf x >d", []Transition{{"d/f", nil, file("new")}}, "d/f: a directory above it is not there, or is no directory: d"},
	"below a link":            {"ln -s / d", []Transition{{"d/f", nil, file("new")}}, "d/f: a directory above it is a symbolic link: d"},
	"below a link to here":    {"mkdir e; ln -s e d", []Transition{{"d/f", nil, file("new")}}, "d/f: a directory above it is a symbolic link: d"},
	"linked, said not to be":  {"printf old >a; ln a b", []Transition{{"b", file("old"), file("new")}}, "b: the first name of its file is a, expected b"},
	"not linked, said to be":  {"printf old >a; printf old >b", []Transition{{"b", linked("a"), nil}}, "b: the first name of its file is b, expected a"},
	"linked, the other stays": {"printf old >a; ln a b", []Transition{{"a", file("old"), nil}}, "b: it is the same file as a, which goes away, but no part of the change"},
	"linked to outside":       {"printf old >f; ln f ../outside", []Transition{{"f", file("old"), file("new")}}, "f: the file has 2 names, of which 1 could be found in the directory: the others are outside of it"},
	"mode of linked outside":  {"printf old >f; ln f ../outside", []Transition{{"f", file("old"), moded(file("old"), 0o600)}}, "f: the file has 2 names, of which 1 could be found"},
	"a link to linked":        {"printf old >f; ln f ../outside", []Transition{{"g", nil, linked("f")}}, "g: it is to be a link to f, which has names outside of the directory"},
	"a link to nothing":       {"", []Transition{{"g", nil, linked("f")}}, "g: it is to be a link to f, which is no file"},
	"a link to a directory":   {"mkdir f", []Transition{{"g", nil, linked("f")}}, "g: it is to be a link to f, which is no file"},
	"a link, another mode":    {"printf old >f; chmod 600 f", []Transition{{"g", nil, linked("f")}}, "g: it is to be a link to f, but with another mode or owner"},
	"a socket is there":       {"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", []Transition{{"s", Unknown, file("new")}}, "s: it is a socket, which is not replaced"},
	"two names":               {"printf x >f", []Transition{{"f", nil, file("new")}, {"g", file("old"), nil}}, "f: it is there, a file, expected nothing (and 1 more conflicts)"},
	"unknown, linked, goes":   {"printf old >a; ln a b", []Transition{{"a", Unknown, nil}}, "a: it is the same file as a, which is no part of the change"},
	"unknown, both names":     {"printf old >a; ln a b", []Transition{{"a", Unknown, file("new")}, {"b", Unknown, file("old")}}, "it is the same file as"},
}

// TestConflicts: nothing is applied, and the journal says why.
func TestConflicts(t *testing.T) {
	for name, x := range conflicting {
		t.Run(name, func(t *testing.T) {
			at, j, err := play(t, x.script, x.list...)
			var c *ConflictError
			if !errors.As(err, &c) || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v, expected %q", err, x.want)
			}
			again := room(t)
			testkit.Must(t, os.Mkdir(again+"/target", 0o755))
			shell(t, again+"/target", x.script)
			if d := tree.Diff(scan(t, again+"/target"), scan(t, at+"/target")); len(d) > 0 {
				t.Errorf("it was changed: %+v %+v", d[0].Before, d[0].After)
			}
			last := j.Log()[len(j.Log())-1]
			if last.Step != StepRefused || last.Count != c.Count || len(last.Conflicts) != c.Count {
				t.Errorf("the journal ends with %+v", last)
			}
			if s := j.Status(); len(s) != 1 || s[0].Unfinished {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestConflictsAreBounded: all are counted.
func TestConflictsAreBounded(t *testing.T) {
	var list []Transition
	for i := range 1000 {
		list = append(list, Transition{strings.Repeat("n", i%200+1) + "\xff" + string(rune('a'+i/200)), file("old"), nil})
	}
	_, j, err := play(t, "", list...)
	var c *ConflictError
	if !errors.As(err, &c) || c.Count != 1000 || len(c.Conflicts) != MaxConflicts {
		t.Fatalf("%v", err)
	}
	if last := j.Log()[len(j.Log())-1]; last.Count != 1000 || len(last.Conflicts) != MaxConflicts {
		t.Errorf("%+v", last)
	}
}

// TestHostile: changes that cannot be, or lead out, are errors before the journal or the directory is touched.
func TestHostile(t *testing.T) {
	long := strings.Repeat("n", 256)
	for name, x := range map[string]struct {
		list []Transition
		want string
	}{
		"parent":              {[]Transition{{"../f", nil, file("new")}}, ". or .."},
		"parent inside":       {[]Transition{{"a/../../f", nil, file("new")}}, ". or .."},
		"dot":                 {[]Transition{{"./f", nil, file("new")}}, ". or .."},
		"absolute":            {[]Transition{{"/etc/f", nil, file("new")}}, "absolute"},
		"empty":               {[]Transition{{"", nil, file("new")}}, "the path is empty"},
		"slash at the end":    {[]Transition{{"d/", nil, folder()}}, "slashes"},
		"NUL":                 {[]Transition{{"a\x00b", nil, file("new")}}, "NUL"},
		"long":                {[]Transition{{long, nil, file("new")}}, "256 bytes, at most 255"},
		"twice":               {[]Transition{{"f", nil, file("new")}, {"f", nil, file("old")}}, "changed twice"},
		"nothing":             {[]Transition{{"f", nil, nil}}, "neither there before nor afterwards"},
		"a device":            {[]Transition{{"f", nil, &State{Kind: tree.Char}}}, `kind "char" is not applied`},
		"a socket":            {[]Transition{{"f", nil, &State{Kind: tree.Socket}}}, `kind "socket" is not applied`},
		"a socket goes":       {[]Transition{{"f", &State{Kind: tree.Socket}, nil}}, `kind "socket" is not applied`},
		"made unknown":        {[]Transition{{"f", nil, Unknown}}, "is not applied"},
		"unread":              {[]Transition{{"f", with(file("old"), func(s *State) { s.Unread = "permission denied" }), nil}}, "not known in full: permission denied"},
		"below a file":        {[]Transition{{"f", nil, file("new")}, {"f/x", nil, file("new")}}, "which is no directory then"},
		"below a link":        {[]Transition{{"d", folder(), link("/etc")}, {"d/x", nil, file("new")}}, "which is no directory then"},
		"below what is gone":  {[]Transition{{"d", folder(), nil}, {"d/x", nil, file("new")}}, "which is no directory then"},
		"was below a file":    {[]Transition{{"f", file("old"), folder()}, {"f/x", file("old"), nil}}, "which is no directory before"},
		"nothing makes it":    {[]Transition{{"d", nil, folder()}, {"d/e/x", nil, file("new")}}, "nothing makes the directory d/e"},
		"link to itself":      {[]Transition{{"f", nil, linked("f")}}, "a link to itself"},
		"link to a link":      {[]Transition{{"a", nil, file("new")}, {"b", nil, linked("a")}, {"c", nil, linked("b")}}, "which is no file with a digest then"},
		"link to the outside": {[]Transition{{"f", nil, linked("../secret")}}, "its link: the path has . or .."},
		"link, other mode":    {[]Transition{{"a", nil, file("new")}, {"b", nil, moded(linked("a"), 0o777)}}, "another mode or owner"},
		"mode":                {[]Transition{{"f", nil, moded(file("new"), 0o10644)}}, "at most 07777"},
		"owner":               {[]Transition{{"f", nil, with(file("new"), func(s *State) { s.UID = -2 })}}, "owner is -2"},
		"digest":              {[]Transition{{"f", nil, with(file("new"), func(s *State) { s.SHA256 = "sha256:../../x" })}}, "digest is"},
		"no content":          {[]Transition{{"f", nil, with(file("new"), func(s *State) { s.SHA256 = "" })}}, "a digest or a link"},
		"no target":           {[]Transition{{"f", nil, link("")}}, "symlinks have a target"},
		"the root goes":       {[]Transition{{".", folder(), nil}}, "the directory itself stays a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			at, j, err := play(t, "", x.list...)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, expected %q", err, x.want)
			}
			if list := testkit.Names(t, at+"/target"); len(list) > 0 || len(j.Log()) > 0 {
				t.Errorf("%q, %d lines", list, len(j.Log()))
			}
		})
	}
}

// TestContentIsChecked: what the caller gives is not what the change says.
func TestContentIsChecked(t *testing.T) {
	for name, s := range map[string]*State{"size": with(file("new"), func(s *State) { s.Size = 2 }), "larger": with(file("new"), func(s *State) { s.Size = 4 }), "not at hand": file("other")} {
		at, j, err := play(t, "", Transition{"f", nil, s})
		if err == nil || len(testkit.Names(t, at+"/target")) > 0 || j.Status()[0].Step != StepRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMounts: what is mounted below the directory is no part of it.
func TestMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "mounts", "they need root")
	}
	at := room(t)
	testkit.Must(t, os.MkdirAll(at+"/target/m", 0o755))
	testkit.Must(t, os.MkdirAll(at+"/target/b", 0o755))
	testkit.Write(t, at+"/target/f", []byte("old"))
	if err := unix.Mount("none", at+"/target/m", "tmpfs", 0, "size=1m"); err != nil {
		testkit.Missing(t, "mounts", err)
	}
	defer unix.Unmount(at+"/target/m", unix.MNT_DETACH)
	for _, bind := range []string{"b", "f"} { // of the same file system
		testkit.Must(t, unix.Mount(at+"/target/"+bind, at+"/target/"+bind, "", unix.MS_BIND, ""))
		defer unix.Unmount(at+"/target/"+bind, unix.MNT_DETACH)
	}
	j := open(t, at+"/journal")
	for name, x := range map[string]Transition{
		"below": {"m/f", nil, file("new")}, "below a bind": {"b/f", nil, file("new")}, "itself": {"m", folder(), nil}, "a file": {"f", file("old"), file("new")}, "mode": {"b", folder(), moded(folder(), 0o700)},
	} {
		_, err := j.Commit(background, &Transaction{ID: name, Dir: at + "/target", Transitions: []Transition{x}, Content: texts("new")}, nil)
		var c *ConflictError
		if !errors.As(err, &c) || !strings.Contains(err.Error(), "mount point") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package journal

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// acl is a list that lets user 5 read, in the form of the kernel.
func acl() []byte {
	const (
		user, named, group, mask, other = 1, 2, 4, 16, 32
		none                            = 0xffffffff
	)
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{user, 6, none}, {named, 4, 5}, {group, 4, none}, {mask, 4, none}, {other, 0, none}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

// capabilities is a list of one, in the form of the kernel.
func capabilities() []byte {
	b := make([]byte, 20)
	binary.LittleEndian.PutUint32(b, 0x02000001)
	binary.LittleEndian.PutUint32(b[4:], 1<<10)
	return b
}

// attributesOf are the names of the attributes of a file.
func attributesOf(t *testing.T, path string) []string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := unix.Llistxattr(path, b)
	testkit.Must(t, err)
	return strings.Fields(strings.ReplaceAll(string(b[:n]), "\x00", " "))
}

// TestAttributes: access lists and attributes stay with a file that gets another content; capabilities do not; all come back.
func TestAttributes(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "attributes", "some need root")
	}
	for _, dir := range []string{room(t), t.TempDir()} { // of two file systems, as a rule
		testkit.Must(t, os.Mkdir(dir+"/target", 0o755))
		shell(t, dir+"/target", "printf old >f; mkdir d; printf old >d/g; mkdir e; ln -s x l; touch -h -d 2001-02-03T04:05:06.123456789 f d/g l; touch -d 1960-01-01 d; touch -d 2300-01-01 e")
		testkit.Must(t, unix.Chmod(dir+"/target/f", 0o4755))
		for _, x := range []struct {
			path, name string
			value      []byte
		}{
			{"f", "user.note", []byte("1")}, {"f", "trusted.note", []byte("2")}, {"f", capability, capabilities()}, {"f", "system.posix_acl_access", acl()},
			{"d", "system.posix_acl_default", acl()}, {"d", "user.empty", nil}, {"d/g", "user.note", []byte("\x00\xff")},
		} {
			if err := unix.Lsetxattr(dir+"/target/"+x.path, x.name, x.value, 0); err != nil {
				testkit.Missing(t, "attributes", x.name, ": ", err)
			}
		}
		before := picture(t, dir+"/target")
		info, err := os.Lstat(dir + "/target/f")
		testkit.Must(t, err)
		old := with(file("old"), func(s *State) { s.Mode = uint32(info.Mode().Perm()) | info2special(info) })
		when := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC).UnixNano()
		list := []Transition{
			{"f", old, with(file("new"), func(s *State) { s.Mode, s.ModifiedNS = 0o640, when })}, {"d/g", file("old"), nil}, {"d/h", nil, file("new")}, {"d", folder(), folder()},
			{"e", folder(), link("x")}, {"l", link("x"), fifo()}, {"n", nil, with(file("x"), func(s *State) { s.Xattrs = map[string]string{"user.given": "v"} })},
		}
		j := open(t, dir+"/journal")
		res, err := j.Commit(background, &Transaction{ID: "tx", Dir: dir + "/target", Transitions: list, Content: texts("new", "x")}, nil)
		if err != nil || len(res.NotKept) > 0 {
			t.Fatalf("%+v %v", res, err)
		}
		if got := attributesOf(t, dir+"/target/f"); slices.Contains(got, capability) || !slices.Contains(got, "user.note") || !slices.Contains(got, "trusted.note") || !slices.Contains(got, "system.posix_acl_access") {
			t.Errorf("f has %q", got)
		}
		if got := attributesOf(t, dir+"/target/n"); !slices.Contains(got, "user.given") {
			t.Errorf("n has %q", got)
		}
		if got := attributesOf(t, dir+"/target/d/h"); !slices.Contains(got, "system.posix_acl_access") {
			t.Errorf("d/h has %q, expected what the directory gives", got)
		}
		if info, err := os.Lstat(dir + "/target/f"); err != nil || info.ModTime().UnixNano() != when || info.Mode() != 0o640 {
			t.Errorf("f: %v %v", info, err)
		}
		if res, err = j.Revert(background, "tx", nil); err != nil || len(res.NotKept)+len(res.Left) > 0 {
			t.Fatalf("%+v %v", res, err)
		}
		equal(t, "reverted", picture(t, dir+"/target"), before)
	}
}

// info2special are setuid, setgid and sticky as stat(2) has them.
func info2special(info os.FileInfo) (mode uint32) {
	for from, to := range map[os.FileMode]uint32{os.ModeSetuid: 0o4000, os.ModeSetgid: 0o2000, os.ModeSticky: 0o1000} {
		if info.Mode()&from != 0 {
			mode |= to
		}
	}
	return mode
}

// TestUnknown: whatever is there is replaced, and comes back; a directory stays.
func TestUnknown(t *testing.T) {
	for script, paths := range map[string]string{
		"":                                    "f",
		"printf 1 >f; chmod 400 f":            "f",
		"ln -s / f":                           "f",
		"mkfifo f":                            "f",
		"printf 1 >e; ln e f; ln e g":         "e f g", // all names stay one file
		"printf 1 >f; ln f g":                 "f g",
		"mkdir d; chmod 700 d; printf 1 >d/x": "f",
	} {
		dir := room(t)
		testkit.Must(t, os.Mkdir(dir+"/target", 0o755))
		shell(t, dir+"/target", script)
		before := picture(t, dir+"/target")
		j := open(t, dir+"/journal")
		list := []Transition{{"d", Unknown, folder()}, {"d/w", Unknown, file("x")}, {"f", Unknown, file("new")}}
		if _, err := j.Commit(background, &Transaction{ID: "tx", Dir: dir + "/target", Transitions: list, Content: texts("new", "x")}, nil); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		inodes := map[uint64]bool{}
		for _, path := range strings.Fields(paths) {
			var st unix.Stat_t
			testkit.Must(t, unix.Lstat(dir+"/target/"+path, &st))
			inodes[st.Ino] = true
			if got := string(testkit.Read(t, dir+"/target/"+path)); got != "new" || st.Mode != unix.S_IFREG|0o644 || int(st.Nlink) != len(strings.Fields(paths)) {
				t.Errorf("%s: %s is %q, mode %o, %d names", script, path, got, st.Mode, st.Nlink)
			}
		}
		if len(inodes) != 1 || string(testkit.Read(t, dir+"/target/d/w")) != "x" {
			t.Errorf("%s: %d files", script, len(inodes))
		}
		if res, err := j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted {
			t.Fatalf("%s: %+v %v", script, res, err)
		}
		equal(t, script, picture(t, dir+"/target"), before)
	}
}

// TestOtherNames: a name that the change does not know stays the same file as the one that changes.
func TestOtherNames(t *testing.T) {
	at, j, err := play(t, "printf old >a; mkdir z; ln a z/other", Transition{"a", file("old"), moded(file("new"), 0o600)})
	testkit.Must(t, err)
	list := scan(t, at+"/target")
	i := slices.IndexFunc(list, func(e tree.Entry) bool { return e.Path == "z/other" })
	if list[i].Link != "a" || list[i].Mode != 0o600 || string(testkit.Read(t, at+"/target/z/other")) != "new" {
		t.Errorf("%+v", list[i])
	}
	if res, err := j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted {
		t.Errorf("%+v %v", res, err)
	}
	if i := slices.IndexFunc(scan(t, at+"/target"), func(e tree.Entry) bool { return e.Path == "z/other" && e.Link == "a" && e.Mode == 0o644 }); i < 0 {
		t.Error("the two names are not one file again")
	}
}

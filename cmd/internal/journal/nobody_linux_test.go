package journal

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// nobody is a user without rights.
const nobody = 65534

// TestAsNobody runs the tests that do not need root as a user without rights.
func TestAsNobody(t *testing.T) {
	asNobody(t, "TestRandom", "TestKilled", "TestConflicts", "TestHostile", "TestContentIsChecked", "TestChangedMeanwhile", "TestDirectorySwapped",
		"TestBusy", "TestEffectFails", "TestRevertConflicts", "TestTorn", "TestDamaged", "TestOwners", "TestDeep")
}

// TestKillMatrixAsNobody kills at each step as a user without rights, who has to open directories and files for a while.
func TestKillMatrixAsNobody(t *testing.T) { asNobody(t, "TestKillMatrix") }

func asNobody(t *testing.T, tests ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Skip(t, "a user without rights", "this is one")
	}
	dir := room(t)
	self, err := os.Open("/proc/self/exe")
	testkit.Must(t, err)
	defer self.Close()
	copied, err := os.OpenFile(dir+"/test", os.O_WRONLY|os.O_CREATE, 0o755)
	testkit.Must(t, err)
	_, err = io.Copy(copied, self)
	testkit.Must(t, err)
	testkit.Must(t, copied.Close())
	c := exec.Command(dir+"/test", "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$")
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if passed := strings.Count("\n"+string(out), "\n--- PASS: "); err != nil || passed != len(tests) {
		t.Errorf("%v, %d passed of %d\n%s", err, passed, len(tests), testkit.Clip(string(out)))
	}
}

// TestOwners: as root a name without a known owner is the directory's, and others get theirs; without root others are refused before
// anything is touched.
func TestOwners(t *testing.T) {
	root := os.Geteuid() == 0
	at := room(t)
	testkit.Must(t, os.Mkdir(at+"/target", 0o755))
	if root {
		testkit.Must(t, os.Chown(at+"/target", 7, 8))
	}
	testkit.Write(t, at+"/target/kept", []byte("old"))
	if root {
		testkit.Must(t, os.Chown(at+"/target/kept", 5, 6))
	}
	owned := with(file("new"), func(s *State) { s.UID, s.GID = 3, 4 })
	j := open(t, at+"/journal")
	x := &Transaction{ID: "tx", Dir: at + "/target", Content: texts("new"), Transitions: []Transition{{"given", nil, owned}, {"kept", file("old"), file("new")}, {"new", nil, file("new")}}}
	_, err := j.Commit(background, x, nil)
	if !root {
		if err == nil || !strings.Contains(err.Error(), "given: its owner is to be 3:4, which only root can give") || len(testkit.Names(t, at+"/target")) != 1 {
			t.Error(err)
		}
		return
	}
	testkit.Must(t, err)
	for name, want := range map[string][2]uint32{"given": {3, 4}, "kept": {5, 6}, "new": {7, 8}} {
		info, err := os.Lstat(at + "/target/" + name)
		testkit.Must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != want[0] || st.Gid != want[1] {
			t.Errorf("%s belongs to %d:%d, expected %d", name, st.Uid, st.Gid, want)
		}
	}
}

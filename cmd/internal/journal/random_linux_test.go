package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestRandom applies and reverts random changes of random trees. After the commit the tree is what tree.Scan says of the wanted
// one, and what diff and rsync say; after the revert it is what it was, in all that a picture has.
func TestRandom(t *testing.T) { random(t, 100) }

// TestRandomMany also sees each kind of change.
func TestRandomMany(t *testing.T) {
	kinds := random(t, 1000)
	all := []string{"absent", "file", "linked file", "dir", "symlink", "fifo"}
	for _, from := range all {
		for _, to := range all {
			if kinds[from+" to "+to] == 0 && (from != "absent" || to != "absent") {
				t.Errorf("no change from %s to %s", from, to)
			}
		}
	}
}

// random takes the first n random trees. It counts the kinds of changes.
func random(t *testing.T, n uint64) map[string]int {
	testkit.Programs(t, "random changes, with a witness", "diff", "rsync")
	kinds := map[string]int{}
	for seed := range n {
		if !randomOne(t, seed, kinds) {
			t.Fatalf("seed %d", seed)
		}
	}
	return kinds
}

// kind counts kinds of changes.
func kind(s *State) string {
	switch {
	case s == nil:
		return "absent"
	case s.Link != "":
		return "linked file"
	}
	return string(s.Kind)
}

func randomOne(t *testing.T, seed uint64, kinds map[string]int) bool {
	t.Helper()
	dir := room(t)
	defer removeAll(t, dir)
	rnd := rand.New(rand.NewPCG(seed, 15))
	testkit.Must(t, os.Mkdir(dir+"/target", 0o755))
	grow(t, dir+"/target", rnd, 5+rnd.IntN(40))
	copyTree(t, dir+"/wanted", dir+"/target")
	grow(t, dir+"/wanted", rnd, 1+rnd.IntN(30))
	list := change(t, dir+"/target", dir+"/wanted")
	for _, x := range list {
		kinds[kind(x.From)+" to "+kind(x.To)]++
	}
	before := picture(t, dir+"/target")
	j, err := Open(dir + "/journal")
	testkit.Must(t, err)
	defer j.Close()
	x := &Transaction{ID: fmt.Sprint("tx", seed), Dir: dir + "/target", Transitions: list, Content: contents(t, dir+"/wanted")}
	res, err := j.Commit(background, x, nil)
	if err != nil {
		t.Errorf("commit: %v", err)
		return false
	}
	if d := tree.Diff(scan(t, dir+"/target"), scan(t, dir+"/wanted")); len(d) > 0 || res.Step != StepCommitted || len(res.NotKept) > 0 {
		t.Errorf("%d names differ, step %s, not kept %q; the first: %+v %+v", len(d), res.Step, res.NotKept, d[0].Before, d[0].After)
		return false
	}
	if seed%10 == 0 && !witness(t, dir+"/wanted/", dir+"/target/") {
		return false
	}
	if res, err = j.Commit(background, x, nil); err != nil || !res.Already {
		t.Errorf("the second commit: %+v %v", res, err)
		return false
	}
	if res, err = j.Revert(background, x.ID, nil); err != nil || res.Step != StepReverted || len(res.Left)+len(res.NotKept) > 0 {
		t.Errorf("revert: %+v %v", res, err)
		return false
	}
	return equal(t, "after revert", picture(t, dir+"/target"), before)
}

// witness compares two trees with programs that others wrote. The times of directories are not what the change says of.
func witness(t *testing.T, a, b string) bool {
	out, err := exec.Command("rsync", "-n", "-a", "-H", "--checksum", "--delete", "--itemize-changes", "--omit-dir-times", a, b).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("rsync: %v %s", err, testkit.Clip(string(out)))
		return false
	}
	return true
}

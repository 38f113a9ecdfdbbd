package noise

import (
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestStable: numbers that differ from run to run are replaced, and no others.
func TestStable(t *testing.T) {
	for path, want := range map[string]string{
		"/proc/4711":                 "/proc/[pid]",
		"/proc/4711/maps":            "/proc/[pid]/maps",
		"/proc/4711/task/4712":       "/proc/[pid]/task/[tid]",
		"/proc/4711/task/4712/stat":  "/proc/[pid]/task/[tid]/stat",
		"/proc/4711x/maps":           "/proc/4711x/maps",
		"/proc/sys/kernel/osrelease": "/proc/sys/kernel/osrelease",
		"/proc/":                     "/proc/",
		"/dev/pts/3":                 "/dev/pts/[n]",
		"/dev/pts/ptmx":              "/dev/pts/ptmx",
		"/usr/lib/1/x":               "/usr/lib/1/x",
	} {
		if got := string(Stable([]byte(path))); got != want {
			t.Errorf("Stable(%s) = %s, want %s", path, got, want)
		}
	}
}

// TestTables: folders of packages are noise only under v0, and nothing is under none.
func TestTables(t *testing.T) {
	for path, want := range map[string][]bool{ // under v0, loader, none
		"/usr/lib/x.so":                          {true, true, false},
		"/usr/lib/node_modules/npm/x.js":         {true, false, false},
		"/home/me/node_modules/left-pad/i.js":    {true, false, false},
		"/usr/lib/python3/dist-packages/a.py":    {true, false, false},
		"/usr/lib/python3.12/site-packages/a.py": {true, false, false},
		"/home/me/node_modules.txt":              {false, false, false},
	} {
		for i, name := range schemas.NoiseTables {
			table, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := table.Find([]byte(path), 1) >= 0; got != want[i] {
				t.Errorf("%s is noise under %s: %v", path, name, got)
			}
		}
	}
}

// TestIDs: each rule that leaves something out has its id in the list, and no other has.
func TestIDs(t *testing.T) {
	ids, err := IDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas.NoiseTables {
		table, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range table.rules {
			if _, there := slices.BinarySearch(ids, r.id); there != r.drop {
				t.Errorf("%s under %s is in the list: %v", r.id, name, there)
			}
		}
	}
}

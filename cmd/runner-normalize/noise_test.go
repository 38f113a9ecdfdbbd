package main

import (
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/schemas"
)

func TestRuleIDs(t *testing.T) {
	table, err := noise.New(schemas.NoiseV0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range table.Len() {
		if schemas.FilterReason(table.ID(i)) != "" {
			t.Errorf("rule id %s is taken", table.ID(i))
		}
	}
}

// TestEvidence opens a path that is noise when it is opened in the plainest way.
func TestEvidence(t *testing.T) {
	const lib = "/usr/lib/x.so"
	failed := func(v int64) []edit { return []edit{user("/usr/lib", "x.so"), flags(0), ret(v)} }
	for _, c := range []struct {
		name  string
		op    string
		edits []edit
		noise bool
	}{
		{"read", "openat", []edit{opened(lib)}, true},
		{"directory", "openat", []edit{opened(lib), flags(0o200000 | 0o2000000)}, true},
		{"missing", "openat", failed(-2), true},
		{"not a directory", "openat", failed(-20), true},
		{"chroot elsewhere", "openat", []edit{opened(lib), marks(schemas.MarkCompat32)}, true},
		{"EPERM", "openat", failed(-1), false},
		{"EACCES", "openat", failed(-13), false},
		{"EROFS", "openat", failed(-30), false},
		{"ELOOP", "openat2", failed(-40), false},
		{"EXDEV", "openat2", failed(-18), false},
		{"ENOSYS", "openat2", failed(-38), false},
		{"write", "openat", []edit{opened(lib), flags(1)}, false},
		{"read and write", "openat", []edit{opened(lib), flags(2)}, false},
		{"odd access", "openat", []edit{opened(lib), flags(3)}, false},
		{"create", "openat", []edit{opened(lib), flags(0o100)}, false},
		{"truncate", "openat", []edit{opened(lib), flags(0o1000)}, false},
		{"append", "openat", []edit{opened(lib), flags(0o2000)}, false},
		{"tmpfile", "openat", []edit{opened(lib), flags(0o20000000)}, false},
		{"creat", "creat", []edit{opened(lib)}, false},
		{"failed write", "openat", []edit{user("/usr/lib", "x"), flags(1), ret(-2)}, false},
		{"block device", "openat", []edit{opened("/dev/sda"), func(e *schemas.RawEvent) { e.FileType = "blk" }}, false},
		{"char device", "openat", []edit{opened("/dev/tty"), func(e *schemas.RawEvent) { e.FileType = "chr" }}, true},
		{"user fault", "openat", []edit{opened(lib), marks(schemas.MarkUserFault)}, false},
		{"path fault", "openat", []edit{opened(lib), marks(schemas.MarkPathFault)}, false},
		{"truncated", "openat", []edit{opened(lib), marks(schemas.MarkPathTruncated)}, false},
		{"detached mount", "openat", []edit{opened(lib), marks(schemas.MarkDetached)}, false},
		{"disconnected", "openat", []edit{opened(lib), marks(schemas.MarkDisconnected)}, false},
		{"deleted", "openat", []edit{opened(lib), marks(schemas.MarkDeleted)}, false},
		{"descriptor raced", "openat", []edit{opened(lib), marks(schemas.MarkFDRace)}, false},
		{"text cut off", "openat", append(failed(-36), marks(schemas.MarkUserTruncated)), false},
		{"unknown outcome", "openat", []edit{path(lib), flags(0)}, false},
		{"unknown flags", "openat", []edit{path(lib), ret(3)}, false},
		{"success, path only spelled", "openat", []edit{user("/usr/lib", "x.so"), flags(0), ret(3)}, false},
		{"dots left", "openat", []edit{user("/", "/lib/../etc/shadow"), flags(0), ret(-2)}, false},
		{"relative", "openat", []edit{user("", "lib/../../x"), flags(0), ret(-9)}, false},
		{"other operation", "unlink", []edit{user("/usr/lib", "x.so"), ret(-2)}, false},
		{"exec", "exec", []edit{path("/usr/lib/git-core/git")}, false},
		{"nothing known", "openat", []edit{flags(0), ret(-14)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r raw
			r.add(42, 42, c.op, c.edits...)
			got := mustNormalize(t, r.bytes(t))
			if isNoise := len(got.lines) == 0; isNoise != c.noise {
				t.Errorf("noise: %v, want %v; %v", isNoise, c.noise, got.own().Filtered)
			}
		})
	}
}

//go:build linux

package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// A call whose structure strace does not show takes no line of one whose flags it shows: here the names of both differ from
// what strace saw, because another thread changed the working directory.
func TestStructureThatIsNotShown(t *testing.T) {
	line := func(value string, flags uint64) told {
		ret := -int64(unix.EINVAL)
		return told{Type: schemas.EventOpenat, Value: &value, Flags: &flags, Return: &ret, Status: schemas.StatusError}
	}
	want := []expected{
		{kind: schemas.EventOpenat, value: "/d/x", bare: "x", ret: -int64(unix.EINVAL), others: []string{"/r/x"}},
		{kind: schemas.EventOpenat, value: "/d/x", bare: "x", ret: -int64(unix.EINVAL), flags: openNumbers(unix.O_CREAT, 0, 0)},
	}
	want[1].others = []string{"null"}
	for _, have := range [][]told{
		{line("x", unix.O_CREAT), line("/e/y", unix.O_EXCL)},
		{line("/e/y", unix.O_EXCL), line("/e/x", unix.O_CREAT)},
		{line("/d/x", unix.O_EXCL), line("/e/x", unix.O_CREAT)},
		{line("/r/x", unix.O_CREAT), line("/e/x", unix.O_EXCL)},
	} {
		missing, more := explain(&process{threads: 4}, want, have, map[string]int{})
		if len(missing)+len(more) > 0 {
			t.Errorf("%q and %q: missing %v, more %v", have[0].text(), have[1].text(), missing, more)
		}
	}
}

package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// small is a lock of two folds, two blind spots and items of many kinds.
var small = lockHead + "\n" + lockFolds + "\n\"pts\",\n\"workspace\",\n" + lockNext + "\n" + lockCoverage + "\n\"a\",\n\"b\",\n" + lockNext + "\n" + lockItems + "\n" +
	"{\"kind\":\"exec\",\"value\":\"/bin/sh\"},\n{\"kind\":\"endpoint_out\",\"value\":\"[::1]:1\",\"how\":\"ipv6\",\"seen\":[1,3]},\n{\"kind\":\"file_read\",\"value\":\"/\\u202e`@x\"},\n" + lockEnd + "\n"

// FuzzLock: whatever text is taken as a lock gives, written again, the same lock; of what is refused the line
// is named, and nothing panics.
func FuzzLock(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(strings.ReplaceAll(small, "\n", "\r\n")))
	f.Add([]byte(strings.Replace(small, "{\"kind\":\"exec\"", "<<<<<<< ours\n{\"kind\":\"exec\"", 1)))
	f.Add([]byte(strings.Replace(small, "{\"kind\":\"exec\"", "{\"kind\":\"exec\",\"value\":\"/bin/sh\",\"seen\":[2,3]},\n{\"kind\":\"exec\"", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "lock.json")
		testkit.Write(t, name, b)
		s, err := readLock(name)
		if err != nil {
			if !strings.HasPrefix(err.Error(), name+":") {
				t.Errorf("no line is named: %v", err)
			}
			return
		}
		var once, twice bytes.Buffer
		testkit.Must(t, s.write(&once, s.lock.folds))
		testkit.Write(t, name, once.Bytes())
		again, err := readLock(name)
		testkit.Must(t, err)
		testkit.Must(t, again.write(&twice, again.lock.folds))
		if !bytes.Equal(once.Bytes(), twice.Bytes()) || !slices.Equal(s.coverage, again.coverage) || !slices.Equal(slices.Sorted(maps.Keys(named(s))), slices.Sorted(maps.Keys(named(again)))) {
			t.Errorf("%q became %q, then %q", b, &once, &twice)
		}
		if bytes.ContainsAny(once.Bytes(), "\x1b\u202e\r") {
			t.Errorf("%q is written raw", &once)
		}
	})
}

func named(s *side) map[string]bool {
	set := map[string]bool{}
	for k := range s.items.all() {
		set[schemas.CapabilityKinds[k.kind].Name+"\x00"+k.value+"\x00"+k.how] = true
	}
	return set
}

package bundle

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// read reads a whole archive and returns members, contents and identity.
func read(b []byte, lim Limits) (names []string, content map[string][]byte, identity string, err error) {
	a, err := Open(bytes.NewReader(b), lim)
	if err != nil {
		return nil, nil, "", err
	}
	defer a.Close()
	content = map[string][]byte{}
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return names, content, a.Identity(), nil
		}
		if err != nil {
			return names, content, a.Identity(), err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return names, content, a.Identity(), err
		}
		if int64(len(data)) != m.Size {
			return names, content, "", errors.New("size differs from the header")
		}
		names = append(names, m.Name)
		content[m.Name] = data
	}
}

func TestRealArchives(t *testing.T) {
	root := "../../../shared/corpora/assay"
	if _, err := os.Stat(root); err != nil {
		t.Skip("SKIPPED, NOT TESTED: archives of another implementation, " + root + " is absent")
	}
	n := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "archive.tar.gz" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names, _, id, err := read(b, DefaultLimits)
		if err != nil || len(names) != len(Members) || len(id) != 64 {
			t.Errorf("%s: %v %v %q", path, err, names, id)
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 12 {
		t.Errorf("found %d archives, expected at least 12", n)
	}
}

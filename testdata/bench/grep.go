//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

const (
	topDirs, midDirs, leafDirs = 8, 9, 10 // 8 + 72 + 720 directories
	filesPerDir                = 9
)

// treeSize is how many files and directories there are.
func treeSize(leafs int) int { return (1 + topDirs*(1+midDirs*(1+leafs))) * (1 + filesPerDir) }

// makeTree writes some 7,200 small files in 800 directories, or fewer with fewer directories at the leaves.
func makeTree(root string, leafs int) error {
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog\n", 40))
	fill := func(dir string, n int) error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for i := range n {
			size := 200 + (i*397+len(dir)*61)%1500
			name := filepath.Join(dir, fmt.Sprintf("file_%d.txt", i))
			if err := os.WriteFile(name, text[:size], 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	err := fill(root, filesPerDir)
	for i := range topDirs {
		top := filepath.Join(root, fmt.Sprintf("top_%d", i))
		err = errors.Join(err, fill(top, filesPerDir))
		for j := range midDirs {
			mid := filepath.Join(top, fmt.Sprintf("part_%d", j))
			err = errors.Join(err, fill(mid, filesPerDir))
			for k := range leafs {
				err = errors.Join(err, fill(filepath.Join(mid, fmt.Sprintf("leaf_%d", k)), filesPerDir))
			}
		}
	}
	return err
}

// treeCheck compares records of one tree with the tree and with each other.
type treeCheck struct {
	root    string
	there   map[string]bool
	surface []byte
	runs    int
}

func newTreeCheck(root string) (*treeCheck, error) {
	c := &treeCheck{root: root, there: map[string]bool{}}
	return c, filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		c.there[p] = true
		return err
	})
}

func (c *treeCheck) check(archive string) error {
	seen := map[string]bool{}
	strange := 0
	rec, err := readRecord(archive, func(event uint32, value []byte) {
		if event != schemas.EventOpenat || string(value) != c.root && !bytes.HasPrefix(value, []byte(c.root+"/")) {
			return
		}
		if p := string(value); !c.there[p] {
			strange++
		} else {
			seen[p] = true
		}
	})
	if err != nil {
		return err
	}
	if strange > 0 || len(seen) != len(c.there) {
		return fmt.Errorf("%d recorded paths do not exist, %d of %d that exist are recorded", strange, len(seen), len(c.there))
	}
	if c.runs++; c.runs == 1 {
		c.surface = rec.surface
	} else if !bytes.Equal(c.surface, rec.surface) {
		return fmt.Errorf("the capability surface of run %d differs from the first", c.runs)
	}
	return rec.whole()
}

// grep measures a search through a tree: names relative to directory descriptors.
func (b *bench) grep() error {
	grep, err := exec.LookPath("grep")
	if err != nil {
		b.table.add(row{what: rowGrep(), note: "NOT MEASURED: grep is not installed"})
		return nil
	}
	root := filepath.Join(b.dir, "tree")
	if err := makeTree(root, b.sizes().leafDirs); err != nil {
		return err
	}
	t, err := newTreeCheck(root)
	if err != nil {
		return err
	}
	argv := []string{"command", grep, "-rl", "lazy dog", root}
	if _, err := b.plain(argv...); err != nil { // the file cache is warm for all
		return err
	}
	// At least three measured runs, because their bytes are compared.
	c, err := b.compare(max(3, b.n(9, 5)), argv, t.check)
	if err != nil {
		return err
	}
	r := c.row(rowGrep(), &c.loop, atMost(1.25), fmt.Sprintf("exactly those paths, surface the same bytes in %d runs", t.runs))
	b.table.add(r.ofCPU("%s files and directories", len(t.there)))
	return b.withPeers("the same", b.n(3, 1), "openat", argv...)
}

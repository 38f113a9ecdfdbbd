package main

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestInterleave(t *testing.T) {
	order := ""
	say := func(s string) func() error { return func() error { order += s; return nil } }
	if err := interleave(3, say("p"), say("m")); err != nil || order != "pmmppm" {
		t.Errorf("%q, %v", order, err)
	}
	broken := errors.New("broken")
	if err := interleave(3, say("p"), func() error { return broken }); err != broken {
		t.Error(err)
	}
}

func TestLoss(t *testing.T) {
	c := &comparison{own: []float64{1, 1, 1}}
	c.loop.add(1, 2)
	if r := c.row("x", &c.loop, atMost(3), "fine"); r.verdict != "met" || r.note != "fine" || r.ratio != "2.00" {
		t.Errorf("%+v", r)
	}
	c.bad = []string{"5 dropped"}
	if r := c.row("x", &c.loop, atMost(3), "fine"); r.verdict != "INCOMPLETE" || r.note != "1 of 3 runs: 5 dropped" {
		t.Errorf("%+v", r)
	}
}

// TestTreeCheck: the tree has the size that the specification names.
func TestTreeCheck(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	if err := makeTree(root, leafDirs); err != nil {
		t.Fatal(err)
	}
	c, err := newTreeCheck(root)
	if err != nil {
		t.Fatal(err)
	}
	dirs := 1 + topDirs*(1+midDirs*(1+leafDirs))
	if want := treeSize(leafDirs); len(c.there) != want || dirs < 780 || dirs > 820 {
		t.Errorf("%d names in %d directories, expected %d", len(c.there), dirs, want)
	}
}

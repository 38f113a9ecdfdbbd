package journal

import (
	"os"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// names counts the names of each file, by the first one, before and after.
func names(items map[string]*item, of func(*item) *node) map[string][]string {
	m := map[string][]string{}
	for path, it := range items {
		n := of(it)
		if n == nil || n.Kind != tree.File {
			continue
		}
		f := path
		if n.Link != "" {
			f = string(n.Link)
		}
		m[f] = append(m[f], path)
	}
	for _, list := range m {
		slices.Sort(list)
	}
	return m
}

// inPlace marks what keeps its content and its other names: only its mode, owner, attributes or time change.
func (p *planner) inPlace() {
	before := names(p.items, func(it *item) *node { return it.Old })
	after := names(p.items, func(it *item) *node { return it.New })
	for path, it := range p.items {
		if it.Old == nil || it.New == nil || it.New.Kind == tree.Dir || it.New.content(it.Old) != "" || it.Old.Link != it.New.Link || it.Old.SHA256 != it.New.SHA256 {
			continue
		}
		f := path
		if it.New.Link != "" {
			f = string(it.New.Link)
		}
		it.InPlace = slices.Equal(before[f], after[f])
	}
	for _, it := range p.items { // the names of one file are changed in one way
		if it.InPlace && it.New.Link != "" {
			if of := p.items[string(it.New.Link)]; of != nil {
				it.InPlace = of.InPlace
			}
		}
	}
}

// parents makes items of the directories that get or lose names, and checks that they are there.
func (p *planner) parents() error {
	dirs := map[string]bool{}
	for path := range p.items {
		if dir, _ := cut(path); path != root && p.items[dir] == nil {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		s, err := p.t.look(dir, false)
		switch {
		case err != nil:
			p.conflict(dir, "%v", err)
		case s == nil:
			p.conflict(dir, "it is not there, but names in it are to be changed")
		case s.Kind != tree.Dir:
			p.conflict(dir, "it is a %s, but names in it are to be changed", s.Kind)
		default:
			n := s.node
			n.AnyXattrs, n.AnyTime = true, true
			p.items[dir] = &item{Path: bytesName(dir), Old: &s.node, New: &n, Implied: true}
		}
	}
	return nil
}

// owners checks that whoever works can give each name the owner that it is to have, and had.
func (p *planner) owners() {
	euid := os.Geteuid()
	if euid == 0 {
		return
	}
	groups, _ := os.Getgroups()
	groups = append(groups, os.Getegid())
	for path, it := range p.items {
		if it.Implied {
			continue
		}
		for i, n := range []*node{it.Old, it.New} {
			if n == nil {
				continue
			}
			if int(n.UID) != euid || !slices.Contains(groups, int(n.GID)) {
				p.conflict(path, "%s %d:%d, which only root can give", []string{"its owner is", "its owner is to be"}[i], n.UID, n.GID)
				break
			}
		}
	}
}

// temps checks that the names that are used on the way are free.
func (p *planner) temps(list []item) {
	for i := range list {
		path := string(list[i].Path)
		if path == root {
			continue
		}
		dir, _ := cut(path)
		name := p.temp(i)
		if dir != root {
			name = dir + "/" + name
		}
		if p.items[name] != nil {
			p.conflict(name, "this name is used on the way")
			continue
		}
		if p.set.fresh(path) {
			continue
		}
		switch s, err := p.t.look(name, false); {
		case noDir(err): // it is made
		case err != nil:
			p.conflict(name, "this name is used on the way: %v", err)
		case s != nil:
			p.conflict(name, "this name is used on the way, but is there")
		}
	}
}

package main

import (
	"maps"
	"slices"
	"strings"
)

// row is one thing that a fold shows: a name, or many: all in a folder and below ("/usr/"), those
// in the folder itself ("/usr/*"), or those below that have no row of their own ("/usr/…").
type row struct {
	name  string
	names int // how many names it stands for
}

// rows folds the names to at most n rows. Folders with the most names are opened first, so
// that few rows say as much as they can.
func (m *model) rows(f *fold, n int) []row {
	names := make([]string, 0, len(f.times))
	for id := range maps.Keys(f.times) {
		names = append(names, m.list[id])
	}
	slices.Sort(names)
	list := folders(names, n)
	slices.SortStableFunc(list, func(a, b row) int {
		if a.names != b.names {
			return b.names - a.names
		}
		return strings.Compare(a.name, b.name)
	})
	return list
}

// folder is a set of names that begin with prefix, sorted.
type folder struct {
	prefix string
	names  []string
	kind   folderKind
}

type folderKind int

const (
	whole  folderKind = iota // all names that begin with prefix
	direct                   // those in the folder itself
	others                   // those in subfolders that have no row of their own
)

func folders(names []string, n int) []row {
	open := []folder{{"", names, whole}}
	for {
		at, parts := openable(open, len(names), n)
		if at < 0 {
			break
		}
		open = slices.Replace(open, at, at+1, parts...)
	}
	var list []row
	for _, f := range open {
		switch {
		case len(f.names) == 0:
		case len(f.names) == 1:
			list = append(list, row{f.names[0], 1})
		case f.prefix == "" && f.kind == direct:
			list = appendEach(list, f.names)
		case f.prefix == "" && f.kind == whole: // nothing could be opened
			subs, own := split("", f.names)
			for _, sub := range subs {
				list = append(list, row{sub.prefix, len(sub.names)})
			}
			list = appendEach(list, own)
		case f.kind == direct:
			list = append(list, row{f.prefix + "*", len(f.names)})
		case f.kind == others:
			list = append(list, row{f.prefix + "…", len(f.names)})
		default:
			list = append(list, row{f.prefix, len(f.names)})
		}
	}
	return list
}

// appendEach adds a row for each of the names that have no common folder: endpoints, texts.
func appendEach(list []row, names []string) []row {
	for _, name := range names {
		list = append(list, row{name, 1})
	}
	return list
}

// openable finds the largest folder that can be opened within n rows, and its parts. Of one that has
// at least half of all names, the small parts become one row where there are too many.
func openable(open []folder, all, n int) (at int, parts []folder) {
	for _, i := range bySize(open) {
		parts, room := open[i].parts(), n-len(open)+1
		switch {
		case len(parts) < 2:
		case len(parts) <= room:
			return i, parts
		case room >= 3 && 2*len(open[i].names) >= all && parts[0].kind == whole:
			return i, merge(open[i].prefix, parts, room)
		}
	}
	return -1, nil
}

// merge keeps the largest parts and puts the others into one.
func merge(prefix string, parts []folder, n int) []folder {
	slices.SortStableFunc(parts, func(a, b folder) int { return len(b.names) - len(a.names) })
	rest := folder{prefix: prefix, kind: others}
	for _, p := range parts[n-1:] {
		rest.names = append(rest.names, p.names...)
	}
	return append(parts[:n-1], rest)
}

// bySize are the indexes of the folders that can be opened, the largest first.
func bySize(open []folder) []int {
	var list []int
	for i := range open {
		if one := &open[i]; len(one.names) > 1 && (one.kind == whole || one.kind == direct && one.prefix != "") {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return len(open[b].names) - len(open[a].names) })
	return list
}

// parts opens a folder: its subfolders, and the names in it. A chain of folders with one
// subfolder each is one step.
func (f *folder) parts() []folder {
	prefix, names := f.prefix, f.names
	for {
		subs, own := split(prefix, names)
		if len(subs) == 1 && len(own) == 0 {
			prefix = subs[0].prefix
			f.prefix = prefix
			continue
		}
		if len(subs) == 0 {
			parts := make([]folder, 0, len(own))
			for _, name := range own {
				parts = append(parts, folder{prefix, []string{name}, direct})
			}
			return parts
		}
		if len(own) > 0 {
			subs = append(subs, folder{prefix, own, direct})
		}
		return subs
	}
}

// split sorts names by the next component after the prefix.
func split(prefix string, names []string) (subs []folder, own []string) {
	for i := 0; i < len(names); i++ {
		rest := names[i][len(prefix):]
		slash := strings.IndexByte(rest, '/')
		if slash < 0 || strings.HasPrefix(names[i], "unix:") {
			own = append(own, names[i])
			continue
		}
		sub := names[i][:len(prefix)+slash+1]
		from := i
		for i+1 < len(names) && strings.HasPrefix(names[i+1], sub) {
			i++
		}
		subs = append(subs, folder{sub, names[from : i+1], whole})
	}
	return subs, own
}

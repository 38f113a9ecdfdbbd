package journal

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// planner compares a directory with what transitions expect, and makes the items of them.
type planner struct {
	t    *target
	set  *set
	temp func(i int) string // the names that are used on the way

	seen      []*seen             // of each transition
	first     map[string]string   // of files with several names: the first name
	members   map[string][]string // by first names: all names below the directory
	items     map[string]*item
	conflicts ConflictError
}

// plan looks at the directory. Nothing changes but rights of directories that their owner may not enter.
func (p *planner) plan() ([]item, error) {
	p.items = map[string]*item{}
	if err := p.observe(); err != nil {
		return nil, err
	}
	if err := p.links(); err != nil {
		return nil, err
	}
	for i := range p.set.list {
		p.state(i)
	}
	if p.conflicts.Count > 0 {
		return nil, &p.conflicts
	}
	for i := range p.set.list {
		p.item(i)
	}
	for i := range p.set.list {
		p.others(i)
	}
	for i := range p.set.list {
		p.linked(i)
	}
	p.inPlace()
	if err := p.parents(); err != nil {
		return nil, err
	}
	p.owners()
	list := make([]item, 0, len(p.items))
	for _, it := range p.items {
		list = append(list, *it)
	}
	slices.SortFunc(list, func(a, b item) int { return cmp.Compare(a.Path, b.Path) })
	p.temps(list)
	return list, p.conflicts.orNil()
}

func (p *planner) conflict(path, format string, a ...any) {
	p.conflicts.add(path, fmt.Sprintf(format, a...))
}

// observe looks at each name.
func (p *planner) observe() error {
	p.seen = make([]*seen, len(p.set.list))
	for i := range p.set.list {
		x := &p.set.list[i]
		if p.set.fresh(x.Path) {
			continue
		}
		s, err := p.t.look(x.Path, true)
		if noDir(err) && p.set.maybe(x.Path) {
			err = nil
		}
		if err != nil {
			if full(err) || os.IsTimeout(err) {
				return err
			}
			p.conflict(x.Path, "%v", err)
			continue
		}
		p.seen[i] = s
	}
	return nil
}

// links finds the other names of files that have several.
func (p *planner) links() error {
	p.first, p.members = map[string]string{}, map[string][]string{}
	several := false
	for i, s := range p.seen {
		several = several || s != nil && s.Kind == tree.File && s.links > 1
		to := p.set.list[i].To
		several = several || to != nil && to.Link != "" && p.set.get(to.Link) == nil
	}
	if !several {
		return nil
	}
	known := func(*tree.Entry) ([32]byte, bool) { return [32]byte{}, true }
	all, err := tree.Scan(handle(p.t.fd), tree.Options{Known: known})
	if err != nil {
		return err
	}
	for i := range all {
		if e := &all[i]; e.Kind == tree.File && e.Link != "" {
			p.first[e.Path] = e.Link
			p.members[e.Link] = append(p.members[e.Link], e.Path)
		}
	}
	for f, list := range p.members {
		p.first[f], p.members[f] = f, append([]string{f}, list...)
	}
	return nil
}

// state compares one name with what is expected.
func (p *planner) state(i int) {
	x, s := &p.set.list[i], p.seen[i]
	if s == nil {
		if x.From != nil && !unknown(x.From) {
			p.conflict(x.Path, "it is not there, expected a %s", x.From.Kind)
		}
		return
	}
	switch s.Kind {
	case tree.Socket, tree.Char, tree.Block:
		p.conflict(x.Path, "it is a %s, which is not replaced", s.Kind)
		return
	}
	switch {
	case x.From == nil:
		p.conflict(x.Path, "it is there, a %s, expected nothing", s.Kind)
		return
	case unknown(x.From):
		if s.Kind == tree.Dir && (x.To == nil || x.To.Kind != tree.Dir) {
			p.conflict(x.Path, "it is a directory, which is not replaced")
		}
	default:
		if why := s.expected(x.From); why != "" {
			p.conflict(x.Path, "%s", why)
			return
		}
	}
	if s.Kind == tree.File {
		p.linkState(x, s)
	}
	if s.Kind == tree.Dir && (x.To == nil || x.To.Kind != tree.Dir) {
		p.holds(x.Path)
	}
}

// linkState compares which names are the same file.
func (p *planner) linkState(x *Transition, s *seen) {
	f := p.firstOf(x.Path)
	if n := uint64(len(p.group(f))); s.links != n {
		p.conflict(x.Path, "the file has %d names, of which %d could be found in the directory: the others are outside of it", s.links, n)
		return
	}
	if unknown(x.From) {
		return
	}
	link := x.From.Link
	if link == "" {
		link = x.Path
	}
	if f != link {
		p.conflict(x.Path, "the first name of its file is %s, expected %s", shown(f), shown(link))
	}
}

// firstOf is the first name of the file that a name is.
func (p *planner) firstOf(path string) string {
	if f, ok := p.first[path]; ok {
		return f
	}
	return path
}

// group is all names of a file, by its first one.
func (p *planner) group(f string) []string {
	if list, ok := p.members[f]; ok {
		return list
	}
	return []string{f}
}

// holds checks that a directory that goes away has nothing but what goes away.
func (p *planner) holds(path string) {
	names, err := p.t.names(path)
	if err != nil {
		p.conflict(path, "what it holds cannot be read: %v", err)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if x := p.set.get(path + "/" + name); x == nil || x.To != nil {
			p.conflict(path, "it holds %s, which is no part of the change", shown(name))
		}
	}
}

// item makes the item of one transition.
func (p *planner) item(i int) {
	x, s := &p.set.list[i], p.seen[i]
	it := &item{Path: bytesName(x.Path)}
	if s != nil {
		it.Old = p.old(x.Path, s)
	}
	switch {
	case x.To == nil:
	case unknown(x.From) && s != nil && s.Kind == tree.Dir: // it stays what it is
		n := *it.Old
		n.AnyXattrs, n.AnyTime = true, true
		it.New, it.Implied = &n, true
	default:
		it.New = p.made(x, it.Old)
	}
	p.items[x.Path] = it
}

// old is what is there, with the link that the other names of its file mean.
func (p *planner) old(path string, s *seen) *node {
	n := s.node
	if f := p.firstOf(path); n.Kind == tree.File && f != path {
		n.Link, n.SHA256, n.Size = bytesName(f), "", 0
	}
	return &n
}

// made is what a name is to become.
func (p *planner) made(x *Transition, old *node) *node {
	to := x.To
	n := &node{Kind: to.Kind, Mode: to.Mode, Target: bytesName(to.Target), Link: bytesName(to.Link)}
	if to.Kind == tree.File && to.Link == "" {
		n.Size, n.SHA256 = to.Size, to.SHA256
	}
	keeps := func(from, to int) bool { return to == -1 && old != nil && (unknown(x.From) || from == -1) }
	n.UID, n.GID = uint32(to.UID), uint32(to.GID)
	from := x.From
	if from == nil {
		from = Unknown
	}
	if to.UID == -1 {
		if n.UID = p.t.uid; keeps(from.UID, to.UID) {
			n.UID = old.UID
		}
	}
	if to.GID == -1 {
		if n.GID = p.t.gid; keeps(from.GID, to.GID) {
			n.GID = old.GID
		}
	}
	switch {
	case to.Xattrs != nil:
		n.Xattrs = xattrsOf(to.Xattrs)
	case old != nil && old.Kind == to.Kind:
		n.Xattrs = old.Xattrs
		if n.content(old) != "" { // as the kernel does at each write: other bytes do not get the capabilities
			n.Xattrs = slices.DeleteFunc(slices.Clone(n.Xattrs), func(x xattr) bool { return x.Name == capability })
		}
	default:
		n.AnyXattrs = true
	}
	const second = 1e9
	if n.Sec, n.Nsec = to.ModifiedNS/second, to.ModifiedNS%second; n.Nsec < 0 {
		n.Sec, n.Nsec = n.Sec-1, n.Nsec+second
	}
	n.AnyTime = to.ModifiedNS == 0
	return n
}

// others makes items of the names that stay the same file as a name that changes, and are no part of the change themselves.
func (p *planner) others(i int) {
	x, s := &p.set.list[i], p.seen[i]
	if s == nil || s.Kind != tree.File || len(p.group(p.firstOf(x.Path))) == 1 {
		return
	}
	f := p.firstOf(x.Path)
	if unknown(x.From) {
		p.rewrite(x, f)
		return
	}
	if f != x.Path {
		return
	}
	to := p.items[f].New
	for _, path := range p.group(f) {
		if p.items[path] != nil {
			continue
		}
		if to == nil || to.Kind != tree.File {
			p.conflict(path, "it is the same file as %s, which goes away, but no part of the change", shown(f))
			continue
		}
		p.other(path, f, to)
	}
}

// other makes the item of one name that stays the same file as f.
func (p *planner) other(path, f string, to *node) {
	s, err := p.t.look(path, false)
	if err != nil || s == nil {
		p.conflict(path, "it cannot be looked at: %v", err)
		return
	}
	n := *to
	if n.SHA256, n.Size = "", 0; n.Link == "" {
		n.Link = bytesName(f)
	}
	p.items[path] = &item{Path: bytesName(path), Old: p.old(path, s), New: &n}
}

// rewrite lets all names of a file have the content that is written to one of them.
func (p *planner) rewrite(x *Transition, f string) {
	it := p.items[x.Path]
	for _, path := range p.group(f) {
		if other := p.items[path]; other != nil && other != it {
			p.conflict(x.Path, "it is the same file as %s, which is to be changed, too", shown(path))
			return
		}
	}
	if it.New == nil || it.New.Kind != tree.File || it.New.Link != "" {
		p.conflict(x.Path, "it is the same file as %s, which is no part of the change", shown(p.group(f)[0]))
		return
	}
	to := *it.New
	for _, path := range p.group(f) {
		p.other(path, f, &to)
	}
	if p.items[f] != nil {
		p.items[f].New = &to
		s, err := p.t.look(f, true)
		if err != nil || s == nil {
			p.conflict(f, "it cannot be read: %v", err)
			return
		}
		p.items[f].Old = p.old(f, s)
	}
}

// linked checks what a name is to be a link to.
func (p *planner) linked(i int) {
	x := &p.set.list[i]
	it := p.items[x.Path]
	if it.New == nil || it.New.Link == "" {
		return
	}
	link := string(it.New.Link)
	to := p.items[link]
	if to == nil {
		f := p.firstOf(link)
		s, err := p.t.look(link, false)
		switch {
		case err != nil || s == nil || s.Kind != tree.File:
			p.conflict(x.Path, "it is to be a link to %s, which is no file", shown(link))
		case uint64(len(p.group(f))) != s.links:
			p.conflict(x.Path, "it is to be a link to %s, which has names outside of the directory", shown(link))
		case s.Mode != it.New.Mode || x.To.UID != -1 && s.UID != it.New.UID || x.To.GID != -1 && s.GID != it.New.GID:
			p.conflict(x.Path, "it is to be a link to %s, but with another mode or owner", shown(link))
		default:
			it.New.UID, it.New.GID, it.New.Xattrs, it.New.AnyXattrs, it.New.AnyTime = s.UID, s.GID, s.Xattrs, false, true
		}
		return
	}
	if to.New == nil || to.New.Kind != tree.File {
		p.conflict(x.Path, "it is to be a link to %s, which is no file then", shown(link))
		return
	}
	if to.New.Link != "" {
		it.New.Link = to.New.Link
		to = p.items[string(to.New.Link)]
	}
	if to != nil && to.New != nil {
		it.New.UID, it.New.GID, it.New.Xattrs, it.New.AnyXattrs, it.New.AnyTime = to.New.UID, to.New.GID, to.New.Xattrs, to.New.AnyXattrs, true
	}
}

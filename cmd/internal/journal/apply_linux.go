package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// apply brings each name of a list from one state to the other. Each action looks first, so that it can be done again.
type apply struct {
	j     *Journal
	t     *target
	items []item
	at    map[string]int
	temp  func(i int) string
	back  bool // from New to Old
	again bool // a part may be done already
	// lenient: a name that cannot be brought there is named in left, and the others are. Errors of the disk still end it.
	lenient bool
	left    []string
	notKept map[string]bool // "PATH: NAME: why"
	missed  map[[2]string]bool
	ctx     context.Context
	many    map[string]int // names of each file with a digest in the list, in the state that is wanted
}

func newApply(j *Journal, t *target, id string, items []item, back bool) *apply {
	a := &apply{j: j, t: t, items: items, at: make(map[string]int, len(items)), temp: tempName(id), back: back, ctx: context.Background(),
		notKept: map[string]bool{}, missed: map[[2]string]bool{}, many: map[string]int{}}
	for i := range items {
		a.at[string(items[i].Path)] = i
	}
	for i := range items {
		if n := a.goal(i); n != nil && n.Kind == tree.File {
			a.many[first(string(n.Link), string(items[i].Path))]++
		}
	}
	return a
}

func (a *apply) start(i int) *node {
	if a.back {
		return a.items[i].New
	}
	return a.items[i].Old
}

func (a *apply) goal(i int) *node {
	if a.back {
		return a.items[i].Old
	}
	return a.items[i].New
}

func (a *apply) path(i int) string { return string(a.items[i].Path) }

// errForeign means that a name is neither as it was nor as it is to be.
type errForeign struct{ why string }

func (e *errForeign) Error() string { return "somebody else changed it: " + e.why }

// failed takes an error of one item. It returns nil if the others are to go on.
func (a *apply) failed(i int, err error) error {
	var foreign *errForeign
	named := fmt.Errorf("%s: %w", shown(a.path(i)), err)
	if !a.lenient {
		return named
	}
	switch {
	case errors.As(err, &foreign), errors.Is(err, errParent), errors.Is(err, errSymlink), errors.Is(err, errMount), errors.Is(err, errChanges):
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
	default:
		return named
	}
	if !slices.Contains(a.left, named.Error()) {
		a.left = append(a.left, named.Error())
	}
	return nil
}

// each calls f for the items that are chosen, in the order of their paths or against it.
func (a *apply) each(down bool, which func(i int) bool, f func(i int) error) error {
	for n := range a.items {
		i := n
		if !down {
			i = len(a.items) - 1 - n
		}
		if !which(i) {
			continue
		}
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if err := f(i); err != nil {
			if err := a.failed(i, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// run does all. Names that make room go first, deepest first; other removals go last, so that a full disk is noticed before them.
func (a *apply) run() error {
	steps := []func() error{a.clean, a.makeRoom, a.directories, a.prepare, a.sync, a.place, a.link, a.remove, a.change, a.finish}
	if !a.again {
		steps = steps[1:]
	}
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func isDir(n *node) bool { return n != nil && n.Kind == tree.Dir }

// room reports whether a name must go before others can be made: a directory and something else take turns here or above.
func (a *apply) room(i int) bool {
	start, goal := a.start(i), a.goal(i)
	if start == nil {
		return false
	}
	if goal != nil {
		return isDir(start) != isDir(goal)
	}
	for dir, _ := cut(a.path(i)); dir != root; dir, _ = cut(dir) {
		if above, ok := a.at[dir]; ok && isDir(a.start(above)) && a.goal(above) != nil && !isDir(a.goal(above)) {
			return true
		}
	}
	return false
}

// made reports whether a name is put in place by a rename, with a content of its own.
func (a *apply) made(i int) bool {
	goal := a.goal(i)
	return goal != nil && goal.Kind != tree.Dir && goal.Link == "" && !a.items[i].InPlace
}

func (a *apply) linked(i int) bool {
	goal := a.goal(i)
	return goal != nil && goal.Link != "" && !a.items[i].InPlace
}

// where says what is at a name: nil if nothing is. An error if it is neither as it was nor as it is to be.
func (a *apply) where(i int) (*seen, error) {
	s, err := a.t.look(a.path(i), true)
	if noDir(err) {
		return nil, nil
	}
	start, goal := a.start(i), a.goal(i)
	switch {
	case err != nil:
		return nil, err
	case s == nil && (start == nil || goal == nil || isDir(start) != isDir(goal)):
		return nil, nil
	case s == nil:
		return nil, &errForeign{"it is not there"}
	}
	why := a.differs(s, start, goal, a.start)
	if why != "" && goal != nil {
		why = a.differs(s, goal, start, a.goal)
	}
	if why != "" {
		return nil, &errForeign{why}
	}
	return s, nil
}

// differs says how what is there differs from n, one of the two sides. Rights may be those of other, or on the way.
func (a *apply) differs(s *seen, n, other *node, side func(i int) *node) string {
	if n == nil {
		return fmt.Sprintf("it is there, a %s", s.Kind)
	}
	full := n
	if i, ok := a.at[string(n.Link)]; ok && side(i) != nil && side(i).Kind == n.Kind { // the digest is with the first name
		full = side(i)
	}
	if why := s.content(full); why != "" || n.Kind == tree.Dir {
		return why
	}
	if other == nil || other.Kind != n.Kind {
		other = n
	}
	switch {
	case s.Kind != tree.Symlink && !passing(s.Mode, n.Mode) && !passing(s.Mode, other.Mode):
		return s.rights(n)
	case s.UID != n.UID && s.UID != other.UID || s.GID != n.GID && s.GID != other.GID:
		return s.rights(n)
	}
	return ""
}

// passing reports whether a mode is another one, or one on the way to it: without setuid and setgid, which a change of the owner
// takes away, or with rights for the owner who had to read it.
func passing(now, mode uint32) bool {
	const special = 0o6000
	return now == mode || now == mode&^special || os.Geteuid() != 0 && now|ownerRights == mode|ownerRights
}

// clean removes what an earlier try left on the way.
func (a *apply) clean() error {
	return a.each(true, func(i int) bool { return a.path(i) != root }, func(i int) error {
		dir, err := a.parent(i)
		if noDir(err) {
			return nil
		}
		if err != nil {
			return err
		}
		at("clean")
		if err := unix.Unlinkat(dir, a.temp(i), 0); err != nil && err != unix.ENOENT {
			return err
		}
		return nil
	})
}

func (a *apply) parent(i int) (int, error) {
	dir, _ := cut(a.path(i))
	return a.t.dir(dir)
}

func (a *apply) makeRoom() error {
	return a.each(false, a.room, a.drop)
}

// remove removes what is to be removed, deepest first.
func (a *apply) remove() error {
	return a.each(false, func(i int) bool { return a.goal(i) == nil }, a.drop)
}

// directories makes directories, those above first.
func (a *apply) directories() error {
	return a.each(true, func(i int) bool { return isDir(a.goal(i)) && !isDir(a.start(i)) }, func(i int) error {
		dir, err := a.parent(i)
		if err != nil {
			return err
		}
		_, base := cut(a.path(i))
		at("mkdir")
		err = unix.Mkdirat(dir, base, 0o700)
		if err != unix.EEXIST || !a.again {
			if err == unix.EEXIST {
				err = &errForeign{"it is there already"}
			}
			return err
		}
		s, err := a.t.look(a.path(i), false)
		if err == nil && (s == nil || s.Kind != tree.Dir) {
			err = &errForeign{"it is no directory"}
		}
		return err
	})
}

// prepare makes what is renamed into place later.
func (a *apply) prepare() error {
	return a.each(true, a.made, func(i int) error {
		if a.settled(i) {
			return nil
		}
		return a.make(i)
	})
}

// settled reports whether a name, in a second try, is all that it is to be, so that nothing is made for it.
func (a *apply) settled(i int) bool {
	if !a.again || a.many[a.path(i)] > 1 || a.start(i) != nil && a.start(i).Link != "" {
		return false
	}
	s, err := a.t.look(a.path(i), true)
	return err == nil && s != nil && s.links == 1 && a.same(i, s) == ""
}

// same says how a name differs from what it is to be in the end.
func (a *apply) same(i int, s *seen) string {
	goal := a.goal(i)
	miss := func(name string) bool { return labelled(name) || a.missed[[2]string{a.path(i), name}] }
	return first(s.content(goal), s.rights(goal), s.attributes(goal, miss), s.time(goal))
}

// make makes one file, symlink or FIFO next to its place.
func (a *apply) make(i int) error {
	dir, err := a.parent(i)
	if err != nil {
		return err
	}
	goal, temp := a.goal(i), a.temp(i)
	at("make")
	var f *os.File
	switch goal.Kind {
	case tree.File:
		if f, err = a.file(dir, temp, goal); f != nil {
			defer f.Close()
		}
	case tree.Symlink:
		err = unix.Symlinkat(string(goal.Target), dir, temp)
	case tree.FIFO:
		err = unix.Mknodat(dir, temp, unix.S_IFIFO|0o600, 0)
	default:
		err = fmt.Errorf("a %s cannot be made", goal.Kind)
	}
	if err == nil {
		err = a.dress(i, dir, temp)
	}
	if err == nil && f != nil && len(a.items) <= fewSyncs { // with all that it was given
		at("sync")
		err = f.Sync()
	}
	if err != nil && err != unix.EEXIST {
		unix.Unlinkat(dir, temp, 0)
	}
	return err
}

// dress gives what was made owner, attributes, mode and time.
func (a *apply) dress(i, dir int, temp string) error {
	fd, err := unix.Openat2(dir, temp, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: inside})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return a.attribute(i, fd)
}

// attribute gives what is open the owner, attributes, mode and time that a name is to have.
func (a *apply) attribute(i int, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return attribute(fd, &node{UID: st.Uid, GID: st.Gid}, a.goal(i), func(name string, err error) {
		a.missed[[2]string{a.path(i), name}] = true
		a.notKept[fmt.Sprintf("%s: %s: %v", shown(a.path(i)), shown(name), err)] = true
	})
}

// file makes a file with the content that the journal has.
func (a *apply) file(dir int, temp string, goal *node) (*os.File, error) {
	from, err := a.j.blob(goal.SHA256)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), temp)
	at("write")
	_, err = io.Copy(f, from)
	return f, err
}

// fewSyncs is up to how many names are synced one by one. For more, the file system is synced as a whole.
const fewSyncs = 64

// sync comes back when all that was made is on the disk.
func (a *apply) sync() error {
	if len(a.items) <= fewSyncs {
		return nil
	}
	at("sync of all")
	return unix.Syncfs(a.t.fd)
}

// tempName gives the names that a transaction uses on the way. They follow from its id, so that they are known after a crash.
func tempName(id string) func(i int) string {
	head := fmt.Sprintf(".runner-gate-%s-", strings.TrimPrefix(digestText(id), digestPrefix)[:16])
	return func(i int) string { return fmt.Sprintf("%s%d", head, i) }
}

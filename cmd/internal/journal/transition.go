package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// root is the path of the directory itself.
const root = "."

// maxName is how many bytes a name may have, on every file system of Linux.
const maxName = 255

// shown is a path for people: in text form, bounded.
func shown(path string) string {
	const most = 300
	s := schemas.Text(path)
	if len(s) > most {
		return strings.ToValidUTF8(s[:most/2], "") + "…" + strings.ToValidUTF8(s[len(s)-most/2:], "")
	}
	return s
}

// join shows a bounded part of a list.
func join(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
	}
	return strings.Join(list, "; ")
}

// cut is the directory that a path is in, and its last name.
func cut(path string) (dir, base string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return root, path
}

// within reports whether a path is below a directory.
func within(path, dir string) bool {
	return dir == root && path != root || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// checkPath checks a path that others wrote.
func checkPath(path string) error {
	if path == "" {
		return errors.New("the path is empty")
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "":
			return errors.New("the path has an empty name: it is absolute, or has two slashes or one at its end")
		case name == "." || name == "..":
			return errors.New("the path has . or .. as a name")
		case strings.IndexByte(name, 0) >= 0:
			return errors.New("the path has a NUL")
		case len(name) > maxName:
			return fmt.Errorf("a name has %d bytes, at most %d", len(name), maxName)
		}
	}
	return nil
}

// check checks a state that others wrote. made: it is one that is to be made.
func (s *State) check(made bool) error {
	switch {
	case s.Unread != "":
		return fmt.Errorf("it is not known in full: %s", shown(s.Unread))
	case s.Kind == KindUnknown && !made:
		return nil
	case s.Kind != tree.File && s.Kind != tree.Dir && s.Kind != tree.Symlink && s.Kind != tree.FIFO:
		return fmt.Errorf("kind %q is not applied, expected file, dir, symlink or fifo", string(s.Kind))
	case s.Mode > 0o7777:
		return fmt.Errorf("mode is %#o, expected at most 07777", s.Mode)
	case s.UID < -1 || s.GID < -1 || int64(s.UID) >= 1<<32-1 || int64(s.GID) >= 1<<32-1:
		return fmt.Errorf("owner is %d:%d, expected numbers of users, or -1", s.UID, s.GID)
	case s.Kind != tree.File && (s.SHA256 != "" || s.Link != ""):
		return errors.New("only files have a digest or a link")
	case s.Kind == tree.File && (s.SHA256 == "") == (s.Link == ""):
		return errors.New("a file has a digest or a link, one of them")
	case s.SHA256 != "" && !schemas.ValidDigest(s.SHA256):
		return fmt.Errorf("digest is %.100q, expected sha256: and 64 lower-case hex digits", s.SHA256)
	case (s.Kind == tree.Symlink) != (s.Target != "") || strings.IndexByte(s.Target, 0) >= 0:
		return errors.New("symlinks have a target, without NUL, and nothing else has one")
	}
	if s.Link != "" {
		if err := checkPath(s.Link); err != nil {
			return fmt.Errorf("its link: %w", err)
		}
	}
	return nil
}

// check checks one transition by itself.
func (x *Transition) check() error {
	if x.Path == root {
		if x.From == nil || x.To == nil || x.From.Kind != tree.Dir || x.To.Kind != tree.Dir {
			return errors.New("the directory itself stays a directory")
		}
	} else if err := checkPath(x.Path); err != nil {
		return err
	}
	if x.From == nil && x.To == nil {
		return errors.New("it is neither there before nor afterwards")
	}
	for _, s := range []struct {
		name  string
		state *State
	}{{"before", x.From}, {"after", x.To}} {
		if s.state == nil {
			continue
		}
		if err := s.state.check(s.state == x.To); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if x.To != nil && x.To.Link == x.Path && x.To.Kind == tree.File {
		return errors.New("it is a link to itself")
	}
	return nil
}

// set is transitions in the order of their paths, each path once, that make sense together.
type set struct {
	list []Transition
	at   map[string]int
}

// newSet checks what others wrote, without a look at any directory.
func newSet(list []Transition) (*set, error) {
	if len(list) > tree.MaxEntries {
		return nil, fmt.Errorf("%d names are to be changed, at most %d", len(list), tree.MaxEntries)
	}
	s := &set{slices.Clone(list), make(map[string]int, len(list))}
	slices.SortFunc(s.list, func(a, b Transition) int { return cmp.Compare(a.Path, b.Path) })
	for i := range s.list {
		x := &s.list[i]
		if err := x.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(x.Path), err)
		}
		if _, twice := s.at[x.Path]; twice {
			return nil, fmt.Errorf("%s: it is to be changed twice", shown(x.Path))
		}
		s.at[x.Path] = i
	}
	for i := range s.list {
		if err := s.fits(&s.list[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(s.list[i].Path), err)
		}
	}
	return s, nil
}

func (s *set) get(path string) *Transition {
	if i, ok := s.at[path]; ok {
		return &s.list[i]
	}
	return nil
}

// fits checks that what is above a name, and what it is a link to, lets it be there before and afterwards.
func (s *set) fits(x *Transition) error {
	made := false // a directory above is made, so that only the set can fill it
	for dir, _ := cut(x.Path); dir != root; dir, _ = cut(dir) {
		above := s.get(dir)
		if above == nil {
			continue
		}
		if x.To != nil && (above.To == nil || above.To.Kind != tree.Dir) {
			return fmt.Errorf("it is to be made below %s, which is no directory then", shown(dir))
		}
		if x.From != nil && !unknown(x.From) && (above.From == nil || above.From.Kind != tree.Dir && !unknown(above.From)) {
			return fmt.Errorf("it is said to be below %s, which is no directory before", shown(dir))
		}
		if above.From == nil || above.From.Kind != tree.Dir && !unknown(above.From) {
			made = true
		}
	}
	if dir, _ := cut(x.Path); made && x.To != nil && s.get(dir) == nil {
		return fmt.Errorf("nothing makes the directory %s that it is to be in", shown(dir))
	}
	if x.To == nil || x.To.Link == "" {
		return nil
	}
	to := s.get(x.To.Link)
	switch {
	case to == nil:
		return nil
	case to.To == nil || to.To.Kind != tree.File || to.To.Link != "":
		return fmt.Errorf("it is to be a link to %s, which is no file with a digest then", shown(x.To.Link))
	case to.To.Mode != x.To.Mode || to.To.UID != x.To.UID || to.To.GID != x.To.GID:
		return fmt.Errorf("it is to be the same file as %s, but with another mode or owner", shown(x.To.Link))
	}
	return nil
}

// fresh reports whether a directory above a path is none before, so that nothing can be at the path.
func (s *set) fresh(path string) bool {
	for dir, _ := cut(path); dir != root; dir, _ = cut(dir) {
		if above := s.get(dir); above != nil && (above.From == nil || above.From.Kind != tree.Dir && !unknown(above.From)) {
			return true
		}
	}
	return false
}

// maybe reports whether no evidence says what a directory above a path is before.
func (s *set) maybe(path string) bool {
	for dir, _ := cut(path); dir != root; dir, _ = cut(dir) {
		if above := s.get(dir); above != nil && unknown(above.From) {
			return true
		}
	}
	return false
}

func unknown(s *State) bool { return s != nil && s.Kind == KindUnknown }

// wireState is a State as a list has it.
type wireState struct {
	Kind       tree.Kind `json:"kind"`
	Mode       uint32    `json:"mode"`
	UID        int       `json:"uid"`
	GID        int       `json:"gid"`
	Size       uint64    `json:"size,omitzero"`
	SHA256     string    `json:"sha256,omitempty"`
	Link       bytesName `json:"link,omitempty"`
	Target     bytesName `json:"target,omitempty"`
	Xattrs     []xattr   `json:"xattrs"`
	AnyXattrs  bool      `json:"any_xattrs,omitzero"`
	ModifiedNS int64     `json:"modified_ns,omitzero"`
}

// wireTransition is a Transition as a list has it.
type wireTransition struct {
	Path bytesName  `json:"path"`
	From *wireState `json:"from,omitempty"`
	To   *wireState `json:"to,omitempty"`
}

func wire(s *State) *wireState {
	if s == nil {
		return nil
	}
	return &wireState{s.Kind, s.Mode, s.UID, s.GID, s.Size, s.SHA256, bytesName(s.Link), bytesName(s.Target), xattrsOf(s.Xattrs), s.Xattrs == nil, s.ModifiedNS}
}

func (s *set) wire() []wireTransition {
	list := make([]wireTransition, len(s.list))
	for i := range s.list {
		x := &s.list[i]
		list[i] = wireTransition{bytesName(x.Path), wire(x.From), wire(x.To)}
	}
	return list
}

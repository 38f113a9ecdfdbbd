package journal

import (
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// bytesName is a path or target, which JSON has in text form.
type bytesName string

// MarshalText writes the text form.
func (b bytesName) MarshalText() ([]byte, error) { return schemas.AppendText(nil, []byte(b)), nil }

// UnmarshalText reads the text form.
func (b *bytesName) UnmarshalText(text []byte) error {
	raw, err := schemas.Untext(string(text))
	*b = bytesName(raw)
	return err
}

// xattr is one extended attribute.
type xattr struct {
	Name  bytesName `json:"name"`
	Value []byte    `json:"value"`
}

// node is all that is kept of what a name is or is to be.
type node struct {
	Kind   tree.Kind `json:"kind"`
	Mode   uint32    `json:"mode"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	Size   uint64    `json:"size,omitzero"`    // of a file without link
	SHA256 string    `json:"sha256,omitempty"` // of a file without link; "" if it could not be read
	Link   bytesName `json:"link,omitempty"`   // of a file: the name that has its content
	Target bytesName `json:"target,omitempty"`
	Xattrs []xattr   `json:"xattrs"` // sorted by name
	Sec    int64     `json:"sec"`    // time of the last change of the content
	Nsec   int64     `json:"nsec"`

	AnyXattrs bool `json:"any_xattrs,omitzero"` // those that the file system gives
	AnyTime   bool `json:"any_time,omitzero"`
}

// item is one name that a transaction changes, or whose time or links its changes touch.
type item struct {
	Path    bytesName `json:"path"`
	Old     *node     `json:"old,omitempty"` // nil: absent
	New     *node     `json:"new,omitempty"`
	InPlace bool      `json:"in_place,omitzero"` // only mode, owner, attributes or time of something that is no directory differ
	Implied bool      `json:"implied,omitzero"`  // a directory that only gets other names
}

// receipt is what a name became.
type receipt struct {
	Path bytesName `json:"path"`
	Now  *node     `json:"now,omitempty"`
}

// content says how the contents of two names differ, "" for not at all. Links are compared by others.
func (n *node) content(want *node) string {
	switch {
	case n.Kind != want.Kind:
		return fmt.Sprintf("it is a %s, expected a %s", n.Kind, want.Kind)
	case n.Target != want.Target:
		return fmt.Sprintf("its target is %s, expected %s", shown(string(n.Target)), shown(string(want.Target)))
	case n.Kind != tree.File:
		return ""
	case want.SHA256 != "" && n.Size != want.Size:
		return fmt.Sprintf("it has %d bytes, expected %d", n.Size, want.Size)
	case want.SHA256 != "" && n.SHA256 != want.SHA256:
		return "it has another content than expected"
	}
	return ""
}

// rights says how mode and owner of two names differ.
func (n *node) rights(want *node) string {
	switch {
	case n.Kind != tree.Symlink && n.Mode != want.Mode:
		return fmt.Sprintf("its mode is %#o, expected %#o", n.Mode, want.Mode)
	case n.UID != want.UID || n.GID != want.GID:
		return fmt.Sprintf("its owner is %d:%d, expected %d:%d", n.UID, n.GID, want.UID, want.GID)
	}
	return ""
}

// attributes names an extended attribute in which two names differ, except those in but.
func (n *node) attributes(want *node, but func(name string) bool) string {
	if want.AnyXattrs {
		return ""
	}
	have := n.Xattrs
	for _, x := range want.Xattrs {
		i := slices.IndexFunc(have, func(h xattr) bool { return h.Name == x.Name })
		if (i < 0 || string(have[i].Value) != string(x.Value)) && !but(string(x.Name)) {
			return fmt.Sprintf("its attribute %s is not what was expected", shown(string(x.Name)))
		}
	}
	for _, x := range have {
		if !slices.ContainsFunc(want.Xattrs, func(w xattr) bool { return w.Name == x.Name }) && !but(string(x.Name)) {
			return fmt.Sprintf("it has an attribute %s that was not expected", shown(string(x.Name)))
		}
	}
	return ""
}

func (n *node) time(want *node) string {
	if want.AnyTime || n.Sec == want.Sec && n.Nsec == want.Nsec {
		return ""
	}
	return fmt.Sprintf("its time is %d.%09d, expected %d.%09d", n.Sec, n.Nsec, want.Sec, want.Nsec)
}

// first is the first text that is not empty.
func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// expected says how what is there differs from what evidence says.
func (n *node) expected(s *State) string {
	want := &node{Kind: s.Kind, Mode: s.Mode, UID: n.UID, GID: n.GID, Size: s.Size, SHA256: s.SHA256, Target: bytesName(s.Target), AnyXattrs: s.Xattrs == nil}
	if s.UID >= 0 {
		want.UID = uint32(s.UID)
	}
	if s.GID >= 0 {
		want.GID = uint32(s.GID)
	}
	want.Xattrs = xattrsOf(s.Xattrs)
	return first(n.content(want), n.rights(want), n.attributes(want, labelled))
}

func xattrsOf(m map[string]string) (list []xattr) {
	for name, value := range m {
		list = append(list, xattr{bytesName(name), []byte(value)})
	}
	sortXattrs(list)
	return list
}

func sortXattrs(list []xattr) {
	slices.SortFunc(list, func(a, b xattr) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// labelled reports whether the system gives an attribute by itself, so that it cannot be taken away.
func labelled(name string) bool {
	return name == "security.selinux" || name == "security.ima" || name == "security.evm" || name == "security.SMACK64"
}

package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// What runner-box records: how the workspace differs at the end from what it was at the beginning, and what box it was.

// Kinds of files.
const (
	KindFile    = "file"
	KindDir     = "dir"
	KindSymlink = "symlink"
	KindFIFO    = "fifo"
	KindSocket  = "socket"
	KindChar    = "char"
	KindBlock   = "block"
)

// FileKinds are all kinds of files.
var FileKinds = [...]string{KindFile, KindDir, KindSymlink, KindFIFO, KindSocket, KindChar, KindBlock}

// How a name of the workspace differs.
const (
	ChangeAdd     = "add"
	ChangeDelete  = "delete"
	ChangeModify  = "modify"  // content, target or device
	ChangeReplace = "replace" // another kind of file
	ChangeLink    = "link"    // which other names are the same file
	ChangeMode    = "mode"    // only mode or owner
)

// FileChanges are all ways in which a name can differ.
var FileChanges = [...]string{ChangeAdd, ChangeDelete, ChangeModify, ChangeReplace, ChangeLink, ChangeMode}

// FileState is what a name is at one moment.
type FileState struct {
	Kind   string  `json:"kind"`
	Mode   uint32  `json:"mode"`          // permissions, setuid, setgid and sticky: 0 to 07777
	UID    *uint32 `json:"uid,omitempty"` // nil: the program's own
	GID    *uint32 `json:"gid,omitempty"`
	Size   *uint64 `json:"size,omitempty"`   // of a file, in bytes
	SHA256 string  `json:"sha256,omitempty"` // of a file's bytes
	Link   string  `json:"link,omitempty"`   // of a file: the first name of the same file, in byte order, in place of a digest
	Target string  `json:"target,omitempty"` // of a symlink, in text form
	Device *uint64 `json:"device,omitempty"` // of a device, as stat(2) has it
	Mount  bool    `json:"mount,omitzero"`   // of a directory: another file system is mounted there, and not described
	Unread string  `json:"unread,omitempty"` // why the bytes of a file, or the names in a directory, are not known
}

// FileChange is one line of layers/filesystem.ndjson.
type FileChange struct {
	Schema string     `json:"schema"`
	RunID  string     `json:"run_id"`
	Seq    uint64     `json:"seq"`
	Op     string     `json:"op"`
	Path   string     `json:"path"` // below the workspace, in text form; "." is the workspace itself
	Before *FileState `json:"before,omitempty"`
	After  *FileState `json:"after,omitempty"`
}

// BaseEntry is one line of the list of a base: the bytes of the list are the same in each run.
type BaseEntry struct {
	Schema string `json:"schema"`
	Path   string `json:"path"`
	FileState
	Modified int64 `json:"modified_ns,omitzero"` // ns since 1970; no part of the base's digest
}

// Box is run/box.json: what box the program ran in.
type Box struct {
	Schema     string            `json:"schema"`
	RunID      string            `json:"run_id"`
	Workdir    string            `json:"workdir"`
	Workspace  string            `json:"workspace"`
	Base       *BoxBase          `json:"base,omitempty"`
	Rootless   bool              `json:"rootless"`
	CPU        *uint32           `json:"cpu,omitempty"` // the only processor that it ran on
	Namespaces []string          `json:"namespaces"`
	Fresh      []string          `json:"fresh"`    // directories that are empty at first, and gone at the end
	Confined   []string          `json:"confined"` // what the program was started without, by the names of Confinements
	Changes    map[string]uint64 `json:"changes"`  // lines of the layer filesystem, by their op
	// Unread is how many names of the workspace could not be described in full.
	Unread          uint64 `json:"unread"`
	SurvivorsKilled uint64 `json:"survivors_killed"` // processes that outlived the program by more than the grace time
	InheritedFDs    uint64 `json:"inherited_fds"`    // descriptors above 2 that the program was started with
	// BaseChanged is how many names of the base others changed during the run: what the program saw of them is not known.
	BaseChanged uint64 `json:"base_changed"`
}

// BoxBase is what the workspace was at the beginning.
type BoxBase struct {
	Kind    string `json:"kind"` // dir, tar
	Digest  string `json:"digest"`
	Entries uint64 `json:"entries"`
	Bytes   uint64 `json:"bytes"` // of all files, each once
	// List is the digest of the list of the entries, which is a blob, as the bytes of their files are. "": the base is
	// not part of the record.
	List string `json:"list,omitempty"`
}

// Kinds of bases, and what workspaces are made of.
const (
	BaseDir = "dir"
	BaseTar = "tar"

	WorkspaceOverlay  = "overlay"
	WorkspaceCopy     = "copy"
	WorkspaceUnpacked = "unpacked"
	WorkspaceEmpty    = "empty"
)

// BaseKinds, Workspaces and BoxNamespaces are all words of these keys.
var (
	BaseKinds     = [...]string{BaseDir, BaseTar}
	Workspaces    = [...]string{WorkspaceOverlay, WorkspaceCopy, WorkspaceUnpacked, WorkspaceEmpty}
	BoxNamespaces = [...]string{"mount", "pid", "ipc", "uts", "user"}
)

// ParseFileChange parses one line of layers/filesystem.ndjson.
func ParseFileChange(line []byte) (*FileChange, error) {
	c := new(FileChange)
	err := decode(line, c)
	if err == nil {
		err = first(head(c.Schema, SchemaFileChange, c.RunID), oneOf("op", c.Op, FileChanges[:]...), notEmpty("path", c.Path), c.check())
	}
	if err != nil {
		return nil, fmt.Errorf("file change: %w", err)
	}
	return c, nil
}

func (c *FileChange) check() error {
	if (c.Before == nil) != (c.Op == ChangeAdd) || (c.After == nil) != (c.Op == ChangeDelete) {
		return fmt.Errorf("op is %s, expected before for all but add, and after for all but delete", c.Op)
	}
	for name, s := range map[string]*FileState{"before": c.Before, "after": c.After} {
		if s == nil {
			continue
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// ChangeOf is the op of a name that was a and is b, nil where it is not there; "" if it does not differ. What is not known of either
// is taken to differ.
func ChangeOf(a, b *FileState) string {
	switch {
	case a == nil && b == nil:
		return ""
	case a == nil:
		return ChangeAdd
	case b == nil:
		return ChangeDelete
	case a.Kind != b.Kind:
		return ChangeReplace
	case a.Unread != "" || b.Unread != "" || a.Mount || b.Mount:
		return ChangeModify
	case a.Link != b.Link:
		return ChangeLink
	case !equal(a.Size, b.Size) || a.SHA256 != b.SHA256 || a.Target != b.Target || !equal(a.Device, b.Device):
		return ChangeModify
	case a.Mode != b.Mode || !equal(a.UID, b.UID) || !equal(a.GID, b.GID):
		return ChangeMode
	}
	return ""
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// check checks that a state has what its kind has, and nothing else.
func (s *FileState) check() error {
	if err := oneOf("kind", s.Kind, FileKinds[:]...); err != nil {
		return err
	}
	device := s.Kind == KindChar || s.Kind == KindBlock
	known := 0
	for _, is := range []bool{s.SHA256 != "", s.Link != "", s.Unread != ""} {
		if is {
			known++
		}
	}
	switch {
	case s.Mode > 0o7777:
		return fmt.Errorf("mode is %d, expected at most 4095", s.Mode)
	case (s.UID == nil) != (s.GID == nil):
		return errors.New("one of uid and gid is missing")
	case (s.Size != nil) != (s.Kind == KindFile):
		return errors.New("size is of files, and all of them")
	case s.Kind == KindFile && known != 1:
		return errors.New("a file has one of sha256, link and unread")
	case s.Kind != KindFile && (s.SHA256 != "" || s.Link != ""):
		return errors.New("sha256 and link are of files")
	case s.Kind != KindFile && s.Kind != KindDir && s.Unread != "":
		return errors.New("unread is of files and directories")
	case (s.Target != "") != (s.Kind == KindSymlink):
		return errors.New("target is of symlinks, and all of them")
	case (s.Device != nil) != device:
		return errors.New("device is of devices, and all of them")
	case s.Mount && s.Kind != KindDir:
		return errors.New("mount is of directories")
	}
	return optionalDigest("sha256", s.SHA256)
}

// ParseBaseEntry parses one line of the list of a base.
func ParseBaseEntry(line []byte) (*BaseEntry, error) {
	e := new(BaseEntry)
	err := decode(line, e)
	if err == nil && e.Schema != SchemaBaseEntry {
		err = fmt.Errorf("schema is %.100q, expected %q", e.Schema, SchemaBaseEntry)
	}
	if err == nil {
		err = first(notEmpty("path", e.Path), e.check())
	}
	if err != nil {
		return nil, fmt.Errorf("base entry: %w", err)
	}
	return e, nil
}

// ParseBox parses run/box.json.
func ParseBox(b []byte) (*Box, error) {
	x := new(Box)
	err := decode(b, x)
	if err == nil {
		err = first(head(x.Schema, SchemaBox, x.RunID), x.check())
	}
	if err != nil {
		return nil, fmt.Errorf("box: %w", err)
	}
	return x, nil
}

func (x *Box) check() error {
	if !strings.HasPrefix(x.Workdir, "/") {
		return fmt.Errorf("workdir is %.100q, expected an absolute path", x.Workdir)
	}
	if err := oneOf("workspace", x.Workspace, Workspaces[:]...); err != nil {
		return err
	}
	if (x.Base == nil) != (x.Workspace == WorkspaceEmpty) {
		return errors.New("base is there exactly if the workspace was not empty")
	}
	for _, n := range x.Namespaces {
		if err := oneOf("namespaces", n, BoxNamespaces[:]...); err != nil {
			return err
		}
	}
	for op, n := range x.Changes {
		if err := oneOf("changes", op, FileChanges[:]...); err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("changes.%s is 0, expected no zeros", op)
		}
	}
	if err := CheckConfined(x.Confined); err != nil || x.Base == nil {
		return err
	}
	return x.Base.check()
}

func (b *BoxBase) check() error {
	return first(oneOf("base.kind", b.Kind, BaseKinds[:]...), notEmpty("base.digest", b.Digest), optionalDigest("base.digest", b.Digest), optionalDigest("base.list", b.List))
}

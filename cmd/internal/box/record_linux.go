package box

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// StreamFile is the name of the stream in the record.
const StreamFile = "box.ndjson"

// described is what is known of the base before the program starts.
type described struct {
	list []tree.Entry // the workspace at the beginning, the workspace itself first
	base *schemas.BoxBase
}

// workspace is the path of the workspace before process 1 enters the box.
func (i *inside) workspace() string { return i.place.stage + i.conf.Workdir }

// describeBase describes the workspace before the program starts. That of an overlay is the base.
func (i *inside) describeBase() (*described, error) {
	d := new(described)
	o := tree.Options{}
	if i.record >= 0 && i.conf.Pack {
		o.Keep = keep(i.record)
	}
	at := i.workspace()
	if i.place.upper >= 0 {
		at = descriptor(i.place.base)
	}
	var err error
	if d.list, err = scan(at, i.workspace(), o); err != nil {
		return nil, fmt.Errorf("reading the base: %w", err)
	}
	for n := range d.list {
		if d.list[n].Mount {
			return nil, tool.Failf(tool.ExitOwn, "--base %s: another file system is mounted at %s in it, which the box would not show", schemas.Text(i.conf.Base), schemas.Text(d.list[n].Path))
		}
	}
	if i.conf.Kind == BaseNone || i.record < 0 {
		return d, nil
	}
	d.base, err = i.listBase(d.list)
	return d, err
}

// scan describes what is in a directory, and the workspace itself, which has the root's mode and owner.
func scan(at, root string, o tree.Options) ([]tree.Entry, error) {
	list, err := tree.Scan(at, o)
	if err != nil {
		return nil, err
	}
	self, err := tree.Root(root)
	if err != nil {
		return nil, err
	}
	list = append(list, self)
	slices.SortFunc(list, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// listBase writes the list of the base as a blob, and digests it without times.
func (i *inside) listBase(list []tree.Entry) (*schemas.BoxBase, error) {
	b := &schemas.BoxBase{Kind: i.conf.Kind, Entries: uint64(len(list))}
	h := sha256.New()
	var text bytes.Buffer
	for n := range list {
		e := schemas.BaseEntry{Schema: schemas.SchemaBaseEntry, Path: schemas.Text(list[n].Path), FileState: *i.state(&list[n])}
		line, err := schemas.Marshal(e)
		if err != nil {
			return nil, err
		}
		h.Write(append(line, '\n'))
		e.Modified = list[n].Modified
		if line, err = schemas.Marshal(e); err != nil {
			return nil, err
		}
		text.Write(append(line, '\n'))
		if list[n].Kind == tree.File && list[n].Link == "" {
			b.Bytes += list[n].Size
		}
	}
	b.Digest = schemas.DigestFrom(h)
	if !i.conf.Pack {
		return b, nil
	}
	if n := files(list); i.conf.State.Record > 0 && n > schemas.MaxBlobs/2 {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("the base has %d different files, and half of the %d blobs of an archive are for it", n, schemas.MaxBlobs), "--base-by-digest leaves their bytes out")
	}
	b.List = schemas.DigestOf(text.Bytes())
	return b, record.NewBlobs(i.record).Put(text.Bytes(), sha256.Sum256(text.Bytes()))
}

// files counts the different contents of a list.
func files(list []tree.Entry) int {
	seen := map[[32]byte]bool{}
	for n := range list {
		if e := &list[n]; e.Kind == tree.File && e.Link == "" && e.Unread == "" {
			seen[e.SHA256] = true
		}
	}
	return len(seen)
}

// keep keeps the bytes of files as blobs of a record.
func keep(dir int) func() (tree.Kept, error) {
	b := record.NewBlobs(dir)
	return func() (tree.Kept, error) { return b.Open() }
}

// maxContents is how many contents of the base and the workspace are kept in a measured run: the other blobs of an archive are for
// what else is recorded.
const maxContents = schemas.MaxBlobs - 4096

// keepNew keeps the bytes of files that the base does not have, as many different ones as an archive has room for.
func (i *inside) keepNew() func() (tree.Kept, error) {
	keep := keep(i.record)
	if i.conf.State.Record <= 0 {
		return keep
	}
	r := &room{known: map[[32]byte]bool{}, left: maxContents}
	if i.conf.Pack {
		r.left -= files(i.before.list)
	}
	for n := range i.before.list {
		r.known[i.before.list[n].SHA256] = true
	}
	return func() (tree.Kept, error) {
		k, err := keep()
		return &bounded{k, r}, err
	}
}

// room is for which contents there is room.
type room struct {
	known map[[32]byte]bool
	left  int
}

// bounded is the place of the bytes of a file, if there is room for it in the end.
type bounded struct {
	tree.Kept
	room *room
}

// Done ends it.
func (b *bounded) Done(sum *[32]byte) error {
	if sum != nil && !b.room.known[*sum] {
		if b.room.left == 0 {
			return cmp.Or(b.Kept.Done(nil), fmt.Errorf("%w: an archive has room for %d contents", tree.ErrNotKept, maxContents))
		}
		b.room.left--
		b.room.known[*sum] = true
	}
	return b.Kept.Done(sum)
}

// state is an entry as the record has it. Owners are told where they are not the program's: its numbers say nothing on
// another machine.
func (i *inside) state(e *tree.Entry) *schemas.FileState {
	s := &schemas.FileState{Kind: string(e.Kind), Mode: e.Mode, Mount: e.Mount, Target: schemas.Text(e.Target), Link: schemas.Text(e.Link), Unread: schemas.Text(e.Unread)}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	if u := i.conf.State.User; u != nil {
		uid, gid = u.UID, u.GID
	}
	if e.UID != uid || e.GID != gid {
		s.UID, s.GID = &e.UID, &e.GID
	}
	switch e.Kind {
	case tree.File:
		s.Size = &e.Size
		if e.Link == "" && e.Unread == "" {
			s.SHA256 = "sha256:" + hex.EncodeToString(e.SHA256[:])
		}
	case tree.Char, tree.Block:
		s.Device = &e.Device
	}
	return s
}

// describeEnd describes the workspace after the program, and writes the record.
func (i *inside) describeEnd() (changes int, err error) {
	o := tree.Options{Known: i.untouched(), Inode: i.inode()}
	if i.record >= 0 {
		o.Keep = i.keepNew()
	}
	at := descriptor(i.place.work) // its name could be another directory's now
	list, err := scan(at, at, o)
	if err != nil {
		return 0, fmt.Errorf("reading the workspace: %w", err)
	}
	diff := slices.DeleteFunc(tree.Diff(i.before.list, list), i.onlyUnread)
	if i.record < 0 {
		return len(diff), nil
	}
	if err := i.dropUnchanged(diff, list); err != nil {
		return 0, err
	}
	return len(diff), i.write(diff, list)
}

// dropUnchanged takes away the bytes of files that were read and do not differ, such as one that was only touched. Nothing names them,
// unless they are those of a packed base.
func (i *inside) dropUnchanged(diff []tree.Change, list []tree.Entry) error {
	named := map[[32]byte]bool{{}: true}
	name := func(e *tree.Entry) {
		if e != nil {
			named[e.SHA256] = true
		}
	}
	for n := range diff {
		name(diff[n].Before)
		name(diff[n].After)
	}
	if i.conf.Pack {
		for n := range i.before.list {
			name(&i.before.list[n])
		}
	}
	blobs := record.NewBlobs(i.record)
	for n := range list {
		if sum := list[n].SHA256; !named[sum] {
			named[sum] = true
			if err := blobs.Drop(sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// untouched knows the digest of a file of an overlay that is not in its upper directory: it is the base's.
func (i *inside) untouched() func(*tree.Entry) ([32]byte, bool) {
	if i.place.upper < 0 {
		return nil
	}
	was := make(map[string]*tree.Entry, len(i.before.list))
	for n := range i.before.list {
		was[i.before.list[n].Path] = &i.before.list[n]
	}
	return func(e *tree.Entry) (none [32]byte, known bool) {
		before := was[e.Path]
		if before == nil || before.Kind != tree.File || before.Link != "" || before.Unread != "" || before.Size != e.Size {
			return none, false
		}
		return before.SHA256, i.below(e.Path)
	}
}

// inode tells which names of an overlay's upper directory are one file. The overlay gives each a number of its own.
func (i *inside) inode() func(string) (dev, ino, links uint64, ok bool) {
	if i.place.upper < 0 {
		return nil
	}
	return func(path string) (dev, ino, links uint64, ok bool) {
		var st unix.Stat_t
		err := unix.Fstatat(i.place.upper, path, &st, unix.AT_SYMLINK_NOFOLLOW)
		return st.Dev, st.Ino, uint64(st.Nlink), err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
	}
}

// below reports whether a name of an overlay is only in its base: nothing at all was done to it.
func (i *inside) below(path string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(i.place.upper, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == unix.ENOENT || err == unix.ENOTDIR
}

// onlyUnread reports whether a name differs only because nobody could read it, before and after.
func (i *inside) onlyUnread(c tree.Change) bool {
	return c.Op == tree.Modify && c.Before.Unread != "" && i.place.upper >= 0 && i.below(c.Path())
}

// write writes the stream. Its last record says what box it was.
func (i *inside) write(diff []tree.Change, list []tree.Entry) error {
	fd, err := unix.Openat(i.record, StreamFile, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("making %s: %w", StreamFile, err)
	}
	f := os.NewFile(uintptr(fd), StreamFile)
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	w, err := stream.NewWriter(out, stream.Header{Stream: schemas.StreamBox, RunID: i.conf.RunID, Tool: schemas.StageBox, Version: tool.Version()})
	if err != nil {
		return err
	}
	x := i.document(list)
	for n := range diff {
		c := &diff[n]
		line := schemas.FileChange{Schema: schemas.SchemaFileChange, RunID: i.conf.RunID, Seq: uint64(n), Op: string(c.Op), Path: schemas.Text(c.Path())}
		if c.Before != nil {
			line.Before = i.state(c.Before)
		}
		if c.After != nil {
			line.After = i.state(c.After)
		}
		x.Changes[line.Op]++
		if err := w.Write(line); err != nil {
			return err
		}
	}
	changed, err := i.baseChanged()
	if err != nil {
		return err
	}
	x.BaseChanged = changed
	status := schemas.StatusComplete
	if x.Unread > 0 || x.BaseChanged > 0 {
		status = schemas.StatusPartial
	}
	if err := w.Write(x); err != nil {
		return err
	}
	if err := w.Seal(status); err != nil {
		return err
	}
	return errors.Join(out.Flush(), f.Sync())
}

// document says what box it was.
func (i *inside) document(list []tree.Entry) *schemas.Box {
	x := &schemas.Box{Schema: schemas.SchemaBox, RunID: i.conf.RunID, Workdir: schemas.Text(i.conf.Workdir), Workspace: i.place.workspace, Base: i.before.base, Rootless: i.conf.Narrow,
		Namespaces: []string{"mount", "pid", "ipc", "uts"}, Fresh: []string{freshShm}, Confined: i.confined, Changes: map[string]uint64{}, SurvivorsKilled: uint64(i.killed), InheritedFDs: i.inherited}
	if i.conf.Narrow {
		x.Namespaces = append(x.Namespaces, "user")
	}
	x.Fresh = append(x.Fresh, i.place.fresh...)
	slices.Sort(x.Fresh)
	if i.conf.CPU != nil {
		n := uint32(*i.conf.CPU)
		x.CPU = &n
	}
	for n := range list {
		if list[n].Unread != "" || list[n].Mount {
			x.Unread++
		}
	}
	return x
}

// baseChanged counts the names of an overlay's base that differ from what they were.
func (i *inside) baseChanged() (uint64, error) {
	if i.place.upper < 0 {
		return 0, nil
	}
	was := make(map[string]*tree.Entry, len(i.before.list))
	for n := range i.before.list {
		was[i.before.list[n].Path] = &i.before.list[n]
	}
	list, err := tree.Scan(descriptor(i.place.base), tree.Options{Known: func(e *tree.Entry) (none [32]byte, known bool) {
		b := was[e.Path]
		if b == nil || b.Changed != e.Changed || b.Size != e.Size || b.Unread != "" {
			return none, false
		}
		return b.SHA256, true
	}})
	if err != nil {
		return 0, fmt.Errorf("reading the base again: %w", err)
	}
	before := slices.DeleteFunc(slices.Clone(i.before.list), func(e tree.Entry) bool { return e.Path == "." })
	return uint64(len(tree.Diff(before, list))), nil
}

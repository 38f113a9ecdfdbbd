//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// fileSession is what enforces file rules. A refused operation fails with EPERM, as a
// refused connect does.
type fileSession struct {
	tree *fileTree
	coll *ebpf.Collection
	pins []int // keep the inodes that the tables have the addresses of
}

// optionalHooks are in some kernels only. Without them, another hook has the same calls.
var optionalHooks = []string{
	objects.FilesProgOnFileTruncate, objects.FilesProgOnInodeSetAcl, objects.FilesProgOnInodeRemoveAcl,
	objects.FilesProgOnInodeFileSetattr, objects.FilesProgOnFileIoctlCompat,
}

// hooksFor are the hooks that are about one operation only. The others are always needed: a
// rule that denies anything must not become void by a move.
var hooksFor = map[string][]string{
	schemas.HookWrite: {
		objects.FilesProgOnPathTruncate, objects.FilesProgOnFileTruncate, objects.FilesProgOnPathChmod, objects.FilesProgOnPathChown,
		objects.FilesProgOnInodeSetattr, objects.FilesProgOnInodeSetxattr, objects.FilesProgOnInodeRemovexattr,
		objects.FilesProgOnInodeSetAcl, objects.FilesProgOnInodeRemoveAcl, objects.FilesProgOnInodeFileSetattr,
		objects.FilesProgOnFileIoctl, objects.FilesProgOnFileIoctlCompat,
	},
	schemas.HookCreate: {objects.FilesProgOnPathMkdir, objects.FilesProgOnPathMknod, objects.FilesProgOnPathSymlink},
	schemas.HookDelete: {objects.FilesProgOnPathUnlink, objects.FilesProgOnPathRmdir},
}

// attachFiles makes the kernel check file rules.
func (s *Session) attachFiles(shared map[string]*ebpf.Map, rules *schemas.FileRules) error {
	if err := rules.Check(); err != nil {
		return err
	}
	f := &fileSession{tree: newFileTree(rules)}
	a, err := s.newAsker()
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.canary(); err != nil {
		return err
	}
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	places, err := translate(f.tree, mounts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.files = f
	s.mu.Unlock()
	spec, err := s.read(filesObject) // of two forms at once, each would count: where the verifier refuses one, Attach begins anew
	if err != nil {
		return err
	}
	if err := f.fill(spec, a, places); err != nil {
		return err
	}
	hooks, err := s.chooseHooks(spec)
	if err != nil {
		return err
	}
	spec = pick(spec, f.needed(hooks)...)
	if err := s.prepare(spec); err != nil {
		return err
	}
	return s.loadFiles(f, spec, shared)
}

// chooseHooks are the programs for the hooks that this kernel has, with the forms of their
// parameters.
func (s *Session) chooseHooks(spec *ebpf.CollectionSpec) ([]string, error) {
	kernel, err := s.types.Kernel()
	if err != nil {
		return nil, err
	}
	hooks := slices.Sorted(maps.Keys(spec.Programs))
	params := map[string][]btf.FuncParam{}
	for _, name := range slices.Clone(hooks) {
		p, err := hookParams(kernel, spec.Programs[name].AttachTo)
		if err != nil && slices.Contains(optionalHooks, name) {
			hooks = slices.DeleteFunc(hooks, func(s string) bool { return s == name })
			continue
		}
		if err != nil {
			return nil, err
		}
		params[name] = p
	}
	setattr := params[objects.FilesProgOnInodeSetattr]
	for name, set := range map[string]bool{
		objects.FilesVarSetattrFirst: pointsTo(setattr, 0, "dentry"),
		objects.FilesVarRenameFlags:  len(params[objects.FilesProgOnPathRename]) == 5,
	} {
		if err := spec.Variables[name].Set(set); err != nil {
			return nil, err
		}
	}
	if !pointsTo(setattr, 0, "dentry") && !pointsTo(setattr, 1, "dentry") || !pointsTo(params[objects.FilesProgOnInodeSetxattr], 1, "dentry") {
		return nil, errors.New("the LSM hooks of attributes have other parameters than this build knows")
	}
	return hooks, nil
}

// fill writes the tables into the spec.
func (f *fileSession) fill(spec *ebpf.CollectionSpec, a *asker, places *fileSystems) error {
	self, err := a.learn(-1)
	if err != nil {
		return err
	}
	stacks := slices.ContainsFunc(places.mounts, func(m mount) bool { return slices.Contains(stacked, m.kind) })
	for name, value := range map[string]any{
		objects.FilesVarHostNs: self.Inode, objects.FilesVarLoader: uint32(self.Magic), objects.FilesVarOverlays: stacks,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return err
		}
	}
	anchors, err := f.locate(a, places)
	if err != nil {
		return err
	}
	var nodes, edges, numbers []ebpf.MapKV
	for id, n := range f.tree.nodes {
		v := f.tree.verdict(uint32(id))
		nodes = append(nodes, ebpf.MapKV{Key: uint32(id), Value: objects.FilesFileNode{Verdict: v.ops, Below: v.below, AllowBelow: v.allowBelow}})
		for name, to := range n.children {
			e := objects.FilesFileEdge{Node: uint32(id), Len: uint32(len(name))}
			copy(e.Name[:], name)
			edges = append(edges, ebpf.MapKV{Key: e, Value: to})
		}
	}
	for entry, n := range f.tree.numbers {
		numbers = append(numbers, ebpf.MapKV{Key: uint32(entry), Value: n})
	}
	for name, rows := range map[string][]ebpf.MapKV{
		objects.FilesMapFileNodes: nodes, objects.FilesMapFileEdges: edges,
		objects.FilesMapFileNumbers: numbers, objects.FilesMapFileAnchors: anchors,
	} {
		spec.Maps[name].Contents, spec.Maps[name].MaxEntries = rows, max(1, uint32(len(rows)))
	}
	spec.Maps[objects.FilesMapFileHits].MaxEntries = uint32(len(numbers))
	return nil
}

// locate learns where in the kernel the things are whose places are known.
func (f *fileSession) locate(a *asker, places *fileSystems) ([]ebpf.MapKV, error) {
	found := map[uint64]thing{}
	nodes := map[uint64][]uint32{}
	for _, t := range places.things {
		fd, err := t.pin()
		if errors.Is(err, unix.ENOENT) && t.rule {
			continue // removed since: its path still counts
		}
		if err != nil {
			return nil, err
		}
		f.pins = append(f.pins, fd)
		l, err := a.learn(fd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.path, err)
		}
		if _, ok := found[l.Inode]; !ok {
			found[l.Inode] = t
		}
		if !slices.Contains(nodes[l.Inode], t.node) {
			nodes[l.Inode] = append(nodes[l.Inode], t.node)
		}
		if _, ok := found[l.Magic]; t.magic && !ok {
			found[l.Magic], nodes[l.Magic] = t, []uint32{t.node}
		}
	}
	var out []ebpf.MapKV
	for key, t := range found {
		if len(nodes[key]) > 1 { // several rules' paths are names of one file
			t.node, t.leaf = f.tree.merge(nodes[key]), true
		}
		v := objects.FilesFileAnchor{Node: t.node}
		if t.leaf {
			v.Leaf = 1
		}
		path := components(t.path, len(v.Path)-1)
		v.Len = uint16(copy(v.Path[:], path))
		out = append(out, ebpf.MapKV{Key: key, Value: v})
	}
	return out, nil
}

// needed leaves out the hooks of operations that nothing denies.
func (f *fileSession) needed(hooks []string) []string {
	any := f.tree.verdict(nodeUnknown)
	for i, op := range schemas.RuleOps {
		if any.ops[i]&1 == 0 {
			hooks = slices.DeleteFunc(hooks, func(h string) bool { return slices.Contains(hooksFor[op], h) })
		}
	}
	return hooks
}

// loadFiles makes the tables, loads the programs and attaches them. From then on nobody can
// change the tables.
func (s *Session) loadFiles(f *fileSession, spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) error {
	spec.Maps[objects.FilesMapScratch].MaxEntries = spec.Maps[objects.FilesMapFilePool].MaxEntries
	use := map[string]*ebpf.Map{}
	for _, name := range []string{objects.FilesMapEvents, objects.FilesMapScope, objects.FilesMapCounters, objects.FilesMapDrops} {
		if m := shared[name]; m != nil {
			spec.Maps[name].MaxEntries = m.MaxEntries()
			use[name] = m
		}
	}
	tables := map[string]*ebpf.MapSpec{}
	for name, m := range spec.Maps {
		if !strings.HasPrefix(name, ".") { // each group of programs has its own constants
			tables[name] = m.Copy()
		}
	}
	coll, err := s.loadGroup(&ebpf.CollectionSpec{Maps: tables}, use)
	if err != nil {
		return fmt.Errorf("making the tables: %w", err)
	}
	f.coll = coll
	maps.Copy(use, coll.Maps)
	for name := range use {
		spec.Maps[name].Contents = nil
	}
	// The verifier takes some milliseconds for each program.
	names := slices.Sorted(maps.Keys(spec.Programs))
	groups := min(runtime.NumCPU(), len(names))
	errs := make([]error, groups)
	var wg sync.WaitGroup
	for g := range groups {
		wg.Go(func() {
			part := spec.Copy()
			for i, name := range names {
				if i%groups != g {
					delete(part.Programs, name)
				}
			}
			c, err := s.loadGroup(part, use)
			if err != nil {
				errs[g] = fmt.Errorf("loading the LSM hooks: %w", err)
				return
			}
			errs[g] = s.attachLSM(c)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range []string{objects.FilesMapFileNodes, objects.FilesMapFileEdges, objects.FilesMapFileNumbers, objects.FilesMapFileAnchors} {
		if err := coll.Maps[name].Freeze(); err != nil {
			return fmt.Errorf("freezing %s: %w", name, err)
		}
	}
	return nil
}

func (s *Session) loadGroup(spec *ebpf.CollectionSpec, use map[string]*ebpf.Map) (*ebpf.Collection, error) {
	coll, err := s.loadSomehow(spec, use)
	if err == nil {
		s.add(coll, use)
	}
	return coll, err
}

func (s *Session) attachLSM(coll *ebpf.Collection) error {
	if err := s.afterRequired(); err != nil {
		return err
	}
	for name, p := range coll.Programs {
		l, err := link.AttachLSM(link.LSMOptions{Program: p})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", name, err)
		}
		s.keep(l, p)
	}
	return nil
}

func (f *fileSession) close() {
	for _, fd := range f.pins {
		unix.Close(fd)
	}
	f.pins = nil
}

// FileBlocked is how often each file rule refused, by its number, 0 for a default. The kernel
// counted whether or not the ring had room. Nil without file rules.
func (s *Session) FileBlocked() (map[uint32]uint64, error) {
	if s.files == nil {
		return nil, nil
	}
	out := map[uint32]uint64{}
	for entry, number := range s.files.tree.numbers {
		var n uint64
		if err := s.files.coll.Maps[objects.FilesMapFileHits].Lookup(uint32(entry), &n); err != nil {
			return nil, fmt.Errorf("reading refusals: %w", err)
		}
		if n > 0 {
			out[number] += n
		}
	}
	return out, nil
}

// FileUnresolved is how many of these were refused because the object's path could not be
// found, so that any rule could be about it.
func (s *Session) FileUnresolved() (n uint64, err error) {
	if s.files == nil {
		return 0, nil
	}
	if err := s.files.coll.Maps[objects.FilesMapFileUnresolved].Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("reading refusals: %w", err)
	}
	return n, nil
}

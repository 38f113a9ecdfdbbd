package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"hash"
	"io"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// blobs is what is known of the blobs, which come before what names them.
type blobs struct {
	named map[string]bool   // digest → it has to be there
	sizes map[string]uint64 // digest → its length, as the first that names it says
	other map[string]bool   // digests that somebody says have another length
	lists map[string]*baseList
	left  int         // how many more digests of base lists are kept
	trees []*baseTree // of lists that the changes are compared with
	nodes int         // of all trees
}

// names notes that something names a blob, and how long it says that it is. needed: it has to be there.
func (b *blobs) names(digest string, size uint64, needed bool) {
	if b.named == nil {
		b.named, b.sizes, b.other = map[string]bool{}, map[string]uint64{}, map[string]bool{}
	}
	if was, known := b.sizes[digest]; known && was != size {
		b.other[digest] = true
	}
	b.named[digest], b.sizes[digest] = b.named[digest] || needed, size
}

// baseList is a blob that looks like the list of a base.
type baseList struct {
	owner   *blobs
	line    []byte
	h       hash.Hash
	entries uint64
	bytes   uint64
	files   []listed
	tree    *baseTree // nil: too many lists, or names
	is      bool      // so far
}

// listed is a file of a list.
type listed struct {
	digest string
	size   uint64
}

var baseHead = []byte(`{"schema":"` + schemas.SchemaBaseEntry + `"`)

// maxListed bounds the digests of files in lists of bases.
const maxListed = 4 * schemas.MaxBlobs

// blob returns what looks at the bytes of a blob, nil for other members.
func (b *blobs) blob(member string) io.Writer {
	digest, ok := schemas.BlobDigest(member)
	if !ok {
		return nil
	}
	if b.lists == nil {
		b.lists, b.left = map[string]*baseList{}, maxListed
	}
	l := &baseList{owner: b, h: sha256.New(), is: true}
	b.lists[digest] = l
	return l
}

// Write takes the next bytes. What is no list is forgotten at once.
func (l *baseList) Write(b []byte) (int, error) {
	n := len(b)
	for l.is && len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.line = append(l.line, b...)
			l.is = len(l.line) <= maxEntryLine && (len(l.line) < len(baseHead) || bytes.HasPrefix(l.line, baseHead))
			break
		}
		l.entry(append(l.line, b[:end]...))
		l.line, b = l.line[:0], b[end+1:]
	}
	if !l.is {
		l.owner.fell(l.tree)
		l.line, l.files, l.h, l.tree = nil, nil, nil, nil
	}
	return n, nil
}

// maxEntryLine bounds a line of a list, in bytes.
const maxEntryLine = 64 << 10

func (l *baseList) entry(line []byte) {
	e, err := schemas.ParseBaseEntry(line)
	if l.is = err == nil && bytes.HasPrefix(line, baseHead); !l.is {
		return
	}
	if l.entries++; l.entries == 1 {
		l.tree = l.owner.plant()
	}
	if l.tree != nil {
		l.tree.add(e)
		if l.owner.nodes++; l.owner.nodes > maxNodes {
			l.owner.fell(l.tree)
			l.tree = nil
		}
	}
	e.Modified = 0
	again, err := schemas.Marshal(e)
	if err != nil {
		l.is = false
		return
	}
	l.h.Write(append(again, '\n'))
	if e.Kind == schemas.KindFile && e.Link == "" {
		l.bytes += *e.Size
	}
	if e.SHA256 == "" {
		return
	}
	if l.owner.left--; l.owner.left < 0 {
		l.is = false
		return
	}
	l.files = append(l.files, listed{e.SHA256, *e.Size})
}

// wrappedBlobs checks that blobs and what names them go together.
func (v *verifier) wrappedBlobs() {
	b := &v.wrapped.blobs
	v.wrapped.changes.to("", v.wrapped.left)
	if x := documentOf[schemas.Box](&v.wrapped); x != nil {
		var tree *baseTree
		if x.Base != nil && x.Base.List != "" {
			tree = v.base(b, x.Base)
		}
		v.wrappedLinks(x, tree)
	}
	for _, digest := range sortedKeys(b.named) {
		m, there := v.members[schemas.BlobMember(digest)]
		if there && uint64(m.Size) != b.sizes[digest] || b.other[digest] {
			v.add(ruleWrappedBlobs, bundle.ManifestName, 0, "something says that the blob %s has another length than it has", digest)
		}
		if !there && b.named[digest] {
			v.add(ruleWrappedBlobs, bundle.ManifestName, 0, "the blob %s is not there, and a layer or a document needs it", digest)
		}
	}
	for _, digest := range sortedKeys(b.lists) {
		if _, named := b.named[digest]; !named {
			v.add(ruleWrappedBlobs, schemas.BlobMember(digest), 0, "nothing names this blob")
		}
	}
}

// base compares the list of a base with the document of the box. It returns the names of the list, nil if they are not known.
func (v *verifier) base(b *blobs, base *schemas.BoxBase) *baseTree {
	fault := func(format string, a ...any) { v.add(ruleWrappedBlobs, schemas.MemberRunBox, 0, format, a...) }
	l := b.lists[base.List]
	b.names(base.List, uint64(v.members[schemas.BlobMember(base.List)].Size), true)
	switch {
	case l == nil: // which is told as a blob that is missing
		return nil
	case !l.is || len(l.line) > 0 || l.entries == 0:
		fault("base.list names a blob that is no list of a base")
		return nil
	}
	if digest := schemas.DigestFrom(l.h); digest != base.Digest || l.entries != base.Entries || l.bytes != base.Bytes {
		fault("base has %d entries, %d bytes and %s, its list says %d, %d and %s", base.Entries, base.Bytes, base.Digest, l.entries, l.bytes, digest)
	}
	if l.tree == nil && l.entries <= maxNodes {
		fault("the changes could not be compared with the list of the base: more than %d blobs look like one, or have more than %d names together", maxTrees, maxNodes)
	}
	if l.tree != nil {
		if wrong := cmp.Or(l.tree.wrong, l.tree.loose()); wrong != "" {
			fault("the list of the base is no tree: %s", wrong)
		}
		if l.tree.fault != "" {
			v.add(ruleWrappedBlobs, schemas.MemberChanges, 0, "not a change of this base: %s", l.tree.fault)
		}
	}
	for _, f := range l.files {
		b.names(f.digest, f.size, true)
	}
	return l.tree
}

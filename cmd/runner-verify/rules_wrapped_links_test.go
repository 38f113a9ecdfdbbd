package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// basedOn lets the base of an archive have other entries, each without its schema. The file of wrappedRun stays the only one.
func (a content) basedOn(entries ...string) content {
	box := a[schemas.MemberRunBox]
	delete(a, schemas.BlobMember(regexp.MustCompile(`"list":"(.*?)"`).FindStringSubmatch(box)[1]))
	list := ""
	for _, entry := range entries {
		list += `{"schema":"runner.base_entry.v0",` + entry + "}\n"
	}
	digest := schemas.DigestOf([]byte(list))
	a[schemas.BlobMember(digest)] = list
	base := fmt.Sprintf(`"base":{"kind":"dir","digest":"%s","entries":%d,"bytes":%d,"list":"%s"}`, digest, len(entries), len(wrappedBase), digest)
	a[schemas.MemberRunBox] = regexp.MustCompile(`"base":{.*?}`).ReplaceAllLiteralString(box, base)
	return a
}

// byDigest lets the base of an archive be known by its digest only.
func (a content) byDigest() content {
	list := regexp.MustCompile(`,"list":"(.*?)"`).FindStringSubmatch(a[schemas.MemberRunBox])
	delete(a, schemas.BlobMember(list[1]))
	delete(a, schemas.BlobMember(schemas.DigestOf([]byte(wrappedBase))))
	a[schemas.MemberRunBox] = strings.Replace(a[schemas.MemberRunBox], list[0], "", 1)
	return a
}

// TestWrappedLinks: the first name of a file is there, as the first name of a file, wherever a link of a base or of a change says it.
func TestWrappedLinks(t *testing.T) {
	const (
		root, dir = `"path":".","kind":"dir","mode":493`, `"path":"%s","kind":"dir","mode":493`
		state     = `"kind":"file","mode":420,"size":18`
		link      = `"path":"%s",` + state + `,"link":"%s"`
	)
	digest := schemas.DigestOf([]byte(wrappedBase))
	file := fmt.Sprintf(`"path":"a",%s,"sha256":"%s"`, state, digest)
	to := func(path, link string) string {
		return fmt.Sprintf(`add "path":"%s","after":{%s,"link":"%s"}`, path, state, link)
	}
	entry := func(path, to string) string { return fmt.Sprintf(link, path, to) }
	for _, c := range []struct {
		name    string
		entries []string
		digest  bool
		lines   []string
		rule    string // "" is valid
	}{
		{name: "links of a base", entries: []string{root, file, entry("b", "a"), fmt.Sprintf(dir, "d"), entry("d/x", "a")}},
		{name: "a link of a base to nothing", entries: []string{root, file, entry("c", "b")}, rule: ruleWrappedBlobs},
		{name: "a link of a base to a directory", entries: []string{root, file, fmt.Sprintf(dir, "b"), entry("c", "b")}, rule: ruleWrappedBlobs},
		{name: "a link of a base to a link", entries: []string{root, file, entry("b", "a"), entry("c", "b")}, rule: ruleWrappedBlobs},
		{name: "a link of a base to a later name", entries: []string{root, entry("A", "a"), file}, rule: ruleWrappedBlobs},
		{name: "no base itself", entries: []string{file}, rule: ruleWrappedBlobs},
		{name: "a base that is a file", entries: []string{`"path":".","kind":"fifo","mode":420`, file}, rule: ruleWrappedBlobs},
		{name: "a name before that of the base itself", entries: []string{strings.Replace(file, `"a"`, `"!"`, 1), root, entry("b", "!")}},
		{name: "a name outside of the base", entries: []string{root, `"path":"..","kind":"fifo","mode":420`, file}, rule: ruleWrappedBlobs},
		{name: "a name that is no text", entries: []string{root, file, `"path":"b\\q","kind":"fifo","mode":420`}, rule: ruleWrappedBlobs},
		{name: "a target that is no text", entries: []string{root, file, `"path":"b","kind":"symlink","mode":511,"target":"\\q"`}, rule: ruleWrappedBlobs},
		{name: "a name that is written in another way", entries: []string{root, `"path":"./b","kind":"fifo","mode":420`, file}, rule: ruleWrappedBlobs},
		{name: "one more link", entries: []string{root, file, entry("b", "a")}, lines: []string{to("c", "a")}},
		{name: "a link to a link of the base", entries: []string{root, file, entry("b", "a")}, lines: []string{to("c", "b")}, rule: ruleWrappedBlobs},
		{name: "the first name goes away", entries: []string{root, file, entry("b", "a"), entry("c", "a")}, lines: []string{
			fmt.Sprintf(`delete "path":"a","before":{%s,"sha256":"%s"}`, state, digest),
			fmt.Sprintf(`link "path":"b","before":{%s,"link":"a"},"after":{%s,"sha256":"%s"}`, state, state, digest),
			fmt.Sprintf(`link "path":"c","before":{%s,"link":"a"},"after":{%s,"link":"b"}`, state, state)}},
		{name: "the first name goes away, and its link stays", entries: []string{root, file, entry("b", "a"), entry("c", "a")}, lines: []string{
			fmt.Sprintf(`delete "path":"a","before":{%s,"sha256":"%s"}`, state, digest),
			fmt.Sprintf(`mode "path":"c","before":{%s,"link":"a"},"after":{%s,"link":"a"}`, state, strings.Replace(state, "420", "384", 1))}, rule: ruleWrappedLines},
		{name: "the first name goes away, and a link of the base does not change", entries: []string{root, file, entry("b", "a")}, lines: []string{
			fmt.Sprintf(`delete "path":"a","before":{%s,"sha256":"%s"}`, state, digest)}, rule: ruleWrappedBlobs},
		{name: "to a base that is not listed", digest: true, lines: []string{to("x", "w")}},
		{name: "to a name that changed, of a base that is not listed", digest: true, lines: []string{`add "path":"w","after":{"kind":"fifo","mode":420}`, to("x", "w")}, rule: ruleWrappedLines},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := changedRun(t, c.lines...)
			if c.digest {
				a = a.byDigest()
			} else {
				a = a.basedOn(c.entries...)
			}
			if c.rule != "" {
				wrappedRefused(t, a, c.rule)
			} else if code, out, errs := call(a.digest(t).tar(t)); code != 0 {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// TestManyLinks: no more is kept of changes than the bound says, and then no link is compared.
func TestManyLinks(t *testing.T) {
	file, size := &schemas.FileState{Kind: schemas.KindFile, SHA256: testDigest}, uint64(1)
	file.Size = &size
	var f firsts
	for i := range maxNodes + 1 {
		f.add(uint64(i)<<2, i, &schemas.FileChange{After: file})
		if i == 7 {
			f.links = append(f.links, link{to: 8, when: firstBefore, at: uint32(i)})
		}
	}
	if !f.over || f.names != nil || f.links != nil {
		t.Errorf("%d names and %d links are kept", len(f.names), len(f.links))
	}
}

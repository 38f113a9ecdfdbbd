package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// changedRun is wrappedRun with other changes of its workspace, which are counted.
func changedRun(t *testing.T, lines ...string) content {
	a := wrappedRun(t)
	layer, ops, list := "", map[string]int{}, []string{}
	for i, line := range lines {
		op, rest, _ := strings.Cut(line, " ")
		layer += lineOf("file_change", i, fmt.Sprintf(`"op":"%s",%s`, op, rest))
		ops[op]++
	}
	for _, op := range schemas.FileChanges {
		if ops[op] > 0 {
			list = append(list, fmt.Sprintf(`"%s":%d`, op, ops[op]))
		}
	}
	digest := schemas.DigestOf([]byte(wrappedFile))
	if !strings.Contains(layer, digest) {
		delete(a, schemas.BlobMember(digest))
	}
	if a[schemas.MemberChanges] = layer; layer == "" {
		delete(a, schemas.MemberChanges)
	}
	a[schemas.MemberRunBox] = regexp.MustCompile(`"changes":{.*?}`).ReplaceAllLiteralString(a[schemas.MemberRunBox], `"changes":{`+strings.Join(list, ",")+"}")
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "workspace=overlay changes=2", fmt.Sprintf("workspace=overlay changes=%d", len(lines)), 1)
	return a
}

// empty lets the workspace of an archive have been empty.
func (a content) empty() content {
	list := regexp.MustCompile(`"list":"(.*?)"`).FindStringSubmatch(a[schemas.MemberRunBox])[1]
	delete(a, schemas.BlobMember(list))
	delete(a, schemas.BlobMember(schemas.DigestOf([]byte(wrappedBase))))
	a[schemas.MemberRunBox] = strings.Replace(regexp.MustCompile(`"base":{.*?},`).ReplaceAllLiteralString(a[schemas.MemberRunBox], ""), `"overlay"`, `"empty"`, 1)
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "workspace=overlay", "workspace=empty", 1)
	return a
}

// TestWrappedTree: the changes of a workspace go together, and with what it was before.
func TestWrappedTree(t *testing.T) {
	const (
		fifo, other = `{"kind":"fifo","mode":420}`, `{"kind":"fifo","mode":384}`
		dir         = `{"kind":"dir","mode":493}`
		link        = `{"kind":"file","mode":420,"size":12,"link":"%s"}`
	)
	base := fmt.Sprintf(`{"kind":"file","mode":420,"size":%d,"sha256":"%s"}`, len(wrappedBase), schemas.DigestOf([]byte(wrappedBase)))
	file := fmt.Sprintf(`{"kind":"file","mode":420,"size":%d,"sha256":"%s"}`, len(wrappedFile), schemas.DigestOf([]byte(wrappedFile)))
	wide := strings.Replace(base, "420", "511", 1)
	to := func(op, path, before, after string) string {
		text := fmt.Sprintf(`%s "path":"%s"`, op, path)
		if before != "" {
			text += `,"before":` + before
		}
		if after != "" {
			text += `,"after":` + after
		}
		return text
	}
	for _, c := range []struct {
		name  string
		lines []string
		empty bool
		rule  string // "" is valid
	}{
		{name: "nothing"},
		{name: "a tree", lines: []string{to("modify", "a", base, file), to("add", "b", "", dir), to("add", "b!", "", fifo), to("add", "b/x", "", dir), to("add", "b/x/y", "", fifo), to("delete", "c", fifo, ""), to("add", "d/f", "", fifo)}},
		{name: "a directory that goes away", lines: []string{to("delete", "d", dir, ""), to("delete", "d/e", fifo, "")}},
		{name: "a file in its place", lines: []string{to("replace", "d", dir, fifo), to("delete", "d/e", fifo, "")}},
		{name: "modes", lines: []string{to("mode", ".", dir, `{"kind":"dir","mode":448}`), to("mode", "a", base, wide), to("mode", "c", fifo, other)}},
		{name: "links", lines: []string{to("add", "b", "", file), to("add", "x", "", fmt.Sprintf(link, "b"))}},
		{name: "another content as another mode", lines: []string{to("mode", "a", base, file)}, rule: ruleWrappedLines},
		{name: "another mode as another content", lines: []string{to("modify", "a", base, wide)}, rule: ruleWrappedLines},
		{name: "another kind as another content", lines: []string{to("modify", "a", base, fifo)}, rule: ruleWrappedLines},
		{name: "the same kind as another", lines: []string{to("replace", "a", base, file)}, rule: ruleWrappedLines},
		{name: "below a file", lines: []string{to("add", "b", "", fifo), to("add", "b/x", "", fifo)}, rule: ruleWrappedLines},
		{name: "below what goes away", lines: []string{to("delete", "d", dir, ""), to("delete", "d/e", fifo, ""), to("add", "d/x", "", fifo)}, rule: ruleWrappedLines},
		{name: "before, below what is new", lines: []string{to("add", "b", "", dir), to("delete", "b/x", fifo, "")}, rule: ruleWrappedLines},
		{name: "the workspace goes away", lines: []string{to("delete", ".", dir, "")}, rule: ruleWrappedLines},
		{name: "a link to itself", lines: []string{to("add", "x", "", fmt.Sprintf(link, "x"))}, rule: ruleWrappedLines},
		{name: "a link to a file of the base", lines: []string{to("add", "x", "", fmt.Sprintf(link, "a"))}},
		{name: "a link to what was made", lines: []string{to("add", "b", "", file), to("add", "x", "", fmt.Sprintf(link, "b"))}, empty: true},
		{name: "a link to nothing", lines: []string{to("add", "x", "", fmt.Sprintf(link, "b"))}, rule: ruleWrappedBlobs},
		{name: "a link to nothing of an empty workspace", lines: []string{to("add", "x", "", fmt.Sprintf(link, "b"))}, empty: true, rule: ruleWrappedDocuments},
		{name: "a link to a directory of the base", lines: []string{to("add", "x", "", fmt.Sprintf(link, "d"))}, rule: ruleWrappedBlobs},
		{name: "a link to a FIFO", lines: []string{to("add", "b", "", fifo), to("add", "x", "", fmt.Sprintf(link, "b"))}, rule: ruleWrappedLines},
		{name: "a link to what goes away", lines: []string{to("delete", "a", base, ""), to("add", "x", "", fmt.Sprintf(link, "a"))}, rule: ruleWrappedLines},
		{name: "a link to a link", lines: []string{to("add", "b", "", fmt.Sprintf(link, "a")), to("add", "x", "", fmt.Sprintf(link, "b"))}, rule: ruleWrappedLines},
		{name: "before, a link to what is new", lines: []string{to("add", "b", "", file), to("delete", "x", fmt.Sprintf(link, "b"), "")}, rule: ruleWrappedLines},
		{name: "a link to a later name", lines: []string{to("add", "x", "", fmt.Sprintf(link, "y")), to("add", "y", "", file)}, rule: ruleWrappedLines},
		{name: "new, but in the base", lines: []string{to("add", "a", "", file)}, rule: ruleWrappedBlobs},
		{name: "gone, but not in the base", lines: []string{to("delete", "x", fifo, "")}, rule: ruleWrappedBlobs},
		{name: "not what it is in the base", lines: []string{to("delete", "c", other, "")}, rule: ruleWrappedBlobs},
		{name: "in no directory", lines: []string{to("add", "x/y", "", fifo)}, rule: ruleWrappedBlobs},
		{name: "in a file of the base", lines: []string{to("add", "a/y", "", fifo)}, rule: ruleWrappedBlobs},
		{name: "a directory goes away without what is in it", lines: []string{to("delete", "d", dir, "")}, rule: ruleWrappedBlobs},
		{name: "a file in the place of a directory with something in it", lines: []string{to("replace", "d", dir, fifo)}, rule: ruleWrappedBlobs},
		{name: "not known, and not counted", lines: []string{to("add", "b", "", `{"kind":"file","mode":0,"size":3,"unread":"EACCES"}`)}, rule: ruleWrappedDocuments},
		{name: "made in an empty workspace", lines: []string{to("add", "b", "", dir), to("add", "b/x", "", fifo)}, empty: true},
		{name: "gone from an empty workspace", lines: []string{to("delete", "c", fifo, "")}, empty: true, rule: ruleWrappedDocuments},
		{name: "in no directory of an empty workspace", lines: []string{to("add", "x/y", "", fifo)}, empty: true, rule: ruleWrappedDocuments},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := changedRun(t, c.lines...)
			if c.empty {
				a = a.empty()
			}
			if c.rule != "" {
				wrappedRefused(t, a, c.rule)
			} else if code, out, errs := call(a.digest(t).tar(t)); code != 0 {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// TestWrappedDecoys: files that look like lists of bases, and come before that of the base, hide no change from it.
func TestWrappedDecoys(t *testing.T) {
	const fifo = `{"kind":"fifo","mode":420}`
	true64 := regexp.MustCompile(`"list":"sha256:(.*?)"`).FindStringSubmatch(wrappedRun(t)[schemas.MemberRunBox])[1]
	for _, n := range []int{maxTrees - 1, maxTrees} {
		var lines, decoys []string
		for i := 0; len(decoys) < n; i++ {
			decoy := fmt.Sprintf(`{"schema":"%s","path":"x%d","kind":"fifo","mode":420}`+"\n", schemas.SchemaBaseEntry, i)
			if digest := schemas.DigestOf([]byte(decoy)); strings.TrimPrefix(digest, "sha256:") < true64 {
				decoys = append(decoys, decoy)
				lines = append(lines, fmt.Sprintf(`add "path":"new%05d","after":{"kind":"file","mode":420,"size":%d,"sha256":"%s"}`, len(decoys), len(decoy), digest))
			}
		}
		for _, last := range []string{"", `delete "path":"x","before":` + fifo} {
			all := lines
			if last != "" {
				all = append(lines[:len(lines):len(lines)], last)
			}
			a := changedRun(t, all...)
			for _, decoy := range decoys {
				a[schemas.BlobMember(schemas.DigestOf([]byte(decoy)))] = decoy
			}
			if code, out, errs := call(a.digest(t).tar(t)); last == "" && n < maxTrees && code != 0 || (last != "" || n == maxTrees) && code == 0 {
				t.Errorf("%d decoys, then %q: exit %d: %.2000s%s", n, last, code, out, errs)
			}
		}
	}
}

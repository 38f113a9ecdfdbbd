//go:build linux && (amd64 || arm64)

package bpf

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// The tree says of every path what the model says: what decides, and what lies further down.
func TestFileTree(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		path := func() string {
			parts := []string{""}
			for range rnd.IntN(5) {
				parts = append(parts, string(rune('a'+rnd.IntN(3))))
			}
			if len(parts) == 1 {
				return "/"
			}
			return strings.Join(parts, "/")
		}
		action := func() string { return []string{schemas.DecisionAllow, schemas.DecisionDeny}[rnd.IntN(2)] }
		rules := &schemas.FileRules{FilesDefault: action(), ExecDefault: action()}
		logs := []string{path(), path()}
		for n := range rnd.IntN(8) {
			on := []string{schemas.HookExec}
			if n < 5 {
				on = slices.DeleteFunc(slices.Clone(schemas.FileOps[:]), func(string) bool { return rnd.IntN(2) == 0 })
			}
			rules.Rules = append(rules.Rules, schemas.FileRule{Number: uint32(n + 1), Action: action(), Path: path(), On: on})
		}
		rules = rules.AllowLogs(logs[:seed%3])
		tree := newFileTree(rules)
		for i := range rules.Rules {
			if err := tree.add(nodeTop, rules.Rules[i].Path, i); err != nil {
				t.Fatal(err)
			}
		}
		number := func(v uint32) (uint32, bool) { return tree.numbers[v>>1], v&1 != 0 }
		for range 40 {
			p := path()
			node, above := tree.find(nodeTop, p)
			v, unknown := tree.verdict(node), tree.verdict(nodeUnknown)
			for i, op := range schemas.RuleOps {
				n, deny := number(v.ops[i])
				if wn, wd := rules.Decide([]byte(p), op); n != wn || deny != wd {
					t.Fatalf("seed %d: %s %s: %d %t, the model says %d %t\n%+v", seed, op, p, n, deny, wn, wd, rules)
				}
				n, deny = number(unknown.ops[i])
				if wn, wd := rules.Decide([]byte("?"), op); n != wn || deny != wd {
					t.Fatalf("seed %d: %s of an unknown path: %d %t, the model says %d %t\n%+v", seed, op, n, deny, wn, wd, rules)
				}
			}
			if above {
				v.below, v.allowBelow = 0, 0 // files.h asks only for a node's own path
			}
			to := path()
			wn, wd := rules.Moves([]byte(p), []byte(to))
			if n, deny := tree.moves(p, to, v); n != wn || deny != wd {
				t.Fatalf("seed %d: %s to %s: %d %t, the model says %d %t\n%+v", seed, p, to, n, deny, wn, wd, rules)
			}
		}
	}
}

// moves is check_move of files.bpf.c for one name each.
func (t *fileTree) moves(from, to string, v fileVerdict) (uint32, bool) {
	node, above := t.find(nodeTop, to)
	w := t.verdict(node)
	if above {
		w.allowBelow = 0
	}
	for i := range schemas.RuleOps {
		if v.ops[i]&1 != 0 && (w.ops[i]&1 == 0 || w.allowBelow>>i&1 != 0) {
			return t.numbers[v.ops[i]>>1], true
		}
	}
	return t.numbers[v.below>>1], v.below != 0
}

// A file that several rules name by different links is denied by the first of them.
func TestFileTreeMerged(t *testing.T) {
	rules := fileRules("allow", "allow", fileRule(1, "deny", "/a", "write"), fileRule(2, "deny", "/b", "read", "write"))
	tree := newFileTree(rules)
	var nodes []uint32
	for i := range rules.Rules {
		if err := tree.add(nodeTop, rules.Rules[i].Path, i); err != nil {
			t.Fatal(err)
		}
		n, _ := tree.find(nodeTop, rules.Rules[i].Path)
		nodes = append(nodes, n)
	}
	v := tree.verdict(tree.merge(nodes))
	if read, write := tree.numbers[v.ops[0]>>1], tree.numbers[v.ops[1]>>1]; read != 2 || write != 1 {
		t.Errorf("read is decided by %d, write by %d", read, write)
	}
}

func TestMountsText(t *testing.T) {
	if got := unescape(`/a\040b\134c\0`); got != `/a b\c\0` {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		dir, path, rest string
		ok              bool
	}{{"/", "/a", "/a", true}, {"/a", "/a", "", true}, {"/a", "/a/b", "/b", true}, {"/a", "/ab", "b", false}} {
		if rest, ok := below(c.dir, c.path); rest != c.rest || ok != c.ok {
			t.Errorf("below(%q, %q): %q %t", c.dir, c.path, rest, ok)
		}
	}
	if got := string(components("/ab/c", 100)); got != "\x01c\x02ab" {
		t.Errorf("%q", got)
	}
}

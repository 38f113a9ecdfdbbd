package cmd_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// refusedBy are the tools that read archives, with all that they could write of one: IN is the archive to
// refuse, GOOD another one, OUT a folder.
var refusedBy = map[string][]string{
	"runner-show":          {"IN"},
	"runner-diff, new":     {"--report", "OUT/diff.json", "GOOD", "IN"},
	"runner-diff, lock":    {"--write-lock", "OUT/lock.json", "GOOD", "IN"},
	"runner-lint":          {"--report", "OUT/lint.json", "--closure", "OUT/closure.json", "--sarif", "OUT/lint.sarif", "--junit", "OUT/lint.xml", "IN"},
	"runner-otel":          {"--traces", "OUT/traces.jsonl", "--logs", "OUT/logs.jsonl", "--mapping-report", "OUT/map.json", "IN"},
	"runner-soak --target": {"--report", "OUT/soak.json", "--surface", "OUT/surface.json", "--target", "IN"},
	"runner-attest":        {"--key", "GOODKEY", "--output", "OUT/run.intoto.jsonl", "IN"},
}

// hostileArchives are the vectors of runner-verify, and a real archive that was cut and edited.
func hostileArchives(t *testing.T, dir, good string) []string {
	whole := testkit.Read(t, good)
	list := glob(t, "../testdata/vectors/bundle/*")
	for name, b := range map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)/2], "no-end": whole[:len(whole)-1], "behind": append(bytes.Clone(whole), 'x'), "twice": append(bytes.Clone(whole), whole...),
		"edited": append(append(bytes.Clone(whole[:len(whole)/2]), whole[len(whole)/2]^1), whole[len(whole)/2+1:]...),
	} {
		list = append(list, filepath.Join(dir, name+".tar.gz"))
		write(t, list[len(list)-1], string(b))
	}
	return list
}

// TestRefusedByAll: what runner-verify refuses, every tool that reads archives refuses with the same finding
// and exit 3, and writes nothing of it.
func TestRefusedByAll(t *testing.T) {
	dir := t.TempDir()
	good, key := packed(t, "kernel-only", filepath.Join(dir, "good.tar.gz")), filepath.Join(dir, "key.pem")
	if o := call(t, command(t, "runner-attest", "--generate-key", key)); o.code != 0 {
		t.Fatal(o)
	}
	for _, hostile := range hostileArchives(t, dir, good) {
		t.Run(filepath.Base(hostile), func(t *testing.T) {
			t.Parallel()
			verify := call(t, command(t, "runner-verify", hostile))
			if verify.code == 0 || !strings.HasPrefix(verify.stderr, "runner-verify: ") {
				t.Fatalf("runner-verify: %v", verify)
			}
			out := t.TempDir()
			replace := strings.NewReplacer("GOODKEY", key, "GOOD", good, "IN", hostile, "OUT", out)
			for name, words := range refusedBy {
				program, _, _ := strings.Cut(strings.ReplaceAll(name, ",", ""), " ")
				var args []string
				for _, word := range words {
					args = append(args, replace.Replace(word))
				}
				if o := call(t, command(t, program, args...)); o.code != 3 || o.stderr != strings.ReplaceAll(verify.stderr, "runner-verify: ", program+": ") || o.stdout != "" {
					t.Errorf("%s: %v, want as %v", name, o, verify)
				}
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("%v was written, %v", left, err)
			}
		})
	}
}

// TestRefusedAtOnce: what does not begin as an archive is refused as runner-verify does, before more of it is kept than a small disk
// has room for, also where it has no end.
func TestRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	good, key := packed(t, "empty-run", filepath.Join(dir, "good.tar.gz")), filepath.Join(dir, "key.pem")
	if o := call(t, command(t, "runner-attest", "--generate-key", key)); o.code != 0 {
		t.Fatal(o)
	}
	calls := map[string][]string{"runner-replay": {"IN"}, "runner-net, har": {"har", "IN"}, "runner-net, prompts": {"prompts", "IN"}}
	maps.Copy(calls, refusedBy)
	for name, head := range map[string]string{"text": "hello", "gzip": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff", "json": `{"a":`, "zero": "\x00"} {
		path := filepath.Join(dir, name)
		write(t, path, head)
		testkit.Must(t, os.Truncate(path, 64<<20))
		if name == "zero" {
			path = "/dev/zero"
		}
		verify := call(t, command(t, "runner-verify", path))
		replace := strings.NewReplacer("GOODKEY", key, "GOOD", good, "IN", path, "OUT", dir)
		for name, words := range calls {
			program, _, _ := strings.Cut(strings.ReplaceAll(name, ",", ""), " ")
			args := []string{"-c", `ulimit -f 4000; exec "$@"`, "sh", tool(program)}
			for _, word := range words {
				args = append(args, replace.Replace(word))
			}
			if o := call(t, command(t, "sh", args...)); o.code != 3 || o.stderr != strings.ReplaceAll(verify.stderr, "runner-verify: ", program+": ") || o.stdout != "" {
				t.Errorf("%s %s: %v, want as %v", name, path, o, verify)
			}
		}
	}
}

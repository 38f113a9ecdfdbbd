package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBoxLinks: whatever a command does to hard links, of the base and new ones, its archive is valid.
func TestBoxLinks(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	var files []string
	for _, script := range []string{
		"true", "touch e n/z", "for n in n/*; do ln \"$n\" \"$n-\"; done; ln s0 s1", "mv n N", "ln a b; ln n/z y", "rm a", "rm c", "echo x >>c", "echo x >>a", "chmod 600 n/x", "ln c b; rm a; ln b n/y",
		"mv a w", "mv a z; mv c a", "rm -r n", "rm a; mkdir a", "rm a c; echo new >a; ln a c", "cp a t; mv t a", "cp -p a t; mv t c", "ln e f; rm e; mkfifo e",
		"echo new >1; ln 1 2; ln 2 n/3; rm 1", "touch 1; ln 1 2; ln 2 n/3; ln -f e 1", "ln -s a s; ln s t; rm a", "rm a; echo three >a; rm n/x; ln a n/x",
	} {
		dir := t.TempDir()
		base := filepath.Join(dir, "base")
		testkit.Must(t, os.MkdirAll(base+"/n", 0o755))
		for name, text := range map[string]string{"a": "three", "e": "one", "n/z": "another", "!": "before the base itself", "n/\xff\\x41\n": "odd"} {
			testkit.Must(t, os.WriteFile(filepath.Join(base, name), []byte(text), 0o644))
		}
		testkit.Must(t, os.Symlink("\xfe\\", base+"/s0"))
		for _, name := range []string{"c", "n/x"} {
			testkit.Must(t, os.Link(base+"/a", filepath.Join(base, name)))
		}
		testkit.Must(t, exec.Command("tar", "-C", base, "-cf", base+".tar", ".").Run())
		for name, flags := range map[string][]string{"overlay": {base}, "overlay, digest": {base, "--base-by-digest"}, "unpacked": {base + ".tar"}, "unpacked, digest": {base + ".tar", "--base-by-digest"}} {
			file := filepath.Join(dir, name+".tar")
			args := append([]string{"--no-kernel", "--archive", file, "--", tool("runner-box"), "--fallback", "copy", "--base"}, flags...)
			if o := call(t, command(t, "runner-exec", append(args, "--", "sh", "-c", script)...)); o.code != 0 {
				t.Fatalf("%s, %s: %v", script, name, o)
			}
			if o := call(t, command(t, "runner-verify", file)); o.code != 0 {
				t.Errorf("%s, %s: %v", script, name, o)
			}
			files = append(files, file)
		}
		file := filepath.Join(dir, "empty.tar")
		if o := call(t, command(t, "runner-exec", "--no-kernel", "--archive", file, "--", tool("runner-box"), "--", "sh", "-c", "echo 1 >b; ln b a; ln b c; mkdir d; ln c d/a; rm b")); o.code != 0 {
			t.Fatal(o)
		}
		files = append(files, file)
	}
	for i, says := range readerSays(t, files) {
		if says.Exit != 0 {
			t.Errorf("%s: %+v", files[i], says)
		}
	}
}

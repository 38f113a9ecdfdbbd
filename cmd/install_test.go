package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// manuals makes the manual pages and completions of the built tools.
func manuals(t *testing.T) (share string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		testkit.Skip(t, "manual pages and completions", "a shell script makes them")
	}
	share = t.TempDir()
	c := command(t, "sh", "../scripts/manual.sh", share)
	c.Env = append(c.Env, "BIN="+bin)
	if o := call(t, c); o.code != 0 || o.stderr != "" {
		t.Fatal(o)
	}
	return share
}

// TestManuals: every tool has a manual page and completions, and the programs that read them
// find nothing wrong.
func TestManuals(t *testing.T) {
	share := manuals(t)
	for _, form := range []struct {
		path, program string
		args          []string
	}{
		{"man/man1/%.1", "man", []string{"--warnings=all", "-l"}},
		{"bash-completion/completions/%", "bash", []string{"-n"}},
		{"zsh/site-functions/_%", "zsh", []string{"-n"}},
		{"fish/vendor_completions.d/%.fish", "fish", []string{"-n"}},
	} {
		t.Run(form.program, func(t *testing.T) {
			for _, tool := range tools {
				path := filepath.Join(share, strings.ReplaceAll(form.path, "%", tool))
				if len(testkit.Read(t, path)) == 0 {
					t.Errorf("%s is empty", path)
				}
				if _, err := exec.LookPath(form.program); err != nil {
					testkit.Skip(t, "the files for "+form.program, err)
				}
				if o := call(t, command(t, form.program, append(form.args, path)...)); o.code != 0 || o.stderr != "" {
					t.Errorf("%s: %v", path, o)
				}
			}
		})
	}
}

// TestCompletionValues: the completions know which flags take a value.
func TestCompletionValues(t *testing.T) {
	share := manuals(t)
	literal := regexp.MustCompile(`cli\.(\w+)Flag\{Name: "([a-z0-9-]+)"`)
	for _, tool := range tools {
		made := string(testkit.Read(t, filepath.Join(share, "zsh/site-functions/_"+tool)))
		help := call(t, command(t, tool, "--help")).stdout
		files, err := filepath.Glob(tool + "/*.go")
		testkit.Must(t, err)
		for _, file := range files {
			for _, m := range literal.FindAllSubmatch(testkit.Read(t, file), -1) {
				kind, name := string(m[1]), string(m[2])
				dashes := "--"
				if len(name) == 1 {
					dashes = "-"
				}
				if strings.HasSuffix(file, "_test.go") || kind == "Bool" && name == "v" {
					continue
				}
				line := regexp.MustCompile(`(?m)^  '` + dashes + name + `\[.*\](:.*)?' \\$`).FindStringSubmatch(made)
				if line != nil && line[1] == "" && regexp.MustCompile("--"+name+"(,|   )").MatchString(help) {
					continue // the help lists it without its value
				}
				if line == nil || (line[1] != "") != (kind != "Bool") {
					t.Errorf("%s %s%s is a %s, the completion has %q", tool, dashes, name, kind, line)
				}
			}
		}
	}
}

// TestCompletes: each shell that reads the files completes a flag from its beginning.
func TestCompletes(t *testing.T) {
	share := manuals(t)
	for shell, script := range map[string]string{
		"bash": `. "$1/bash-completion/completions/runner-exec"; COMP_WORDS=(runner-exec --arch); COMP_CWORD=1; _runner_exec; echo "${COMPREPLY[@]}"`,
		"fish": `source $argv[2]/fish/vendor_completions.d/runner-exec.fish; complete -C 'runner-exec --arch'`,
		// zsh completes only in its line editor, which needs a terminal.
		"zsh": `zmodload zsh/zpty; zpty z zsh -f -i
zpty -w z "PS1=; fpath=($1/zsh/site-functions \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w -n z $'runner-exec --arch\t'
for i in {1..300}; do
	while zpty -r -t z part; do out+=$part; done
	[[ $out == *'runner-exec --archive'* ]] && break
	sleep 0.1
done
print -r -- --${out##*runner-exec --}`,
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				testkit.Skip(t, "completion in "+shell, err)
			}
			c := command(t, shell, "-c", script, shell, share)
			c.Env = append(c.Env, "HOME="+t.TempDir(), "TERM=dumb")
			if o := call(t, c); o.code != 0 || !strings.HasPrefix(o.stdout, "--archive") {
				t.Errorf("%v", o)
			}
		})
	}
}

// TestVersionText: --version names the commit that was built and the BPF objects.
func TestVersionText(t *testing.T) {
	if o := call(t, command(t, "runner-capture", "--version")); !regexp.MustCompile(`BPF objects sha256:[0-9a-f]{64}\n$`).MatchString(o.stdout) {
		t.Errorf("%v", o)
	}
	name := filepath.Join(t.TempDir(), "runner-pack")
	c := command(t, "go", "build", "-ldflags", "-X github.com/runner-evidence/runner/cmd/internal/tool.commit=0123456789ab", "-o", name, "./runner-pack")
	if o := call(t, c); o.code != 0 {
		t.Fatal(o)
	}
	if o := call(t, command(t, name, "--version")); !strings.Contains(o.stdout, "commit 0123456789ab") {
		t.Errorf("%v", o)
	}
	if b := testkit.Read(t, "../Makefile"); !strings.Contains(string(b), "cmd/internal/tool.commit\n") {
		t.Error("the Makefile does not set tool.commit")
	}
}

// TestDebianPackage: the package installs, runs and leaves nothing when it is removed; with a
// group, runner-capture has capabilities and only this group may run it.
func TestDebianPackage(t *testing.T) {
	for _, need := range []string{"dpkg", "dpkg-deb", "git", "setcap"} {
		if _, err := exec.LookPath(need); err != nil || os.Geteuid() != 0 {
			testkit.Skip(t, "the Debian package", "it needs root and ", need)
		}
	}
	for _, group := range []string{"", "adm"} {
		out, root := t.TempDir(), t.TempDir()
		c := command(t, "sh", "../scripts/deb.sh")
		if group != "" {
			c.Args = append(c.Args, group)
		}
		c.Env = append(c.Env, "OUT="+out, "BIN="+bin, "COMPRESS=none")
		if o := call(t, c); o.code != 0 {
			t.Fatal(o)
		}
		packages, _ := filepath.Glob(out + "/*.deb")
		if len(packages) != 1 {
			t.Fatalf("%q", packages)
		}
		testkit.Must(t, os.MkdirAll(root+"/var/lib/dpkg/info", 0o755))
		testkit.Must(t, os.MkdirAll(root+"/var/lib/dpkg/updates", 0o755))
		testkit.Write(t, root+"/var/lib/dpkg/status", nil)
		dpkg := func(args ...string) {
			t.Helper()
			if o := call(t, command(t, "dpkg", append([]string{"--root=" + root, "--force-depends", "--force-script-chrootless"}, args...)...)); o.code != 0 {
				t.Fatal(o)
			}
		}
		dpkg("--install", packages[0])
		for _, tool := range tools {
			if o := call(t, command(t, root+"/usr/bin/"+tool, "--version")); o.code != 0 || !strings.Contains(o.stdout, tool+" version ") {
				t.Errorf("%s: %v", tool, o)
			}
		}
		capabilities := call(t, command(t, "getcap", root+"/usr/bin/runner-capture")).stdout
		if has := strings.Contains(capabilities, "cap_bpf"); has != (group != "") {
			t.Errorf("group %q: %q", group, capabilities)
		}
		if st, err := os.Stat(root + "/usr/bin/runner-capture"); err != nil || (st.Mode().Perm() == 0o750) != (group != "") {
			t.Errorf("group %q: %v %v", group, st.Mode(), err)
		}
		dpkg("--purge", "runner-evidence")
		if testkit.Exists(root + "/usr") {
			t.Errorf("left behind: %q", testkit.Names(t, root+"/usr"))
		}
	}
}

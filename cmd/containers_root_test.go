//go:build linux

package cmd_test

import (
	"debug/elf"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// containers is a folder with what the recipes for containers name, and the configuration
// that keeps podman's own files in it.
type containers struct{ dir, measured string }

func newContainers(t *testing.T, programs ...string) *containers {
	t.Helper()
	requireBPF(t)
	testkit.Programs(t, "containers", append(programs, "busybox", "unshare")...)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "containers", "needs root")
	}
	dir := shortDir(t)
	c := &containers{dir, "measured-" + filepath.Base(dir)}
	for _, dir := range []string{"rootfs/bin", "rootfs/etc", "rootfs/proc", "rootfs/dev", "rootfs/sys", "rootfs/tmp", "bundle", "out", "beside", "podman"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(c.dir, dir), 0o755))
	}
	busybox, err := exec.LookPath("busybox")
	testkit.Must(t, err)
	program, err := elf.Open(busybox)
	testkit.Must(t, err)
	defer program.Close()
	if libraries, _ := program.ImportedLibraries(); len(libraries) > 0 {
		testkit.SkipUnless(t, "RUNNER_REQUIRE_PROGRAMS", "containers", busybox, " needs libraries: busybox-static does not")
	}
	b, err := os.ReadFile(busybox)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(c.dir, "rootfs/bin/busybox"), b, 0o755))
	for _, name := range []string{"sh", "cat", "env", "sleep"} {
		testkit.Must(t, os.Symlink("busybox", filepath.Join(c.dir, "rootfs/bin", name)))
	}
	write(t, filepath.Join(c.dir, "rootfs/etc/passwd"), "inside:x:0:0::/:/bin/sh\n")
	testkit.Must(t, os.Symlink(bin, filepath.Join(c.dir, "bin")))
	c.bundle(t, "bundle", "")
	c.bundle(t, "beside", "/"+c.measured+"/c2")
	write(t, filepath.Join(c.dir, "podman/storage.conf"), "[storage]\ndriver = \"vfs\"\ngraphroot = \""+c.dir+"/podman/root\"\nrunroot = \""+c.dir+"/podman/run\"\n")
	// Limits above those of the test need a right that root may lack.
	write(t, filepath.Join(c.dir, "podman/containers.conf"), "[containers]\nnetns = \"none\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n[engine]\ntmp_dir = \""+c.dir+"/podman/tmp\"\n")
	return c
}

// bundle makes a bundle of the root file system that prints its passwd.
func (c *containers) bundle(t *testing.T, name, cgroup string) {
	t.Helper()
	spec := command(t, "crun", "spec")
	spec.Dir = filepath.Join(c.dir, name)
	if o := call(t, spec); o.code != 0 {
		t.Fatal(o)
	}
	file := filepath.Join(c.dir, name, "config.json")
	b, err := os.ReadFile(file)
	testkit.Must(t, err)
	var config map[string]any
	testkit.Must(t, json.Unmarshal(b, &config))
	process, linux := config["process"].(map[string]any), config["linux"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"cat", "/etc/passwd"}
	config["root"] = map[string]any{"path": filepath.Join(c.dir, "rootfs")}
	delete(linux, "resources") // rules for devices need a right that root may lack
	if cgroup != "" {
		linux["cgroupsPath"] = cgroup
	}
	b, err = json.Marshal(config)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(file, b, 0o644))
}

// script is a command line in the folder, on a machine that has only cgroup v2: engines
// treat others differently.
func (c *containers) script(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := command(t, "unshare", "-m", "sh", "-ec", `[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 none /sys/fs/cgroup
`+line)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Env, "TMPDIR="+c.dir, "CONTAINERS_STORAGE_CONF="+c.dir+"/podman/storage.conf", "CONTAINERS_CONF="+c.dir+"/podman/containers.conf")
	return cmd
}

// recipes are the commands of the text about containers, by the archive that they write.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../scripts/examples/containers/README.md")
	testkit.Must(t, err)
	list := map[string]string{}
	archive := regexp.MustCompile(`(\w+)\.tar\.gz`)
	for _, m := range regexp.MustCompile(`(?m)^    \$ (.*)$`).FindAllStringSubmatch(string(b), -1) {
		if name := archive.FindStringSubmatch(m[1]); name != nil {
			list[name[1]] = m[1]
		}
	}
	return list
}

// TestContainerRecipes: with each recipe the container is in the record, which is complete.
func TestContainerRecipes(t *testing.T) {
	c := newContainers(t, "crun", "podman", "runc")
	for name, line := range recipes(t) {
		t.Run(name, func(t *testing.T) {
			o := c.follow(t, name, line)
			switch {
			case name == "split" && o.code != 0 && strings.Contains(o.stderr, "RLIM_MEMLOCK"):
				testkit.Note(t, "what a container of a split cgroup does", "crun needs CAP_SYS_RESOURCE")
			case o.code != 0 || !strings.Contains(o.stdout, "inside:"):
				t.Fatalf("%s: %v", line, o)
			}
			path := filepath.Join(c.dir, name+".tar.gz")
			if name == "inside" {
				path = filepath.Join(c.dir, "out", name+".tar.gz")
			}
			a := openArchive(t, path)
			a.complete(t)
			if o.code == 0 && name != "inside" && !slices.Contains(a.set(t, "filesystem_paths"), "/etc/passwd") {
				t.Errorf("what the container read is not in the record of %s", line)
			}
			if strings.Contains(o.stderr, "starts containers outside") {
				t.Errorf("a command that works is warned about: %s", o.stderr)
			}
		})
	}
}

// follow runs one recipe.
func (c *containers) follow(t *testing.T, name, line string) outcome {
	t.Helper()
	if name != "beside" {
		return call(t, c.script(t, line))
	}
	said := filepath.Join(c.dir, "said")
	f, err := os.Create(said)
	testkit.Must(t, err)
	defer f.Close()
	cmd := c.script(t, strings.ReplaceAll("mkdir /sys/fs/cgroup/measured\n"+line, "/measured", "/"+c.measured))
	cmd.Stderr = f
	wait := start(t, cmd)
	until(t, "a capture that waits", func() bool {
		b, _ := os.ReadFile(said)
		return strings.Contains(string(b), "waiting for its first process")
	})
	o := call(t, c.script(t, "crun --cgroup-manager=cgroupfs run --bundle beside c2"))
	if captured := wait(); captured.code != 0 {
		t.Fatal(captured)
	}
	call(t, c.script(t, "rmdir /sys/fs/cgroup/"+c.measured))
	return o
}

// TestContainersOutside: a container that is not in the record makes it incomplete, and the
// command that works is said before the start and at the end.
func TestContainersOutside(t *testing.T) {
	c := newContainers(t, "crun", "podman", "runc", "python3")
	daemon, err := net.Listen("unix", filepath.Join(c.dir, "docker.sock"))
	testkit.Must(t, err)
	defer daemon.Close()
	const connect = `python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).connect("docker.sock")'`
	for _, k := range []struct{ name, line, engines, before, after string }{
		{"crun", "crun --cgroup-manager=cgroupfs run --bundle bundle c3", "crun", "crun --cgroup-manager=disabled run", "crun --cgroup-manager=disabled run"},
		{"runc", "runc run --bundle bundle c6", "runc", "exec runc run ID", "exec runc run ID"},
		{"podman", "podman --cgroup-manager=cgroupfs run --rm --rootfs $PWD/rootfs cat /etc/passwd", "crun,podman", "podman run --cgroups=disabled", "podman run --cgroups=disabled"},
		{"in a shell", "sh -c 'crun --cgroup-manager=cgroupfs run --bundle bundle c4'", "crun", "", "crun --cgroup-manager=disabled run"},
		{"docker's daemon", connect, "docker", "", "runner-capture --cgroup DIR"},
	} {
		t.Run(k.name, func(t *testing.T) {
			o := call(t, c.script(t, "runner-exec --force --archive out.tar.gz -- "+k.line))
			exec, capture := lineOf(o.stderr, "runner-exec: "), lineOf(o.stderr, "runner-capture: ")
			if !strings.Contains(exec, k.before) || (k.before == "") != (exec == "") || !strings.Contains(capture, k.after) {
				t.Errorf("%s: %v", k.line, o)
			}
			if got := call(t, command(t, "runner-verify", "--require", "kernel=complete", filepath.Join(c.dir, "out.tar.gz"))); got.code != 1 {
				t.Errorf("a record without its container is complete: %v", got)
			}
			out := call(t, c.script(t, "tar xOf out.tar.gz "+schemas.MemberHealth))
			if !regexp.MustCompile(`s2_kernel_loss: engines=` + k.engines + `[ "]`).MatchString(out.stdout) {
				t.Errorf("the record does not name %s: %v", k.engines, out)
			}
		})
	}
}

// lineOf is the first line that begins with a text, "" without one.
func lineOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

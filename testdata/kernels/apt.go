package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An index is a private configuration of apt with all of Debian's suites that carry
// kernels. apt checks the signatures. It leaves the machine's own configuration alone, but
// keeps its proxies.
type index struct {
	dir   string
	args  []string
	known []string // the names of all packages
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Debian's own names of its archives, for machines whose apt does not name a mirror.
const (
	standardArchive  = "http://deb.debian.org/debian"
	standardSecurity = "http://deb.debian.org/debian-security"
)

var (
	suites         = []string{"bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid"}
	securitySuites = []string{"bullseye-security", "bookworm-security", "trixie-security"}
)

// openIndex writes the configuration and reads the archives' indexes.
func openIndex(ctx context.Context, dir string) (*index, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("the keys of Debian's archives: %w (package debian-archive-keyring)", err)
	}
	x := &index{dir: filepath.Join(dir, "apt")}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(x.dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	archive, security := mirrors(ctx)
	var b strings.Builder
	for _, s := range suites {
		fmt.Fprintf(&b, "deb [signed-by=%s] %s %s main\n", keyring, archive, s)
	}
	for _, s := range securitySuites {
		fmt.Fprintf(&b, "deb [signed-by=%s] %s %s main\n", keyring, security, s)
	}
	for name, text := range map[string]string{"sources.list": b.String(), "status": ""} {
		if err := os.WriteFile(filepath.Join(x.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for option, value := range map[string]string{
		"Dir::Etc::sourcelist": x.dir + "/sources.list", "Dir::Etc::sourceparts": "/dev/null",
		"Dir::State::lists": x.dir + "/lists", "Dir::Cache": x.dir + "/cache", "Dir::State::status": x.dir + "/status",
		// some machines turn these off, and then each question takes seconds
		"Dir::Cache::pkgcache": "pkgcache.bin", "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
		"APT::Architecture": "amd64", "Acquire::Languages": "none", "Acquire::Retries": "3", "APT::Sandbox::User": "root",
	} {
		x.args = append(x.args, "-o", option+"="+value)
	}
	for arch := range machines {
		x.args = append(x.args, "-o", "APT::Architectures::="+arch)
	}
	return x, x.update(ctx)
}

// mirrors are the archives that the machine's own apt uses, so that a machine with a
// mirror nearby uses it here too.
func mirrors(ctx context.Context) (archive, security string) {
	out, _ := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(RELEASE)", "Created-By: Packages").Output()
	return mirrorsOf(string(out))
}

// mirrorsOf finds the two archives in what apt-get indextargets says.
func mirrorsOf(targets string) (archive, security string) {
	archive, security = standardArchive, standardSecurity
	for l := range strings.Lines(targets) {
		f := strings.Fields(l)
		if len(f) != 3 || f[1] != "Debian" {
			continue
		}
		if strings.HasSuffix(f[2], "-security") {
			security = strings.TrimSuffix(f[0], "/")
		} else {
			archive = strings.TrimSuffix(f[0], "/")
		}
	}
	return archive, security
}

// update reads the indexes again, unless that was done within the hour. A suite that
// cannot be read leaves the others usable.
func (x *index) update(ctx context.Context) error {
	stamp := filepath.Join(x.dir, "updated")
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < time.Hour {
		return nil
	}
	out, err := x.command(ctx, "apt-get", "update", "-q").CombinedOutput()
	if err != nil {
		if found, _ := x.names(ctx, "linux-image-cloud-amd64"); len(found) == 0 {
			return fmt.Errorf("apt-get update: %w: %s", err, lastLines(out))
		}
		fmt.Fprintf(os.Stderr, "kernels: apt-get update: %v: %s\n", err, lastLines(out))
		return nil
	}
	return os.WriteFile(stamp, nil, 0o644)
}

func (x *index) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, append(slices.Clone(x.args), args...)...)
	c.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	return c
}

// names are the packages of the index whose name fits a regular expression.
func (x *index) names(ctx context.Context, pattern string) ([]string, error) {
	re, err := regexp.Compile("^(" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	if x.known == nil {
		out, err := x.command(ctx, "apt-cache", "pkgnames", "linux-").Output()
		if err != nil {
			return nil, fmt.Errorf("apt-cache pkgnames: %w", err)
		}
		x.known = strings.Fields(string(out))
	}
	var names []string
	for _, name := range x.known {
		if re.MatchString(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// versions are all versions of the packages that the index has, with the digests that the
// signed indexes give, the newest first.
func (x *index) versions(ctx context.Context, arch string, names []string) ([]pack, error) {
	if len(names) == 0 {
		return nil, nil
	}
	args := []string{"show"}
	for _, n := range names {
		args = append(args, n+":"+arch)
	}
	out, err := x.command(ctx, "apt-cache", args...).Output()
	if len(out) == 0 {
		return nil, fmt.Errorf("apt-cache show: nothing: %v", err)
	}
	packs := parseStanzas(string(out))
	slices.SortStableFunc(packs, func(a, b pack) int { return compareVersions(ctx, b.Version, a.Version) })
	return packs, nil
}

// parseStanzas reads what apt-cache show prints.
func parseStanzas(s string) (packs []pack) {
	for stanza := range strings.SplitSeq(s, "\n\n") {
		var p pack
		for l := range strings.Lines(stanza) {
			key, value, _ := strings.Cut(strings.TrimRight(l, "\n"), ": ")
			switch key {
			case "Package":
				p.Package = value
			case "Version":
				p.Version = value
			case "SHA256":
				p.SHA256 = value
			}
		}
		if p.Package != "" && digest.MatchString(p.SHA256) && !slices.Contains(packs, p) {
			packs = append(packs, p)
		}
	}
	return packs
}

// compareVersions orders versions as Debian does.
func compareVersions(ctx context.Context, a, b string) int {
	if a == b {
		return 0
	}
	if exec.CommandContext(ctx, "dpkg", "--compare-versions", a, "lt", b).Run() == nil {
		return -1
	}
	return 1
}

// download puts a package into a folder and returns its path.
func (x *index) download(ctx context.Context, arch string, p pack, dir string) (string, error) {
	c := x.command(ctx, "apt-get", "download", "-q", p.Package+":"+arch+"="+p.Version)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("apt-get download: %w: %s", err, lastLines(out))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("apt-get download made %d files: %v", len(found), err)
	}
	return found[0], nil
}

// lastLines is the end of what a program said, on one line.
func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], " ")
}

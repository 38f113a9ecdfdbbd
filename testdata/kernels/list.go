package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// Folder holds the list and the results.
const folder = "testdata/kernels"

const (
	listFile    = folder + "/kernels.json"
	resultsFile = folder + "/results.json"
)

// A pack is a package of Debian at one version.
type pack struct {
	Package string `json:"package"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// A kernel is one that the lane boots. Several kernels may share packages and differ in
// how their guest is made.
type kernel struct {
	Name string `json:"name"`
	// Stands says for which systems this kernel stands.
	Stands string `json:"stands_for"`
	Arch   string `json:"arch"`
	// Variant is empty or one of package guest's.
	Variant string `json:"variant,omitempty"`
	// CI says that it is one of the few that every run of .ci/run boots.
	CI bool `json:"ci,omitempty"`
	// Line is a regular expression for the names of the line's packages with an image.
	Line  string `json:"line"`
	Image pack   `json:"image"`
	// Modules are in a package of their own from 6.19 on. The archive keeps those of the
	// newest versions only.
	Modules *pack `json:"modules,omitempty"`
}

var (
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	variants = []string{guest.Plain, guest.Realtime, guest.Lockdown, guest.NoBTF, guest.CgroupV1}
	// Names go into command lines of apt.
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]+$`)
	version     = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~:-]*$`)
	kernelName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)
)

// parseList reads the list of kernels. It is strict: a kernel that is skipped by a typing
// mistake looks like one that works.
func parseList(b []byte) ([]kernel, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var list []kernel
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if d.More() || len(list) == 0 {
		return nil, fmt.Errorf("want one list that is not empty")
	}
	seen := map[string]bool{}
	for _, k := range list {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("kernel %q: %w", k.Name, err)
		}
		if seen[k.Name] {
			return nil, fmt.Errorf("kernel %q is there twice", k.Name)
		}
		seen[k.Name] = true
	}
	return list, nil
}

func (k kernel) check() error {
	switch {
	case !kernelName.MatchString(k.Name):
		return fmt.Errorf("bad name")
	case k.Stands == "":
		return fmt.Errorf("stands_for is missing")
	case machines[k.Arch].program == "":
		return fmt.Errorf("unknown arch %q", k.Arch)
	case !slices.Contains(variants, k.Variant):
		return fmt.Errorf("unknown variant %q", k.Variant)
	}
	line, err := regexp.Compile("^(" + k.Line + ")$")
	if err != nil || !line.MatchString(k.Image.Package) {
		return fmt.Errorf("line %q does not fit %q: %v", k.Line, k.Image.Package, err)
	}
	for _, p := range k.packs() {
		if !packageName.MatchString(p.Package) || !version.MatchString(p.Version) || !digest.MatchString(p.SHA256) {
			return fmt.Errorf("bad package %+v", p)
		}
	}
	return nil
}

func (k kernel) packs() []pack {
	if k.Modules == nil {
		return []pack{k.Image}
	}
	return []pack{k.Image, *k.Modules}
}

func readList() ([]kernel, error) {
	b, err := os.ReadFile(listFile)
	if err != nil {
		return nil, err
	}
	list, err := parseList(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", listFile, err)
	}
	return list, nil
}

// choose takes the kernels with the given names, and all if there are none. The name ci
// stands for those that every run of .ci/run boots.
func choose(list []kernel, names []string) ([]kernel, error) {
	if len(names) == 0 {
		return list, nil
	}
	var chosen []kernel
	for _, name := range names {
		found := false
		for _, k := range list {
			if k.Name == name || name == "ci" && k.CI {
				chosen, found = append(chosen, k), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: %s", errUnknown, name)
		}
	}
	return chosen, nil
}

// cache is the folder for packages, images and apt's indexes.
func cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "runner", "kernels")
	return dir, os.MkdirAll(dir, 0o755)
}

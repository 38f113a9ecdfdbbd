package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A store keeps packages by digest. It opens apt's index only if something is missing.
type store struct {
	dir     string
	offline bool
	index   *index
	failed  error
}

// fetched is a kernel whose packages are on this machine.
type fetched struct {
	kernel
	debs []string
	note string // what is not as the list says
}

// fetch makes sure that a kernel's packages are here. If the archive no longer has what
// the list names, it takes the newest of the line, and says so.
func (s *store) fetch(ctx context.Context, k kernel) (*fetched, error) {
	f := &fetched{kernel: k}
	image, err := s.get(ctx, k.Arch, k.Image)
	if err != nil {
		gone := err
		if f.Image, image, err = s.newest(ctx, k); err != nil {
			return nil, fmt.Errorf("%s %s: %v; and no other of the line: %w", k.Image.Package, k.Image.Version, gone, err)
		}
		f.note = fmt.Sprintf("pinned %s %s is gone, took %s %s", k.Image.Package, k.Image.Version, f.Image.Package, f.Image.Version)
		f.Modules = s.modulesOf(ctx, k.Arch, f.Image)
	}
	f.debs = []string{image}
	if f.Modules == nil {
		return f, nil
	}
	modules, err := s.get(ctx, k.Arch, *f.Modules)
	if err != nil {
		f.Modules = nil
		f.note = strings.TrimPrefix(f.note+"; without modules: "+err.Error(), "; ")
		return f, nil
	}
	f.debs = append(f.debs, modules)
	return f, nil
}

// get returns the path of a package in the store, and downloads it if it is not there.
func (s *store) get(ctx context.Context, arch string, p pack) (string, error) {
	path := filepath.Join(s.dir, p.SHA256+".deb")
	if sum, err := sumFile(path); err == nil && sum == p.SHA256 {
		return path, nil
	}
	x, err := s.open(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.dir, "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	deb, err := x.download(ctx, arch, p, dir)
	if err != nil {
		return "", err
	}
	if sum, err := sumFile(deb); err != nil || sum != p.SHA256 {
		return "", fmt.Errorf("%s %s has the digest %s, not %s: %v", p.Package, p.Version, sum, p.SHA256, err)
	}
	return path, os.Rename(deb, path)
}

// open opens apt's index once.
func (s *store) open(ctx context.Context) (*index, error) {
	if s.offline {
		return nil, fmt.Errorf("not in the cache")
	}
	if s.index == nil && s.failed == nil {
		s.index, s.failed = openIndex(ctx, s.dir)
	}
	return s.index, s.failed
}

// newest is the newest package of a kernel's line that can be downloaded.
func (s *store) newest(ctx context.Context, k kernel) (pack, string, error) {
	x, err := s.open(ctx)
	if err != nil {
		return pack{}, "", err
	}
	packs, err := x.line(ctx, k)
	for _, p := range packs[:min(len(packs), 3)] {
		var path string
		if path, err = s.get(ctx, k.Arch, p); err == nil {
			return p, path, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the index has no package %s", k.Line)
	}
	return pack{}, "", err
}

// line is all packages of a kernel's line, the newest first.
func (x *index) line(ctx context.Context, k kernel) ([]pack, error) {
	names, err := x.names(ctx, k.Line)
	if err != nil {
		return nil, err
	}
	return x.versions(ctx, k.Arch, names)
}

// modulesOf is the package with the modules of an image, or nil.
func (s *store) modulesOf(ctx context.Context, arch string, image pack) *pack {
	rest, ok := strings.CutPrefix(image.Package, "linux-binary-")
	x, err := s.open(ctx)
	if !ok || err != nil {
		return nil
	}
	names, err := x.names(ctx, strings.ReplaceAll("linux-modules-"+rest, "+", `\+`))
	if err != nil {
		return nil
	}
	packs, _ := x.versions(ctx, arch, names)
	for _, p := range packs {
		if p.Version == image.Version {
			return &p
		}
	}
	return nil
}

// unpack unpacks the packages once and returns the folder.
func (s *store) unpack(ctx context.Context, f *fetched) (string, error) {
	dir := filepath.Join(s.dir, f.Image.SHA256)
	if f.Modules != nil {
		dir += "-" + f.Modules.SHA256[:16]
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(s.dir, "unpack-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	for _, deb := range f.debs {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", deb, tmp).CombinedOutput(); err != nil {
			return "", fmt.Errorf("dpkg-deb: %w: %s", err, lastLines(out))
		}
	}
	if err := keepOnly(tmp); err != nil {
		return "", err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, nil
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

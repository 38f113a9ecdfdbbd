package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// shellFile pins the one program of others that a guest has: a shell with a few commands,
// for the attacks of a hostile root.
const shellFile = folder + "/shell.json"

// shellArch is the architecture of the kernels that run those attacks.
const shellArch = "amd64"

func readShell() (pack, error) {
	b, err := os.ReadFile(shellFile)
	if err != nil {
		return pack{}, err
	}
	return parseShell(b)
}

func parseShell(b []byte) (pack, error) {
	var p pack
	if err := json.Unmarshal(b, &p); err != nil {
		return p, err
	}
	if !packageName.MatchString(p.Package) || !version.MatchString(p.Version) || !digest.MatchString(p.SHA256) {
		return p, fmt.Errorf("%s: bad package %+v", shellFile, p)
	}
	return p, nil
}

// shell puts the shell into a folder of programs.
func (s *store) shell(ctx context.Context, programs string) error {
	p, err := readShell()
	if err != nil {
		return err
	}
	deb, err := s.get(ctx, shellArch, p)
	if err != nil {
		k := kernel{Arch: shellArch, Line: p.Package}
		gone := err
		if p, deb, err = s.newest(ctx, k); err != nil {
			return fmt.Errorf("%v; %w", gone, err)
		}
		fmt.Fprintf(os.Stderr, "kernels: the pinned shell is gone, took %s %s\n", p.Package, p.Version)
	}
	dir, err := os.MkdirTemp(s.dir, "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", deb, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, lastLines(out))
	}
	found := errors.New("the package has no busybox")
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(filepath.Dir(path)) == "bin" && d.Name() == "busybox" {
			found = os.Rename(path, filepath.Join(programs, d.Name()))
		}
		return err
	})
	return errors.Join(err, found)
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// logs is a folder for the logs of a run, which the rules deny.
func logs(dir string) string { return filepath.Join(dir, "logs", "secret") }

func setup(dir string, chosen []attempt) error {
	check(os.MkdirAll(logs(dir), 0o755))
	for _, a := range chosen {
		p := a.place(dir)
		for _, d := range []string{p.secret("dir"), p.open("dir"), p.noexec("")} {
			check(os.MkdirAll(d, 0o755))
		}
		write(p.secret("file"), []byte("secret\n"), 0o644)
		write(p.open("file"), []byte("open\n"), 0o644)
		for _, name := range []string{p.secret("prog"), p.open("prog"), p.noexec("prog")} {
			write(name, made.Tiny(), 0o755)
		}
		if a.before != nil {
			a.before(p)
		}
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bypass:", err)
		os.Exit(1)
	}
}

func write(name string, b []byte, mode os.FileMode) {
	check(os.WriteFile(name, b, mode))
	check(os.Chmod(name, mode))
}

func linkBefore(p *place)    { check(os.Link(p.secret("file"), p.open("before"))) }
func symlinkBefore(p *place) { check(os.Symlink(p.secret("file"), p.open("symlink"))) }
func symdirBefore(p *place)  { check(os.Symlink(p.secret(""), p.open("symdir"))) }

func fifoBefore(p *place) { check(unix.Mkfifo(p.secret("fifo"), 0o600)) }

// deviceBefore makes another name of /dev/null.
func deviceBefore(p *place) {
	check(unix.Mknod(p.secret("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
}

func shebangBefore(p *place) {
	write(p.open("script"), []byte("#!"+p.secret("prog")+"\n"), 0o755)
}

func scriptBefore(p *place) {
	write(p.secret("script"), []byte("#!"+p.open("prog")+"\n"), 0o755)
}

// interpBefore makes a program whose ELF interpreter is in secret.
func interpBefore(p *place) { write(p.open("dynamic"), made.TinyWith(p.secret("prog")), 0o755) }

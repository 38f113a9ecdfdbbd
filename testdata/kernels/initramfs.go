package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// users are in a guest's /etc/passwd.
const users = "root:x:0:0:root:/root:/bin/false\nnobody:x:65534:65534::/:/bin/false\n"

// A cpioWriter writes the archive that a kernel unpacks as its first root ("newc").
type cpioWriter struct {
	w   *bufio.Writer
	ino int
	err error
}

const trailer = "TRAILER!!!"

func (c *cpioWriter) entry(name string, mode, size int, body io.Reader) {
	if c.err != nil {
		return
	}
	c.ino++
	links, mtime := 1, 0
	fmt.Fprintf(c.w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.ino, mode, 0, 0, links, mtime, size, 0, 0, 0, 0, len(name)+1, 0)
	c.w.WriteString(name + "\x00")
	c.pad(110 + len(name) + 1)
	if body != nil {
		var n int64
		if n, c.err = io.Copy(c.w, body); c.err == nil && n != int64(size) {
			c.err = fmt.Errorf("%s changed its size", name)
		}
		c.pad(size)
	}
}

func (c *cpioWriter) pad(n int) { c.w.WriteString("\x00\x00\x00"[:(4-n%4)%4]) }

func (c *cpioWriter) folder(name string) { c.entry(name, 0o040755, 0, nil) }

func (c *cpioWriter) text(name, text string, mode int) {
	c.entry(name, 0o100000|mode, len(text), strings.NewReader(text))
}

func (c *cpioWriter) file(name, path string, mode int) {
	f, err := os.Open(path)
	if err != nil {
		c.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		c.err = err
		return
	}
	c.entry(name, 0o100000|mode, int(info.Size()), f)
}

// initramfs writes a guest's first root: init, the plan, the programs and the modules. It
// is not compressed, because unpacking is slow in an emulated machine.
func initramfs(path, unpacked string, programs string, plan guest.Plan) error {
	modules, err := filepath.Glob(filepath.Join(unpacked, "modules", "*"))
	if err != nil {
		return err
	}
	modules = slices.DeleteFunc(modules, func(m string) bool { return !slices.Contains(moduleNames, moduleName(m)) })
	slices.SortFunc(modules, func(a, b string) int {
		return slices.Index(moduleNames, moduleName(a)) - slices.Index(moduleNames, moduleName(b))
	})
	for _, m := range modules {
		plan.Modules = append(plan.Modules, moduleName(m))
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := &cpioWriter{w: bufio.NewWriterSize(f, 1<<20)}
	for _, dir := range []string{"/etc", guest.Lane, guest.Bin, guest.Modules} {
		c.folder(dir[1:])
	}
	c.text("etc/passwd", users, 0o644)
	c.text(guest.PlanFile[1:], string(text), 0o644)
	for _, m := range modules {
		b, err := readModule(m)
		if err != nil {
			return err
		}
		c.text(guest.Modules[1:]+"/"+moduleName(m), string(b), 0o644)
	}
	binaries, err := os.ReadDir(programs)
	if err != nil {
		return err
	}
	for _, b := range binaries {
		to := guest.Bin[1:] + "/" + b.Name()
		if b.Name() == "init" {
			to = "init"
		}
		c.file(to, filepath.Join(programs, b.Name()), 0o755)
	}
	c.entry(trailer, 0, 0, nil)
	if c.err != nil {
		return c.err
	}
	if err := c.w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

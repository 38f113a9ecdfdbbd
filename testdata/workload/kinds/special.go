//go:build linux

package main

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// special opens files that have no ordinary name.
func special() {
	// a file without a name is recorded as its directory: its number would differ in
	// every run
	fd := openat("o_tmpfile", cwd, at("."), dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if fd >= 0 {
		unix.Close(fd)
	}

	fd = openat("setup", cwd, at("M-deleted"), at("M-deleted"), create, 0o644)
	made.Line("setup", 211, at("M-deleted"), made.Call(unix.SYS_UNLINKAT, fdArg(cwd), made.Str(at("M-deleted")), 0))
	again := openat("deleted", cwd, fmt.Sprintf("/proc/self/fd/%d", fd), at("M-deleted"), unix.O_RDONLY, 0)
	unix.Close(again)
	unix.Close(fd)

	fd, err := unix.MemfdCreate("M-memfd", unix.MFD_CLOEXEC)
	if err != nil {
		made.Skipped("memfd", err)
		return
	}
	unix.Close(openat("memfd", cwd, fmt.Sprintf("/proc/self/fd/%d", fd), "memfd:M-memfd", unix.O_RDWR, 0))
	unix.Close(fd)
}

// awkward holds names that wrong escaping would break or merge. Neighbours are pairs:
// the bytes of one are the escape of the other.
var awkward = []string{
	"n\nl", "q\"q", `b\b`, `b\\b`, "\xff", `\xff`, `\\xff`, "\xef\xbf\xbd", "\xfe", "\xff\xfe", "\xff\xff",
	"\xed\xa0\x80", "\xc0\xaf", "\xe2\x82", "\xe2\x82\xac", "\xf4\x90\x80\x80", "t\tt", `t\tt`, "r\rr", "\x01", `\u0001`,
	"\x1b[31m", "\x7f", "\u2028", "e\u0301", "é", " ", "-rf", "*", "$(x)", "<&>",
}

func names() {
	for _, n := range awkward {
		n = "M-name-" + n
		unix.Close(openat("name", cwd, n, at(n), create, 0o644))
	}
	for _, n := range awkward {
		openat("name-enoent", cwd, "M-none-"+n, at("M-none-"+n), unix.O_RDONLY, 0)
	}
}

// long opens paths at the limit of what one call can name: 4093 bytes.
func long() {
	const size = 4093
	missing := at("M-long-missing")
	for len(missing)+251 < size {
		missing += "/" + strings.Repeat("x", 250)
	}
	missing += "/" + strings.Repeat("y", size-len(missing)-1)
	openat("long-enoent", cwd, missing, missing, unix.O_RDONLY, 0)

	name := "M-long"
	mkdir(name)
	for size-len(at(name))-1 > 255 {
		name += "/" + strings.Repeat("d", 200)
		mkdir(name)
	}
	name += "/" + strings.Repeat("f", size-len(at(name))-1)
	unix.Close(openat("long", cwd, at(name), at(name), create, 0o644))
}

// deep goes beyond PATH_MAX by relative steps: 100 directories of 200 bytes.
func deep() {
	path := at("M-deep")
	mkdir("M-deep")
	fd := openat("setup", cwd, "M-deep", path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for i := range 100 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("z", 196))
		path += "/" + name
		exact := func(*made.Event) {}
		value := path
		if len(path) > 4000 { // longer than what a record holds whole
			value, exact = path[len(path)-4000:], made.Tail()
		}
		r := made.Must("mkdirat", made.Call(unix.SYS_MKDIRAT, fdArg(fd), made.Str(name), 0o755))
		made.Line("mkdirat-deep", 219, value, r, exact)
		next := openat("openat-deep", fd, name, value, unix.O_RDONLY|unix.O_DIRECTORY, 0, exact)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

//go:build linux

// Shapes opens marked files from processes that are hard to follow: children that end
// immediately, threads, daemons, other roots. Like kinds, it prints what it made.
//
//	shapes SHAPE[,SHAPE…] ABSOLUTE-DIR [NUMBER…]
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

const (
	cwd    = ^uintptr(99) // AT_FDCWD
	create = unix.O_CREAT | unix.O_RDWR
)

var (
	dir  string
	nums []int
)

var shapes = map[string]func(){
	"fork": forkBefore, "quick-exit": quickExit, "siblings": siblings, "thread": thread,
	"daemon": daemon, "vfork": vfork, "setsid": setsid, "child-cgroup": childCgroup,
	"escape": escape, "chroot": chroot, "mount-namespace": mountNamespace,
	"cold-page": coldPage, "hammer": hammer, "exec-storm": execStorm,
	"parallel": parallel, "thread-exec": threadExec, "opens": opens,
	"overlay": overlay, "ancestors": ancestors, "detached": detached,
	"execs": execs, "rings": rings, "forks": forks, "moves": moves,
	"objects": objects, "swapped": swapped,
}

// All but what a shape starts itself is done by one thread: Go moves on to another one where a call takes long, and children
// come in the order of the threads that made them.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) == 2 && os.Args[1] == "_nop" {
		return
	}
	if len(os.Args) < 3 || !strings.HasPrefix(os.Args[2], "/") {
		usage()
	}
	chosen := strings.Split(os.Args[1], ",")
	for _, name := range chosen {
		if shapes[name] == nil {
			usage()
		}
	}
	dir = os.Args[2]
	for _, s := range os.Args[3:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			fmt.Fprintln(os.Stderr, "shapes:", err)
			os.Exit(2)
		}
		nums = append(nums, n)
	}
	made.Must("chdir", made.Ret(os.Chdir(dir)))
	for _, name := range chosen {
		shapes[name]()
	}
}

func usage() {
	var names []string
	for n := range shapes {
		names = append(names, n)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: shapes SHAPE[,SHAPE…] ABSOLUTE-DIR [NUMBER…]\nshapes: %s\n", strings.Join(names, " "))
	os.Exit(2)
}

func at(name string) string { return dir + "/" + name }

// num is the i-th number on the command line, or the default.
func num(i, usual int) int {
	if i < len(nums) {
		return nums[i]
	}
	return usual
}

// opened prints an open of this process or of a child.
func opened(op, name string, ret int64, opts ...made.Option) {
	made.Line(op, 1, at(name), ret, append([]made.Option{made.Flags(create, 0o644)}, opts...)...)
}

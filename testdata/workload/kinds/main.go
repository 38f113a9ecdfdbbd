//go:build linux

// Kinds makes one marked event of every kind that the record must hold and prints
// what it made. It prints everything that it does below DIR, setup included, so that
// the record can be compared as a multiset.
//
//	kinds DIR [GROUP…]
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// dir is the absolute directory in which everything happens, without symlinks.
var dir string

type group struct {
	name string
	run  func()
}

var groups = []group{
	{"opens", opens}, {"failures", failures}, {"special", special}, {"names", names},
	{"long", long}, {"deep", deep}, {"ring", ring}, {"ring-other", ringOther}, {"execs", execs}, {"inet", inet},
	{"unix", unixSockets}, {"interrupts", interrupts}, {"tree", tree}, {"attrs", attrs}, {"attributes", attributes}, {"others", others}, {"mounts", mounts}, {"silent", silent},
}

// The record is ordered by thread. So one goroutine uses one thread; otherwise the order
// would depend on the scheduler.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "_") {
		stage(os.Args[1], os.Args[2:])
		return
	}
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "/") {
		fmt.Fprintln(os.Stderr, "usage: kinds ABSOLUTE-DIR [GROUP…]")
		os.Exit(2)
	}
	dir = os.Args[1]
	if err := os.Chdir(dir); err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
	for _, g := range groups {
		if len(os.Args) == 2 || slices.Contains(os.Args[2:], g.name) {
			g.run()
		}
	}
}

// at is the absolute path of a name in dir.
func at(name string) string { return dir + "/" + name }

//go:build linux

package main

import (
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// The names of the rows that the kernel and its probes decide. An emulated machine measures the same rows with smaller sizes, and what it
// recorded is found by the name: so each name is written down once, and has the size of a whole run.
const (
	rowTrue    = "runner-exec -- true, added"
	rowAttach  = "  of it: attach"
	rowOpens   = "open+close, 1,000,000 times"
	rowAfter   = "from the command's end to the archive"
	rowVerbose = "  with -v"
	rowDisk    = "temporary disk"
	rowRSS     = "RSS of runner-capture"
	rowNames   = "1,000,000 names that do not exist"
	rowForks   = "forks of a shell"
	rowSpawn   = "fork+exec /bin/true, 2,000 times"
)

// processCounts are how many processes open files at once.
var processCounts = []int{2, 4}

func rowMany(n int) string { return fmt.Sprintf("%s, by %d processes", rowOpens, n) }

func rowGrep() string {
	return fmt.Sprintf("grep -rl, %s files and directories", thousands(int64(treeSize(leafDirs))))
}

// runCounts are how many runs go on beside what is measured.
var runCounts = []int{1, 10, 30}

// The calls of a process outside of all runs.
const (
	outsideCall = "getppid"
	outsideOpen = "open+close"
)

func rowOutside(call string, n int, probes string) string {
	return fmt.Sprintf("%s of a process outside, %d runs, %s probes", call, n, probes)
}

func rowBeside(n int, probes string) string {
	return fmt.Sprintf("runner-exec -- true beside %d runs, %s probes", n, probes)
}

// startsBeside says whether the start of one more run is measured beside n runs.
func startsBeside(n int) bool { return n == runCounts[0] || n == runCounts[len(runCounts)-1] }

// kernelRows are all of these names.
func kernelRows() []string {
	all := []string{rowTrue, rowAttach, rowOpens}
	for _, n := range processCounts {
		all = append(all, rowMany(n))
	}
	all = append(all, rowAfter, rowVerbose, rowDisk, rowRSS)
	for _, probes := range []string{schemas.ProbesOwn, schemas.ProbesShared} {
		all = append(all, outsideRows(probes, runCounts)...)
	}
	return append(all, rowNames, rowForks, rowSpawn, rowGrep())
}

func outsideRows(probes string, counts []int) (all []string) {
	for _, n := range counts {
		all = append(all, rowOutside(outsideCall, n, probes), rowOutside(outsideOpen, n, probes))
		if startsBeside(n) {
			all = append(all, rowBeside(n, probes))
		}
	}
	return all
}

// emulatedRows are those of kernelRows that an emulated machine measures. The others would take it longer than all of these: each run there has to load its own probes.
func emulatedRows() []string {
	dear := outsideRows(schemas.ProbesOwn, runCounts[1:])
	return slices.DeleteFunc(kernelRows(), func(what string) bool { return slices.Contains(dear, what) })
}

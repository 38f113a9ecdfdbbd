//go:build linux

// Bench is the program that `make bench` runs: it measures what measuring costs on
// this machine and prints one table. Performance never fails a test: the exit code
// says only whether everything could be measured.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const usage = `usage: bench [-short] [-pairs N] [-only SECTION] [-rss] [-before DIR] [short|json]

Runs from the root of the repository, after make build. Sections: start, version, open,
many, after, outside, scale, spawn, grep, build, soak, stages, verify, readers, attest,
correlate, policy, proc, box, net, replay, rss. Those about running commands need root.

  -short      fewer pairs and a smaller build (also: short, or BENCH_QUICK=1)
  -pairs N    pairs of a plain and a measured run (default 5; the build takes 3)
  -only NAME  one section, or several with commas between them
  -before DIR the same rows with the tools in DIR, to compare (column before)
  -rss        also the memory of each stage at 5 million events (slow)
  -tools DIR  where the tools are (default bin)
  -lines      the rows as results of a guest, with sizes for an emulated machine: what
              scripts/kernels.sh -job cost runs there
  json        the table as one JSON document, for testdata/bench/results

The column "on KERNEL" has what was recorded on the newest kernel of the lane, in an
emulated machine that counts instructions in the place of seconds: the ratio of the command's
CPU time, or what testdata/bench/results/KERNEL-emulated.json says. "` + same + `": neither a
kernel nor its probes decide the row. Empty: nothing is recorded of it. To record it again:
make test-kernels KERNELS=KERNEL LANE="-job cost -update"

exit: 0 measured, also if a target is not met; 2 usage; 5 something could not be run
`

func main() {
	if len(os.Args) > 2 && os.Args[1] == workloadArg {
		finish(workload(os.Args[2], os.Args[3:]))
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	short := f.Bool("short", false, "")
	pairs := f.Int("pairs", 0, "")
	only := f.String("only", "", "")
	rss := f.Bool("rss", false, "")
	old := f.String("before", "", "")
	bin := f.String("tools", "bin", "")
	lines := f.Bool("lines", false, "")
	if err := f.Parse(os.Args[1:]); err != nil {
		if err == flag.ErrHelp {
			os.Exit(0)
		}
		os.Exit(2)
	}
	b := &bench{pairs: *pairs, rss: *rss, before: *old, bin: *bin, lines: *lines,
		json:  f.Arg(0) == "json",
		short: *short || f.Arg(0) == "short" || os.Getenv("BENCH_QUICK") == "1"}
	if *only != "" {
		b.only = strings.Split(*only, ",")
	}
	if slices.ContainsFunc(b.only, func(name string) bool { return !b.known(name) }) || *pairs < 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	finish(b.run())
}

func finish(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(5)
	}
	os.Exit(0)
}

// run measures section by section, prints the table at the end and removes temporary
// files.
func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "runner-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	// Records hold resolved paths, so what is expected must be resolved too.
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return err
	}
	if err := b.find(); err != nil {
		return err
	}
	if b.newest, err = readNewest(); err != nil {
		return err
	}
	b.table.newest = newestHead(b.newest)
	switch {
	case b.lines:
		err = b.writeTools(os.Stdout)
	case !b.json:
		fmt.Print(b.header())
	}
	for _, s := range sections {
		if !b.wants(s.name) {
			continue
		}
		err = errors.Join(err, b.section(s))
	}
	if b.json {
		return errors.Join(err, b.writeJSON(os.Stdout))
	}
	if !b.lines {
		fmt.Print(b.table.String())
	}
	return err
}

// section measures one section.
func (b *bench) section(s section) (err error) {
	if s.kernel && b.cannot != "" {
		b.table.add(row{what: s.name, note: "NOT MEASURED: " + b.cannot})
		return nil
	}
	fmt.Fprintf(os.Stderr, "bench: %s\n", s.name)
	begin := len(b.table.rows)
	if err = s.run(b); err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	rows := b.table.rows[begin:]
	withNewest(rows, s.kernel, b.newest)
	if err != nil {
		// Print what was measured before, and report what was not.
		b.table.add(row{what: s.name, note: "COULD NOT BE MEASURED", failed: true})
		rows = b.table.rows[begin:]
	}
	if b.lines { // now: the guest may not live to the end
		err = errors.Join(err, writeLines(os.Stdout, rows))
	}
	return err
}

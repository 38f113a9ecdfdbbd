// Kernels is the program that `make test-kernels` runs: it boots the kernels of
// kernels.json in QEMU, runs the checks in each of them and compares the results with
// results.json.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `usage: kernels [flags] [KERNEL…]

Boots kernels of testdata/kernels/kernels.json in QEMU, without hardware support,
runs the checks in each and compares the results with testdata/kernels/results.json.
Runs from the root of the repository. Needs QEMU, and apt-get for kernels that are
not in the cache (${XDG_CACHE_HOME:-~/.cache}/runner/kernels). Needs no root.

  -list        print the kernels and what each stands for
  -fetch       only fetch; -cached never does
  -repin       write the newest version of each line into kernels.json
  -update      write the results into results.json and README.md, kernel by kernel
  -json FILE   write the results of this run there (- is standard output)
  -vms N       guests at once (default 2)
  -keep DIR    keep each guest's console there
  -whole       all checks with the whole numbers (half an hour)
  -job NAME    run only this job; results are then not compared; -job cost measures
               what measuring costs there, which no other run does, and with -update
               writes that into testdata/bench/results, for the table of make bench

exit: 0 all as expected; 1 a check failed, or a result differs from results.json;
2 usage; 4 a kernel could not be had or QEMU is not installed; 5 cannot go on
`

func main() {
	f := flag.NewFlagSet("kernels", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	var o options
	f.BoolVar(&o.list, "list", false, "")
	f.BoolVar(&o.fetch, "fetch", false, "")
	f.BoolVar(&o.offline, "cached", false, "")
	f.BoolVar(&o.whole, "whole", false, "")
	f.BoolVar(&o.repin, "repin", false, "")
	f.BoolVar(&o.update, "update", false, "")
	f.StringVar(&o.json, "json", "", "")
	f.IntVar(&o.vms, "vms", 2, "")
	f.StringVar(&o.keep, "keep", "", "")
	f.StringVar(&o.job, "job", "", "")
	if err := f.Parse(os.Args[1:]); err != nil || o.vms < 1 {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.only = strings.Fields(strings.Join(f.Args(), " "))
	err := o.run(ctx)
	stop()
	code := 0
	switch {
	case errors.Is(err, errDiffers):
		code = 1
	case errors.Is(err, errMissing):
		code = 4
	case errors.Is(err, errUnknown):
		code = 2
	case err != nil:
		code = 5
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels: error:", err)
	}
	os.Exit(code)
}

// The ways in which a run ends badly.
var (
	errDiffers = errors.New("not as expected")
	errMissing = errors.New("not tested")
	errUnknown = errors.New("no such kernel")
)

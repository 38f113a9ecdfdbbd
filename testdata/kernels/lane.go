package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

type options struct {
	list, fetch, repin, update bool
	json, keep, job            string
	vms                        int
	offline, whole             bool
	only                       []string
}

// A lane boots kernels, some at once.
type lane struct {
	options
	store *store
	dir   string           // of this run
	built map[string]error // by architecture
	known []kernel         // all of the list
	write sync.Mutex       // of the committed results
	// unsaved is why results could not be written.
	unsaved error
}

func (o options) run(ctx context.Context) error {
	list, err := readList()
	if err != nil {
		return err
	}
	chosen, err := choose(list, o.only)
	if err != nil {
		return err
	}
	if o.list {
		printList(chosen)
		return nil
	}
	dir, err := cache()
	if err != nil {
		return err
	}
	l := &lane{options: o, store: &store{dir: dir, offline: o.offline}, built: map[string]error{}, known: list}
	if o.repin {
		return l.repin(ctx, list)
	}
	reports, err := l.all(ctx, chosen)
	if err != nil {
		return err
	}
	return l.judge(reports)
}

// all fetches, then boots all kernels. What could not be had is a report too.
func (l *lane) all(ctx context.Context, chosen []kernel) ([]report, error) {
	reports := make([]report, len(chosen))
	have := make([]*fetched, len(chosen))
	for i, k := range chosen { // apt works on one thing at a time
		var err error
		if have[i], err = l.store.fetch(ctx, k); err != nil {
			reports[i] = absent(k, err)
		} else if have[i].note != "" {
			fmt.Fprintf(os.Stderr, "kernels: %s: %s\n", k.Name, have[i].note)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if l.fetch {
		return reports, nil
	}
	if err := emulators(chosen); err != nil {
		return nil, fmt.Errorf("%w: %w", errMissing, err)
	}
	var err error
	if l.dir, err = os.MkdirTemp("", "runner-kernels-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(l.dir)
	if err := l.buildAll(ctx, chosen); err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, l.vms)
	for _, i := range longestFirst(chosen) {
		f := have[i]
		if f == nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			reports[i] = l.one(ctx, f)
			if ctx.Err() == nil && l.update && l.job == "" {
				l.saved(reports[i : i+1])
			}
		})
	}
	group.Wait()
	return reports, ctx.Err()
}

// longestFirst is the order in which kernels boot: those with the most checks first, and newer ones before
// older ones, since their probes have copies. So no guest runs alone at the end.
func longestFirst(chosen []kernel) []int {
	order := make([]int, len(chosen))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	weight := func(i int) int {
		switch {
		case chosen[i].CI:
			return 2
		case chosen[i].Arch != "amd64", chosen[i].Variant == guest.Realtime:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return weight(b) - weight(a) })
	return order
}

func (l *lane) buildAll(ctx context.Context, chosen []kernel) error {
	for _, k := range chosen {
		if _, done := l.built[k.Arch]; done {
			continue
		}
		dir := filepath.Join(l.dir, k.Arch)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := build(ctx, k.Arch, dir, l.whole, l.job == costJob); err != nil {
			return err
		}
		if k.Arch == shellArch && (l.whole || l.job == costJob) {
			if err := l.store.shell(ctx, dir); err != nil {
				fmt.Fprintln(os.Stderr, "kernels: no shell for the guests:", err)
			}
		}
		l.built[k.Arch] = nil
	}
	return nil
}

// one boots one kernel.
func (l *lane) one(ctx context.Context, f *fetched) report {
	dir := filepath.Join(l.dir, "guest-"+f.Name)
	defer os.RemoveAll(dir)
	o, err := l.boot(ctx, f, dir)
	if err != nil {
		return absent(f.kernel, err)
	}
	if l.keep != "" {
		err = errors.Join(os.MkdirAll(l.keep, 0o755), os.WriteFile(filepath.Join(l.keep, f.Name+".console"), o.console, 0o644))
	}
	r := collect(f, o)
	if err != nil {
		r.Note = strings.TrimPrefix(r.Note+"; "+err.Error(), "; ")
	}
	fmt.Fprintf(os.Stderr, "kernels: %s: %s, %.0f s of CPU\n", f.Name, tally(r), o.took.Seconds())
	return r
}

func (l *lane) boot(ctx context.Context, f *fetched, dir string) (outcome, error) {
	unpacked, err := l.store.unpack(ctx, f)
	if err != nil {
		return outcome{}, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return outcome{}, err
	}
	image := filepath.Join(unpacked, "image")
	if f.Variant == guest.NoBTF {
		b, err := os.ReadFile(image)
		if err == nil {
			b, err = withoutBTF(b)
		}
		image = filepath.Join(dir, "image")
		if err := errors.Join(err, os.WriteFile(image, b, 0o644)); err != nil {
			return outcome{}, err
		}
	}
	initrd := filepath.Join(dir, "initrd")
	var clock []string
	wanted := slices.DeleteFunc(jobs(f.kernel, l.whole), func(j guest.Job) bool { return l.job != "" && j.Name != l.job })
	if l.job == costJob {
		wanted, clock = cost(), countedClock
	}
	plan := guest.Plan{Arch: f.Arch, Variant: f.Variant, Jobs: wanted}
	if err := initramfs(initrd, unpacked, filepath.Join(l.dir, f.Arch), plan); err != nil {
		return outcome{}, err
	}
	return bootKernel(ctx, f.Arch, f.Variant, image, initrd, dir, megabytes(f.kernel, l.whole, l.job == costJob), clock...), nil
}

// judge prints the table, writes what was asked for and compares.
func (l *lane) judge(reports []report) error {
	missing := notTested(reports)
	if l.fetch {
		if missing != nil {
			return fmt.Errorf("%w: %s", errMissing, strings.Join(missing, "\n"))
		}
		return nil
	}
	fmt.Print(table(reports))
	if l.json != "" {
		if err := writeTo(l.json, document{resultsSchema, reports}.encode()); err != nil {
			return err
		}
	}
	if l.job == "" {
		if err := l.compare(reports); err != nil {
			return err
		}
	}
	if failed := failures(reports); failed != nil {
		return fmt.Errorf("%w: %d failed", errDiffers, len(failed))
	}
	if missing != nil {
		return fmt.Errorf("%w:\n%s", errMissing, strings.Join(missing, "\n"))
	}
	if l.job == costJob && l.update {
		return recordCosts(reports)
	}
	return nil
}

// compare compares with the committed results. With -update they are written already.
func (l *lane) compare(reports []report) error {
	if l.update {
		return l.unsaved
	}
	want, err := readResults()
	if err != nil {
		return err
	}
	ran := slices.DeleteFunc(slices.Clone(reports), func(r report) bool { return r.Package == "" })
	diffs := differences(want, ran, l.whole)
	for _, d := range diffs {
		fmt.Println("DIFFERS", d)
	}
	if diffs != nil {
		return fmt.Errorf("%w: %d results are not as in %s (-update writes them)", errDiffers, len(diffs), resultsFile)
	}
	return nil
}

// saved writes the results of kernels that ran to their end: those of a run that is
// interrupted stay.
func (l *lane) saved(reports []report) {
	l.write.Lock()
	defer l.write.Unlock()
	old, err := readResults()
	if err != nil && !os.IsNotExist(err) {
		l.unsaved = errors.Join(l.unsaved, err)
		return
	}
	done := slices.DeleteFunc(slices.Clone(reports), func(r report) bool { return r.Release == "" })
	d := merge(old, done, l.known, l.whole)
	l.unsaved = errors.Join(l.unsaved, os.WriteFile(resultsFile, d.encode(), 0o644), writeReadme(d))
}

func notTested(reports []report) (names []string) {
	for _, r := range reports {
		for _, c := range r.Checks {
			if c.Check == bootCheck && c.Result == guest.Unavailable {
				names = append(names, r.Kernel+": "+c.Detail)
			}
		}
	}
	return names
}

func writeTo(path string, b []byte) error {
	if path == "-" {
		_, err := os.Stdout.Write(b)
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// repin writes the newest version of each line into the list.
func (l *lane) repin(ctx context.Context, list []kernel) error {
	for i, k := range list {
		image, _, err := l.store.newest(ctx, k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		list[i].Image, list[i].Modules = image, l.store.modulesOf(ctx, k.Arch, image)
		fmt.Printf("%-12s %s %s\n", k.Name, image.Package, image.Version)
	}
	return os.WriteFile(listFile, encodeList(list), 0o644)
}

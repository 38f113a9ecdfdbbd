package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// maxReasons is how many runs that did not pass a text names.
const maxReasons = 10

// text writes what the runs add up to, for people.
func (w *whole) text(out io.Writer, reasons map[string]map[int]string) {
	base := &w.faults[0].Results
	of := ""
	if s := w.plan.Shard; s != nil {
		of = fmt.Sprintf(" (shard %d of %d)", s.Index, s.Count)
	}
	if len(w.faults) == 1 {
		fmt.Fprintf(out, "%s%s: %d passed, %d failed", runs(base.Runs), of, base.Passes, base.Failures)
		if base.InfraErrors > 0 {
			fmt.Fprintf(out, ", %d could not be judged", base.InfraErrors)
		}
		fmt.Fprintln(out)
		fmt.Fprintln(out, sentence(base, w.plan.share()))
	} else {
		fmt.Fprintf(out, "%s without a fault%s, and as many under each of these: %d\n", runs(w.plan.share()), of, len(w.faults)-1)
		for i := range w.faults {
			fmt.Fprintf(out, "%s: %s\n", w.faults[i].Name, sentence(&w.faults[i].Results, w.plan.share()))
		}
	}
	fmt.Fprintln(out)
	w.rates().write(out)
	fmt.Fprintln(out)
	w.inARow().write(out)
	w.reasons(out, reasons)
	w.rules(out)
}

// sentence says what the passes are worth.
func sentence(r *Results, want int) string {
	s := supports(r.Passes, r.Passes+r.Failures)
	if r.StoppedEarly {
		s += fmt.Sprintf(" Stopped early, after %d of %d runs: the interval is biased.", r.Runs, want)
	}
	return s
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return strconv.Itoa(n) + " runs"
}

func (w *whole) rates() grid {
	g := grid{{"fault", "runs", "passed", "failed", "not judged", "pass rate", "95 % interval"}}
	if !w.bare {
		g[0] = append(g[0], "changing capabilities")
	}
	for i := range w.faults {
		f := &w.faults[i]
		r := &f.Results
		row := []string{f.Name, strconv.Itoa(r.Runs), strconv.Itoa(r.Passes), strconv.Itoa(r.Failures), strconv.Itoa(r.InfraErrors), "-", "-"}
		if r.Interval != nil {
			row[5], row[6] = number(r.PassRate), number(r.Interval[0])+" to "+number(r.Interval[1])
		}
		if !w.bare {
			least := ""
			if f.Drift.Cut {
				least = "at least "
			}
			row = append(row, fmt.Sprintf("%s%d of %d", least, f.Drift.Changing, f.Drift.Values))
		}
		g = append(g, row)
	}
	return g
}

// inARow is the probability that k runs all pass: of these runs, and of further ones.
func (w *whole) inARow() grid {
	g := grid{{"all of k runs pass"}}
	for _, k := range ks {
		g[0] = append(g[0], "k="+strconv.Itoa(k))
	}
	for i := range w.faults {
		f := &w.faults[i]
		these, further := []string{f.Name + ", of these"}, []string{f.Name + ", of further ones"}
		for _, p := range f.Results.PassK {
			cell := "-"
			if p.Unbiased != nil {
				cell = number(*p.Unbiased)
			}
			these, further = append(these, cell), append(further, number(p.Posterior))
		}
		g = append(g, these, further)
	}
	return g
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

// reasons names the first runs that did not pass.
func (w *whole) reasons(out io.Writer, why map[string]map[int]string) {
	shown := 0
	for i := range w.faults {
		f := &w.faults[i]
		for j := range f.Runs {
			run := &f.Runs[j]
			if run.Status == statusPass {
				continue
			}
			if shown++; shown == 1 {
				fmt.Fprintln(out)
			}
			if shown > maxReasons {
				continue
			}
			fmt.Fprintf(out, "%s: %s\n", f.title(run), verdict.Printable(reason(run, why[f.Name]), 2*maxMessage))
		}
	}
	if shown > maxReasons {
		fmt.Fprintf(out, "… and %d more\n", shown-maxReasons)
	}
}

// title names a run.
func (f *FaultResult) title(run *Run) string {
	if f.Name == noFault {
		return fmt.Sprintf("run %d", run.Index)
	}
	return fmt.Sprintf("run %d under %s", run.Index, f.Name)
}

// reason says why a run did not pass: what is known here, or what its report has.
func reason(run *Run, why map[int]string) string {
	switch text := why[run.Index]; {
	case text != "":
		return text
	case run.Status == statusInfra:
		return run.Kind + ": " + run.Message
	case len(run.ViolatedRules) > 0:
		return "it failed; rules that do not hold: " + strings.Join(run.ViolatedRules, ", ")
	}
	return "it failed"
}

// rules lists the rules that do not hold.
func (w *whole) rules(out io.Writer) {
	all := map[string]int{}
	for i := range w.faults {
		for rule, n := range w.faults[i].Results.ByRule {
			all[rule] += n
		}
	}
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(out)
	g := grid{{"rule, of any severity", "does not hold in"}}
	for _, rule := range slices.Sorted(maps.Keys(all)) {
		g = append(g, []string{verdict.Printable(rule, maxMessage), runs(all[rule])})
	}
	g.write(out)
}

// grid is a table: its first column is aligned to the left, the others to the right.
type grid [][]string

func (g grid) write(out io.Writer) {
	var width []int
	for _, row := range g {
		for i, c := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range g {
		for i, c := range row {
			pad := fmt.Sprintf("%*s", width[i]-utf8.RuneCountInString(c), "")
			if i == 0 {
				fmt.Fprint(out, c+pad)
				continue
			}
			fmt.Fprint(out, "  "+pad+c)
		}
		fmt.Fprintln(out)
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Lengths of what the summary shows, in characters. --json has everything.
const (
	maxShownCommand = 200
	maxShownNote    = 600
	maxShownNotes   = 30
)

// print writes the verdict: JSON to standard output, or a summary there and the
// findings to standard error.
func (v *verifier) print(env *tool.Env, opt Options) error {
	if opt.JSON {
		b, err := schemas.Marshal(v.res)
		if err != nil {
			return err
		}
		_, err = env.Stdout.Write(append(b, '\n'))
		return err
	}
	if err := v.printFindings(env); err != nil {
		return err
	}
	if v.total > 0 {
		return nil
	}
	w := bufio.NewWriter(env.Stdout)
	v.printRecord(w)
	if v.res.Explanation != nil {
		v.printExplanation(w)
	} else {
		v.printSummary(w)
	}
	return w.Flush()
}

func (v *verifier) printFindings(env *tool.Env) error {
	w := bufio.NewWriter(env.Stderr)
	name := printable(v.res.Archive, maxShownCommand)
	for _, f := range v.list {
		fmt.Fprintf(w, "%s: %s: ", env.Name, name)
		switch {
		case f.Line > 0:
			fmt.Fprintf(w, "%s:%d: ", f.Member, f.Line)
		case f.Member != "":
			fmt.Fprintf(w, "%s: ", printable(f.Member, maxMessage))
		}
		fmt.Fprintf(w, "%s: %s\n", f.Rule, f.Message)
	}
	if more := v.total - len(v.list); more > 0 {
		fmt.Fprintf(w, "%s: %s: %d more findings of these kinds\n", env.Name, name, more)
	}
	if v.total > 0 && v.res.Valid {
		fmt.Fprintf(w, "%s: %s: valid, but not as demanded\n", env.Name, name)
	}
	return w.Flush()
}

// printRecord says which record it is.
func (v *verifier) printRecord(w io.Writer) {
	r, rec := &v.res, v.res.Record
	fmt.Fprintf(w, "%s: valid\n", printable(r.Archive, maxShownCommand))
	fmt.Fprintf(w, "identity  %s\n", r.Identity)
	fmt.Fprintf(w, "run       %s: %s\n", r.RunID, v.ending())
	fmt.Fprintf(w, "record    kernel=%s drops=%d cgroup=%s policy=%s sdk=%s correlation=%s\n", rec.KernelLayer,
		rec.RingbufDrops, rec.CgroupCorrelation, rec.PolicyLayer, rec.SDKLayer, rec.Correlation)
	var sizes []string
	for _, set := range schemas.SurfaceSets {
		sizes = append(sizes, fmt.Sprintf("%d %s", rec.Surface[set], strings.ReplaceAll(set, "_", " ")))
	}
	fmt.Fprintf(w, "surface   %s\n", strings.Join(sizes, ", "))
	fmt.Fprintf(w, "network   coverage %s, claim scope %s\n", rec.NetworkCoverage, rec.EndpointScope)
}

func (v *verifier) printSummary(w io.Writer) {
	r, rec := &v.res, v.res.Record
	section(w, "This record claims:", r.Claims)
	section(w, "It never claims:", r.NonClaims)
	section(w, "Ambiguities:", v.report.Ambiguities)
	section(w, "Notes of the observation (losses, blind spots, limits):", rec.Notes)
}

func section(w io.Writer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for i, s := range items {
		if i == maxShownNotes {
			fmt.Fprintf(w, "  … and %d more\n", len(items)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", printable(s, maxShownNote))
	}
}

// ending says in a few words what was run and how it ended.
func (v *verifier) ending() string {
	rec := v.res.Record
	what := "an existing cgroup"
	if len(rec.Command) > 0 {
		what = printable(strings.Join(rec.Command, " "), maxShownCommand)
	}
	switch {
	case rec.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", what, *rec.ExitCode)
	case rec.Signal != nil:
		return fmt.Sprintf("%s, killed by signal %d", what, *rec.Signal)
	}
	return what + ", end not seen"
}

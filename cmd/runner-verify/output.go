package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Lengths of what the summary shows, in characters and lines. -v and --json have everything.
const (
	maxShownNote  = 600
	maxShownNotes = 30
)

// print writes the verdict: JSON to standard output, or a summary there and the
// findings to standard error.
func (v *verifier) print(env *tool.Env, opt Options) error {
	if opt.JSON {
		b, err := schemas.MarshalShown(v.res)
		if err != nil {
			return err
		}
		_, err = env.Stdout.Write(append(b, '\n'))
		return err
	}
	if err := verdict.WriteFindings(env.Stderr, env.Name, &v.res); err != nil {
		return err
	}
	if v.total > 0 {
		return nil
	}
	w := bufio.NewWriter(env.Stdout)
	verdict.WriteRecord(w, &v.res)
	if v.attested != nil {
		for _, line := range v.attested.says {
			fmt.Fprintln(w, line)
		}
	}
	if v.res.Explanation != nil {
		verdict.WriteExplanation(w, &v.res)
	} else {
		v.printSummary(w, opt.Details)
	}
	return w.Flush()
}

// printSummary starts with what the command did. What every record says of itself comes on request.
func (v *verifier) printSummary(w io.Writer, details bool) {
	verdict.WriteSurface(w, &v.res, v.surface.explain())
	section := func(title string, items []string) { section(w, title, items, details) }
	section("Ambiguities:", v.report.Ambiguities)
	notes := v.res.Record.Notes
	if !details {
		section("Notes of this run:", verdict.Remarkable(notes))
		fmt.Fprintln(w, "What it claims, what it never claims and what was not seen: runner-verify -v. What each process did: runner-show")
		return
	}
	section("This record claims:", v.res.Claims)
	section("It never claims:", v.res.NonClaims)
	section("Notes of the observation (losses, blind spots, limits):", notes)
}

func section(w io.Writer, title string, items []string, all bool) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for i, s := range items {
		most := maxShownNote
		if all {
			most = len(s)
		} else if i == maxShownNotes {
			fmt.Fprintf(w, "  … and %d more\n", len(items)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", verdict.Printable(s, most))
	}
}

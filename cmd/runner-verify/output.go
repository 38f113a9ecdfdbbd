package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Lengths of what the summary shows, in characters. --json has everything.
const (
	maxShownName  = 200
	maxShownNote  = 600
	maxShownNotes = 30
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
	verdict.WriteRecord(w, &v.res)
	if v.res.Explanation != nil {
		verdict.WriteExplanation(w, &v.res)
	} else {
		v.printSummary(w)
	}
	return w.Flush()
}

func (v *verifier) printFindings(env *tool.Env) error {
	w := bufio.NewWriter(env.Stderr)
	name := verdict.Printable(v.res.Archive, maxShownName)
	for _, f := range v.list {
		f.Member = verdict.Printable(f.Member, maxMessage)
		fmt.Fprintf(w, "%s: %s: %s\n", env.Name, name, f)
	}
	if more := v.total - len(v.list); more > 0 {
		fmt.Fprintf(w, "%s: %s: %d more findings of these kinds\n", env.Name, name, more)
	}
	if v.total > 0 && v.res.Valid {
		fmt.Fprintf(w, "%s: %s: valid, but not as demanded\n", env.Name, name)
	}
	return w.Flush()
}

func (v *verifier) printSummary(w io.Writer) {
	section(w, "This record claims:", v.res.Claims)
	section(w, "It never claims:", v.res.NonClaims)
	section(w, "Ambiguities:", v.report.Ambiguities)
	section(w, "Notes of the observation (losses, blind spots, limits):", v.res.Record.Notes)
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
		fmt.Fprintf(w, "  %s\n", verdict.Printable(s, maxShownNote))
	}
}

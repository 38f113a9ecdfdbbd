package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// table is the results as text: one line for each kernel and check.
func table(reports []report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range reports {
		for _, l := range r.Checks {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Kernel, l.Check, l.Result, clip(l.Detail))
		}
	}
	w.Flush()
	for _, r := range reports {
		fmt.Fprintf(&b, "%s: %s", r.Kernel, tally(r))
		if r.Note != "" {
			fmt.Fprintf(&b, " (%s)", r.Note)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// clip keeps a table readable. The JSON has the whole text.
func clip(s string) string {
	if r := []rune(s); len(r) > 160 {
		return string(r[:159]) + "…"
	}
	return s
}

// tally counts a kernel's results: "12 ok, 1 told".
func tally(r report) string {
	count := map[guest.Result]int{}
	for _, l := range r.Checks {
		count[l.Result]++
	}
	var parts []string
	for _, kind := range guest.Results {
		if n := count[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

func printList(list []kernel) {
	for _, k := range list {
		fmt.Printf("%-18s %-6s %s (%s %s)\n", k.Name, k.Arch, k.Stands, k.Image.Package, k.Image.Version)
	}
}

func encodeList(list []kernel) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	_ = e.Encode(list)
	return b.Bytes()
}

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// content is the content of an archive under construction.
type content map[string]string

const (
	runID    = archivetest.RunID
	elsewise = "run_other"
)

func kernelLine(seq int, rest string) string { return archivetest.KernelLine(seq, rest) }
func openLine(seq int, path string) string   { return archivetest.OpenLine(seq, path) }
func sdkLines(events ...string) string       { return archivetest.SDKLines(events...) }
func sample() content                        { return content(archivetest.Sample()) }

// digest writes the manifest that fits the content, as a forger would.
func (a content) digest(t testing.TB) content { return content(archivetest.Content(a).Digest(t)) }

// names are the members in archive order.
func (a content) names() []string { return archivetest.Content(a).Names() }

// tar packs the members without any check.
func (a content) tar(t testing.TB) []byte { return archivetest.Content(a).Tar(t) }

func zipped(t testing.TB, b []byte, level int) []byte { return archivetest.Gzip(t, b, level) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// call runs the tool on standard input.
func call(in []byte, args ...string) (code int, stdout, stderr string) {
	return testkit.Call(app(), in, args...)
}

// check returns the exit code and the result of an archive.
func check(t testing.TB, in []byte, args ...string) (int, verdict.Report) {
	t.Helper()
	code, out, errs := call(in, append([]string{"--json"}, args...)...)
	var r verdict.Report
	if err := schemas.Unmarshal([]byte(strings.TrimSuffix(out, "\n")), &r); err != nil {
		t.Fatalf("exit %d, output is not a result: %v\n%s%s", code, err, out, errs)
	}
	if r.Valid {
		fitsSchemas(t, in)
	}
	if refused != nil {
		refused(t.Name(), rules(r))
	}
	return code, r
}

// rules are the distinct rule ids of the findings, sorted.
func rules(r verdict.Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, f.Rule)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

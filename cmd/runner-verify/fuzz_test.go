package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// FuzzVerify feeds archive bytes. Whatever they are, the answer is one of the
// documented ones, and a valid archive has an identity and no finding.
func FuzzVerify(f *testing.F) {
	plain := sample().digest(f).tar(f)
	f.Add(plain)
	f.Add(zipped(f, plain, gzip.BestSpeed))
	f.Add(layered().digest(f).tar(f))
	f.Add(plain[:3000])
	damaged := sample()
	damaged[bundle.HealthName] += "\n"
	f.Add(damaged.digest(f).tar(f))
	more, _ := filepath.Glob(filepath.Join(os.Getenv("RUNNER_CORPORA"), "assay/_oracle/runner-core/*/archive.tar.gz"))
	for _, path := range more {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(b)
		}
	}
	compiled() // before fuzzing, so that its coverage is not new
	f.Fuzz(func(t *testing.T, b []byte) {
		code, r := check(t, b, "--explain")
		switch {
		case code != 0 && code != 1 && code != 3:
			t.Fatalf("exit %d", code)
		case r.Valid != (code == 0), r.Valid != (len(r.Findings) == 0), r.Valid && r.Identity == "":
			t.Fatalf("exit %d, %+v", code, r)
		}
	})
}

// FuzzMembers feeds the content of the members and digests it as a forger would,
// so that the checks after the digests are reached.
func FuzzMembers(f *testing.F) {
	for _, s := range []content{sample(), layered(), foreign()} {
		f.Add(s[bundle.EventsName], s[bundle.KernelName], s[bundle.PolicyName], s[bundle.SDKName], s[bundle.SurfaceName], s[bundle.ReportName], s[bundle.HealthName])
	}
	l := large(3, 2)
	f.Add(l[bundle.EventsName], l[bundle.KernelName], "", "", l[bundle.SurfaceName], l[bundle.ReportName], l[bundle.HealthName])
	compiled() // before fuzzing, so that its coverage is not new
	f.Fuzz(func(t *testing.T, events, kernel, policy, sdk, surface, report, health string) {
		a := content{bundle.EventsName: events, bundle.KernelName: kernel, bundle.PolicyName: policy, bundle.SDKName: sdk,
			bundle.SurfaceName: surface, bundle.ReportName: report, bundle.HealthName: health}
		v := a.digest(t).members(t)
		defer v.close()
		v.summarise()
		if v.res.Valid {
			v.res.Explanation = v.explain()
			verdict.WriteExplanation(io.Discard, &v.res)
		}
		v.demand(t.Context(), nil, nil)
		// Without lines there is no value, so the surface of a valid archive is empty.
		if v.res.Valid && kernel == "" && policy == "" && strings.Contains(surface, `["`) {
			t.Fatalf("a surface from nowhere: %s", surface)
		}
	})
}

// members checks the members without a container, whose reader runs concurrently
// and makes the coverage of a fuzz target a matter of luck.
func (a content) members(t testing.TB) *verifier {
	v := newVerifier()
	if err := v.conclude(archive.ReadMembers(t.Context(), archivetest.Content(a).Members(), v.visitor())); err != nil {
		t.Fatal(err)
	}
	return v
}

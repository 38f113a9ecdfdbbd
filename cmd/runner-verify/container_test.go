package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

func TestContainerForms(t *testing.T) {
	plain := sample().digest(t).tar(t)
	_, want := check(t, plain)
	if !want.Valid || want.Container != "tar" || want.Identity == "" {
		t.Fatalf("plain tar: %+v", want)
	}
	for _, level := range []int{gzip.NoCompression, gzip.BestSpeed, gzip.BestCompression, gzip.HuffmanOnly} {
		code, r := check(t, zipped(t, plain, level))
		if code != 0 || r.Identity != want.Identity || r.Container != "gzip" {
			t.Errorf("gzip level %d: exit %d, identity %s, expected %s", level, code, r.Identity, want.Identity)
		}
	}
}

// Every proper beginning of an archive is refused, and not as a valid one with
// findings: it is not a whole archive.
func TestEveryPrefix(t *testing.T) {
	plain := sample().digest(t).tar(t)
	for name, b := range map[string][]byte{"tar": plain, "gzip": zipped(t, plain, gzip.BestSpeed)} {
		step := 1
		if testing.Short() || name == "tar" {
			step = 37
		}
		for n := 0; n < len(b); n += step {
			if code, _, _ := call(b[:n], "--json"); code != 3 {
				t.Fatalf("%s: the first %d of %d bytes: exit %d, expected 3", name, n, len(b), code)
			}
		}
	}
}

func TestBitFlips(t *testing.T) {
	plain := sample().digest(t).tar(t)
	for i := 0; i < len(plain); i += 29 {
		b := bytes.Clone(plain)
		b[i] ^= 1 << (i % 8)
		code, r := check(t, b)
		if code == 0 && r.Identity == "" {
			t.Fatalf("byte %d: valid without an identity", i)
		}
		if code != 0 {
			continue
		}
		// Header fields without a meaning for the run (mode, owner, time) may
		// differ; then the checksum would differ too, so nothing gets here.
		t.Fatalf("byte %d of the tar flipped, and it is still valid", i)
	}
}

func TestHostileContainers(t *testing.T) {
	a := sample().digest(t)
	plain := a.tar(t)
	packed := zipped(t, plain, gzip.BestSpeed)
	// with packs the members, and before the named one the given header and data.
	with := func(before string, h tar.Header, data string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, name := range a.names() {
			if name == before {
				h.Size = int64(len(data))
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				w.Write([]byte(data))
			}
			w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(a[name])), Mode: 0o644, Format: tar.FormatUSTAR})
			w.Write([]byte(a[name]))
		}
		w.Close()
		return b.Bytes()
	}
	for _, tc := range []struct {
		name string
		in   []byte
		code int
		rule string
	}{
		{"empty", nil, 3, archive.RuleContainer},
		{"text", []byte(strings.Repeat("not an archive\n", 100)), 3, archive.RuleContainer},
		{"gzip of nothing", zipped(t, nil, 1), 3, archive.RuleContainer},
		{"gzip of text", zipped(t, []byte(strings.Repeat("no\n", 400)), 1), 3, archive.RuleContainer},
		{"second gzip member", append(bytes.Clone(packed), packed...), 1, archive.RuleTrailing},
		{"trailing byte", append(bytes.Clone(packed), 0), 1, archive.RuleTrailing},
		{"trailing tar data", append(bytes.Clone(plain), "x"...), 1, archive.RuleTrailing},
		{"two archives", zipped(t, append(bytes.Clone(plain), plain...), 1), 1, archive.RuleTrailing},
		{"traversal", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeReg, Name: "../x"}, "x"), 1, archive.RuleMemberForm},
		{"absolute", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeReg, Name: "/etc/x"}, "x"), 1, archive.RuleMemberForm},
		{"control characters", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeReg, Name: "e\x1b[2Jx"}, "x"), 1, archive.RuleMemberForm},
		{"symlink", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeSymlink, Name: "e", Linkname: "/etc/passwd"}, ""), 1, archive.RuleMemberForm},
		{"hard link", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeLink, Name: "e", Linkname: "manifest.json"}, ""), 1, archive.RuleMemberForm},
		{"directory", with(bundle.KernelName, tar.Header{Typeflag: tar.TypeDir, Name: "layers/"}, ""), 1, archive.RuleMemberForm},
		{"pax", with(bundle.EventsName, tar.Header{Typeflag: tar.TypeReg, Name: "e", PAXRecords: map[string]string{"VENDOR.x": "y"}, Format: tar.FormatPAX}, ""), 1, archive.RuleMemberForm},
		{"duplicate", with(bundle.KernelName, tar.Header{Typeflag: tar.TypeReg, Name: bundle.EventsName}, a[bundle.EventsName]), 1, archive.RuleOrder},
		{"duplicate manifest", with(bundle.KernelName, tar.Header{Typeflag: tar.TypeReg, Name: bundle.ManifestName}, "{}"), 1, archive.RuleOrder},
		{"first is not the manifest", with(bundle.ManifestName, tar.Header{Typeflag: tar.TypeReg, Name: "a"}, ""), 1, archive.RuleOrder},
		{"out of order", with(bundle.KernelName, tar.Header{Typeflag: tar.TypeReg, Name: "a"}, ""), 1, archive.RuleOrder},
		{"unknown member", with(bundle.KernelName, tar.Header{Typeflag: tar.TypeReg, Name: "f"}, "x"), 1, archive.RuleUnknown},
		{"huge manifest", content{bundle.ManifestName: strings.Repeat(" ", schemas.MaxManifestBytes+1)}.tar(t), 1, archive.RuleLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, r := check(t, tc.in)
			if code != tc.code || r.Valid || len(r.Findings) == 0 || r.Findings[len(r.Findings)-1].Rule != tc.rule && r.Findings[0].Rule != tc.rule {
				t.Fatalf("exit %d, findings %+v, expected exit %d and %s", code, r.Findings, tc.code, tc.rule)
			}
		})
	}
}

// A bomb is refused without being unpacked to the end.
func TestBomb(t *testing.T) {
	a := sample()
	a[bundle.KernelName] = strings.Repeat(strings.Repeat(" ", 4095)+"\n", 4000)
	b := zipped(t, a.digest(t).tar(t), gzip.BestCompression)
	v := newVerifier()
	defer v.close()
	v.lim.Free = 1 << 20
	if err := v.verify(t.Context(), bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	if last := v.list[len(v.list)-1]; last.Rule != archive.RuleLimit || v.total >= 4000 {
		t.Fatalf("%d findings of blank lines, the last is %+v", v.total, last)
	}
}

// Findings are bounded and all of them counted.
func TestManyFindings(t *testing.T) {
	a := sample()
	a[bundle.KernelName] = strings.Repeat("x\n", 5000)
	code, r := check(t, a.digest(t).tar(t))
	if code != 1 || len(r.Findings) > maxFindings || r.FindingCount != 5000 {
		t.Fatalf("exit %d, %d findings of %d", code, len(r.Findings), r.FindingCount)
	}
	_, _, errs := call(a.tar(t))
	if !strings.HasSuffix(errs, "4990 more findings of these kinds\n") {
		t.Error(errs)
	}
}

package attestation

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

func sample() *Run {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	return &Run{Name: "run.tar.gz", Bytes: digest("a"), Identity: digest("b"), Manifest: digest("c"), RunID: "run_01",
		Files:   map[string]schemas.ManifestFile{"events.ndjson": {Path: "events.ndjson", SHA256: digest("d"), Bytes: 3}},
		Health:  &schemas.Health{Schema: schemas.SchemaHealth, RunID: "run_01", KernelLayer: schemas.LayerComplete, RingbufDrops: 1<<53 + 1, Notes: []string{"a"}},
		Record:  &verdict.Record{Origin: schemas.OriginRunner, Correlation: schemas.CorrelationClean, Surface: map[string]uint64{"process_execs": 1}},
		Packs:   &schemas.ManifestPacks{Applied: []schemas.ManifestPack{{Name: "mine", Version: "1.0.0", Digest: digest("f"), Kind: schemas.PackKinds[0]}}},
		Signals: map[string]schemas.SignalDetail{schemas.SignalClock: {Status: schemas.SignalMissing}, schemas.SignalKernelEvents: {Status: schemas.SignalCaptured}},
		Closure: schemas.ClosureScore{Score: 0.0909, Confidence: schemas.ConfidenceHigh, Dependencies: []string{"random: /dev/urandom"}},
		Surface: map[string][]string{schemas.SurfaceSets[schemas.SetFilesystemPaths]: {"/a", "/b"}}}
}

func key(t *testing.T, algorithm string) (*PrivateKey, *PublicKey) {
	t.Helper()
	k, err := Generate(algorithm)
	testkit.Must(t, err)
	b, err := k.PEM()
	testkit.Must(t, err)
	k, err = ParsePrivate(b)
	testkit.Must(t, err)
	p, err := k.Public()
	testkit.Must(t, err)
	b, err = p.PEM()
	testkit.Must(t, err)
	p, err = ParsePublic(b)
	testkit.Must(t, err)
	return k, p
}

func sealed(t *testing.T, r *Run, predicate string) *Envelope {
	t.Helper()
	s, err := New(r, predicate)
	testkit.Must(t, err)
	b, err := schemas.Marshal(s)
	testkit.Must(t, err)
	return Seal(b)
}

// A statement holds for the archive that it was made from, in both forms, and is the same each time.
func TestHolds(t *testing.T) {
	for _, algorithm := range []string{Ed25519, P256} {
		k, p := key(t, algorithm)
		for _, predicate := range []string{MeasuredRun, RuntimeTrace} {
			for _, sigstore := range []bool{false, true} {
				var lines [2][]byte
				for i := range lines {
					e := sealed(t, sample(), predicate)
					testkit.Must(t, e.Sign(k))
					line, err := e.Line(sigstore)
					testkit.Must(t, err)
					lines[i] = line
				}
				if !bytes.Equal(lines[0], lines[1]) {
					t.Errorf("%s %s: signing twice gives different bytes", algorithm, predicate)
				}
				list, err := Parse(append(lines[0], lines[1]...))
				testkit.Must(t, err)
				for _, e := range list {
					s, err := ParseStatement(e)
					testkit.Must(t, err)
					if signed := e.Signers([]*PublicKey{p}); len(signed) != 1 {
						t.Errorf("%s %s: %d signers", algorithm, predicate, len(signed))
					}
					if err := s.Check(sample()); err != nil {
						t.Errorf("%s %s: %v", algorithm, predicate, err)
					}
				}
			}
		}
	}
}

// Each value of a predicate that is changed, left out or added is found, also by one in 2^53.
func TestLies(t *testing.T) {
	for name, lie := range map[string]func(*Run){
		"health":       func(r *Run) { r.Health.KernelLayer = schemas.LayerPartial },
		"drops by one": func(r *Run) { r.Health.RingbufDrops = 1 << 53 },
		"a note":       func(r *Run) { r.Health.Notes = []string{"b"} },
		"notes":        func(r *Run) { r.Health.Notes = nil },
		"member":       func(r *Run) { r.Files = nil },
		"events":       func(r *Run) { r.Record.KernelEvents = 9 },
		"success":      func(r *Run) { r.Record.Success = true },
		"exit code":    func(r *Run) { r.Record.ExitCode = new(int) },
		"run":          func(r *Run) { r.RunID = "run_02" },
		"packs":        func(r *Run) { r.Packs = nil },
		"pack":         func(r *Run) { r.Packs.Applied[0].Digest = "sha256:" + strings.Repeat("e", 64) },
		"signals":      func(r *Run) { r.Signals[schemas.SignalClock] = schemas.SignalDetail{Status: schemas.SignalCaptured} },
		"signal": func(r *Run) {
			r.Signals[schemas.SignalKernelEvents] = schemas.SignalDetail{Status: schemas.SignalUnknown}
		},
		"score":        func(r *Run) { r.Closure.Score = 0.1 },
		"confidence":   func(r *Run) { r.Closure.Confidence = schemas.ConfidenceLow },
		"dependencies": func(r *Run) { r.Closure.Dependencies = []string{} },
		"identity":     func(r *Run) { r.Identity = "sha256:" + strings.Repeat("e", 64) },
		"surface":      func(r *Run) { r.Record.Surface = map[string]uint64{"process_execs": 1, "x": 2} },
	} {
		liar := sample()
		lie(liar)
		s, err := ParseStatement(sealed(t, liar, MeasuredRun))
		testkit.Must(t, err)
		if err := s.Check(sample()); err == nil || !strings.Contains(err.Error(), "predicate.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	liar := sample()
	liar.Surface = map[string][]string{schemas.SurfaceSets[schemas.SetFilesystemPaths]: {"/a", "/c"}}
	s, err := ParseStatement(sealed(t, liar, RuntimeTrace))
	testkit.Must(t, err)
	if err := s.Check(sample()); err == nil || !strings.Contains(err.Error(), "fileAccess[1].name") {
		t.Error(err)
	}
	other := sample()
	other.Bytes, other.Identity, other.Manifest = "sha256:1", "sha256:2", "sha256:3"
	if s, err = ParseStatement(sealed(t, other, MeasuredRun)); err == nil {
		err = s.Check(sample())
	}
	if err == nil || !strings.Contains(err.Error(), "about something else") {
		t.Error(err)
	}
	s.PredicateType = "https://slsa.dev/provenance/v1"
	if err := s.Check(sample()); err == nil {
		t.Error("another predicate holds")
	}
}

// No byte of an envelope can be changed, cut or added so that another statement is signed.
func TestEdits(t *testing.T) {
	k, p := key(t, Ed25519)
	e := sealed(t, sample(), MeasuredRun)
	testkit.Must(t, e.Sign(k))
	line, err := e.Line(false)
	testkit.Must(t, err)
	for i := range line {
		for _, edit := range [][]byte{append(bytes.Clone(line[:i]), line[i+1:]...), append(append(bytes.Clone(line[:i]), line[i]^1), line[i+1:]...)} {
			list, err := Parse(edit)
			if err != nil {
				continue
			}
			for _, got := range list {
				if len(got.Signers([]*PublicKey{p})) > 0 && !bytes.Equal(got.Body(), e.Body()) {
					t.Fatalf("byte %d: another statement is signed", i)
				}
			}
		}
	}
	_, stranger := key(t, P256)
	if got := e.Signers([]*PublicKey{stranger, p}); len(got) != 1 || got[0] != p {
		t.Errorf("%v", got)
	}
	e.PayloadType = "text/plain"
	if len(e.Signers([]*PublicKey{p})) != 0 {
		t.Error("another type is signed")
	}
	if _, err := ParseStatement(e); err == nil {
		t.Error("another type is a statement")
	}
}

func TestForms(t *testing.T) {
	for _, bad := range []string{"", "{}", "[]", `{"payloadType":"x","payload":"!","signatures":[]}`, `{"payloadType":"x","payload":"YQ==","payload":"Yg=="}`,
		`{"mediaType":"text/plain","dsseEnvelope":{"payloadType":"x","payload":"YQ==","signatures":[]}}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is an envelope", bad)
		}
	}
	if list, err := Parse([]byte(`{"payloadType":"x","payload":"_-8","signatures":null,"more":1}`)); err != nil || string(list[0].Body()) != "\xff\xef" {
		t.Errorf("%v %v", list, err)
	}
}

// openssl makes keys that sign here and verifies what was signed, byte for byte what DSSE says.
func TestOpenssl(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		testkit.Missing(t, "openssl is not installed: no other program checked a signature")
	}
	dir := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(openssl, args...).CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for algorithm, make := range map[string][]string{Ed25519: {"genpkey", "-algorithm", "ed25519"}, P256: {"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"},
		"p256 in SEC 1": {"ecparam", "-name", "prime256v1", "-genkey"}} {
		do(append(make, "-out", file("key"))...)
		do("pkey", "-in", file("key"), "-pubout", "-out", file("pub"))
		b, err := os.ReadFile(file("key"))
		testkit.Must(t, err)
		k, err := ParsePrivate(b)
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		e := sealed(t, sample(), MeasuredRun)
		testkit.Must(t, e.Sign(k))
		sig, err := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(file("sig"), sig, 0o600))
		testkit.Must(t, os.WriteFile(file("pae"), e.pae(), 0o600))
		if algorithm == Ed25519 {
			do("pkeyutl", "-verify", "-pubin", "-inkey", file("pub"), "-rawin", "-in", file("pae"), "-sigfile", file("sig"))
		} else {
			do("dgst", "-sha256", "-verify", file("pub"), "-signature", file("sig"), file("pae"))
		}
	}
	for _, other := range [][]string{{"genpkey", "-algorithm", "RSA"}, {"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"},
		{"genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:x"}} {
		do(append(other, "-out", file("key"))...)
		b, err := os.ReadFile(file("key"))
		testkit.Must(t, err)
		if _, err := ParsePrivate(b); err == nil {
			t.Errorf("%v: the key is taken", other)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"","sig":"YQ"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := Parse(b)
		if err != nil {
			return
		}
		for _, e := range list {
			if s, err := ParseStatement(e); err == nil {
				_ = s.Check(sample())
			}
		}
	})
}

package bundle

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// read reads a whole archive and returns members, contents and identity.
func read(b []byte, lim Limits) (names []string, content map[string][]byte, identity string, err error) {
	a, err := Open(bytes.NewReader(b), lim)
	if err != nil {
		return nil, nil, "", err
	}
	defer a.Close()
	content = map[string][]byte{}
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return names, content, a.Identity(), nil
		}
		if err != nil {
			return names, content, a.Identity(), err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return names, content, a.Identity(), err
		}
		if int64(len(data)) != m.Size {
			return names, content, "", errors.New("size differs from the header")
		}
		names = append(names, m.Name)
		content[m.Name] = data
	}
}

func TestRealArchives(t *testing.T) {
	root := testkit.Corpora(t, "assay")
	n := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "archive.tar.gz" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names, _, id, err := read(b, DefaultLimits)
		if err != nil || len(names) != len(members()) || len(id) != 64 {
			t.Errorf("%s: %v %v %q", path, err, names, id)
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 12 {
		t.Errorf("found %d archives, expected at least 12", n)
	}
}

// members are the eight that every archive has.
func members() []schemas.Form {
	return slices.DeleteFunc(schemas.Members(), func(f schemas.Form) bool { return f.Optional })
}

// sources are eight members, large enough for several chunks when n is.
func sources(n int) (list []Source) {
	for _, m := range members()[1:] {
		data := []byte(`{"schema":"` + m.Schema + `"}`)
		if m.Member == KernelName {
			data = nil
			for i := range n {
				data = fmt.Appendf(data, "{\"seq\":%d,\"value\":\"/tmp/%x\"}\n", i, i*2654435761)
			}
		}
		if m.Member == SDKName {
			data = nil
		}
		sum := sha256.Sum256(data)
		list = append(list, Source{ManifestFile: schemas.ManifestFile{Path: m.Member, SHA256: "sha256:" + hex.EncodeToString(sum[:]), Bytes: int64(len(data))}, Content: bytes.NewReader(data)})
	}
	return list
}

func write(t testing.TB, n int) (archive []byte, identity string) {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, Write(&b, "run_01", nil, sources(n)))
	id, err := Identity("run_01", nil, sources(n))
	testkit.Must(t, err)
	return b.Bytes(), id
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 50000} {
		archive, id := write(t, n)
		again, _ := write(t, n)
		if !bytes.Equal(archive, again) {
			t.Error("the same members give other bytes")
		}
		names, content, got, err := read(archive, DefaultLimits)
		if err != nil || got != id {
			t.Fatalf("identity %s, expected %s: %v", got, id, err)
		}
		for i, m := range members() {
			if names[i] != m.Member {
				t.Errorf("member %d is %s, expected %s", i, names[i], m.Member)
			}
		}
		man, err := schemas.ParseManifest(content[ManifestName])
		if err != nil || len(man.Files) != 7 || bytes.HasSuffix(content[ManifestName], []byte("\n")) {
			t.Errorf("manifest %s: %v", content[ManifestName], err)
		}
		for name, f := range man.Files {
			sum := sha256.Sum256(content[name])
			if f.SHA256 != "sha256:"+hex.EncodeToString(sum[:]) || f.Bytes != int64(len(content[name])) || f.Path != name {
				t.Errorf("manifest entry %+v", f)
			}
		}
	}
}

// TestOrderOfSources checks that the order of the given members changes nothing.
func TestOrderOfSources(t *testing.T) {
	want, _ := write(t, 100)
	list := sources(100)
	slices.Reverse(list)
	var b bytes.Buffer
	if err := Write(&b, "run_01", nil, list); err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("another order gives other bytes: %v", err)
	}
}

// TestRegularBytes: an archive of bytes that compress well is no bomb for its own reader.
func TestRegularBytes(t *testing.T) {
	const size = 300 << 20
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(zeros{}, size)); err != nil {
		t.Fatal(err)
	}
	all := func() []Source {
		return append(sources(10), Source{ManifestFile: schemas.ManifestFile{Path: schemas.MemberStdout, SHA256: schemas.DigestFrom(sum), Bytes: size}, Content: io.LimitReader(zeros{}, size)})
	}
	var b bytes.Buffer
	testkit.Must(t, Write(&b, "run_01", nil, all()))
	id, err := Identity("run_01", nil, all())
	testkit.Must(t, err)
	a, err := Open(&b, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for err == nil {
		var r io.Reader
		if _, r, err = a.Next(); err == nil {
			_, err = io.Copy(io.Discard, r)
		}
	}
	if err != io.EOF || a.Identity() != id {
		t.Errorf("%v", err)
	}
}

// zeros reads as zeros, without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestHeaderBytes(t *testing.T) {
	archive, _ := write(t, 1)
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 512)
	copy(want, ManifestName)
	copy(want[100:], "0000644\x000000000\x000000000\x00")
	copy(want[124:], fmt.Sprintf("%011o\x00", bytes.Index(b[512:], []byte{0})))
	copy(want[136:], "00000000000\x00")
	copy(want[156:], "0")
	copy(want[257:], "ustar\x0000")
	copy(want[329:], "0000000\x000000000\x00")
	copy(want[148:], fmt.Sprintf("%06o\x00 ", checksum(want)))
	if !bytes.Equal(b[:512], want) {
		t.Errorf("header\n%q, expected\n%q", b[:512], want)
	}
	if len(b)%512 != 0 || !zero(b[len(b)-1024:]) || zero(b[len(b)-1536:len(b)-1024]) {
		t.Error("the end is not exactly two zero blocks")
	}
}

func TestEveryPrefixRefused(t *testing.T) {
	archive, _ := write(t, 3)
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{archive, inner} {
		for n := range b {
			if _, _, id, err := read(b[:n], DefaultLimits); err == nil || id != "" {
				t.Fatalf("prefix of %d bytes of %d is accepted", n, len(b))
			} else {
				checkOneClass(t, err)
			}
		}
	}
}

func TestWriteRefusals(t *testing.T) {
	doc := func(name string, size int64, data string) Source {
		return Source{ManifestFile: schemas.ManifestFile{Path: name, SHA256: "sha256:", Bytes: size}, Content: strings.NewReader(data)}
	}
	for name, list := range map[string][]Source{
		"twice":        {doc("a", 1, "x"), doc("a", 1, "x")},
		"manifest":     {doc(ManifestName, 1, "x")},
		"traversal":    {doc("../a", 1, "x")},
		"too short":    {doc("a", 2, "x")},
		"too long":     {doc("a", 1, "xy")},
		"beyond USTAR": {doc("a", MaxMember+1, "x")},
	} {
		if err := Write(io.Discard, "run_01", nil, list); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSystemTar reads what we write with another implementation, and the other
// way round.
func TestSystemTar(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		testkit.Skip(t, "the archive against GNU tar", err)
	}
	archive, id := write(t, 2000)
	dir := t.TempDir()
	path := filepath.Join(dir, "run.tar.gz")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	var want strings.Builder
	for _, m := range members() {
		want.WriteString(m.Member + "\n")
	}
	if got := run(tool, "tzf", path); got != want.String() {
		t.Errorf("tar lists\n%s", got)
	}
	for line := range strings.Lines(run(tool, "tvzf", path, "--numeric-owner")) {
		if !strings.HasPrefix(line, "-rw-r--r-- 0/0 ") || !strings.Contains(line, " 1970-01-01 00:00 ") {
			t.Errorf("tar shows %s", line)
		}
	}
	_, content, _, _ := read(archive, DefaultLimits)
	if run(tool, "xOzf", path, KernelName) != string(content[KernelName]) {
		t.Error("tar unpacks another kernel layer")
	}
	if got := run("sh", "-c", "gzip -dc run.tar.gz | sha256sum"); got != id+"  -\n" {
		t.Errorf("sha256sum says %s, the identity is %s", got, id)
	}
	run(tool, "xzf", path)
	for _, format := range []string{"ustar", "gnu"} {
		args := []string{"cf", format + ".tar", "--format=" + format}
		for _, m := range members() {
			args = append(args, m.Member)
		}
		run(tool, args...)
		b, err := os.ReadFile(filepath.Join(dir, format+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		names, again, _, err := read(b, DefaultLimits)
		if err != nil || len(names) != len(members()) || !bytes.Equal(again[KernelName], content[KernelName]) {
			t.Errorf("archive repacked by tar as %s: %v %v", format, names, err)
		}
	}
}

// broken fails after n bytes.
type broken struct {
	r io.Reader
	n int
}

func (b *broken) Read(p []byte) (int, error) {
	if b.n <= 0 {
		return 0, errors.New("device is gone")
	}
	n, err := b.r.Read(p[:min(len(p), b.n)])
	b.n -= n
	return n, err
}

func TestReadFailure(t *testing.T) {
	archive, _ := write(t, 20)
	for n := range archive {
		a, err := Open(&broken{bytes.NewReader(archive), n}, DefaultLimits)
		for err == nil {
			var r io.Reader
			if _, r, err = a.Next(); err == nil {
				_, err = io.Copy(io.Discard, r)
			}
		}
		if !errors.Is(err, ErrRead) {
			t.Fatalf("input that fails after %d bytes: %v", n, err)
		}
		checkOneClass(t, err)
		if a != nil {
			a.Close()
		}
	}
}

func TestCloseEarly(t *testing.T) {
	archive, _ := write(t, 200000)
	a, err := Open(bytes.NewReader(archive), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Next(); err != nil {
		t.Fatal(err)
	}
	a.Close()
	a.Close()
}

func TestLimits(t *testing.T) {
	archive, _ := write(t, 20000)
	for name, change := range map[string]func(l *Limits){
		"total":   func(l *Limits) { l.Total = 100000 },
		"member":  func(l *Limits) { l.Member = 1000 },
		"members": func(l *Limits) { l.Members = 7 },
		"ratio":   func(l *Limits) { l.Ratio, l.Free = 1, 1000 },
	} {
		lim := DefaultLimits
		change(&lim)
		if _, _, _, err := read(archive, lim); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	archive, _ := write(b, 2000000)
	var size int64
	for b.Loop() {
		a, err := Open(bytes.NewReader(archive), DefaultLimits)
		if err != nil {
			b.Fatal(err)
		}
		size = 0
		for {
			_, r, err := a.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n, _ := io.Copy(io.Discard, r)
			size += n
		}
		a.Close()
	}
	b.SetBytes(size)
}

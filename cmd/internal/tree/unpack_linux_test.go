package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestUnpack compares what is unpacked with what GNU tar makes of the same tar.
func TestUnpack(t *testing.T) {
	for seed := range uint64(8) {
		from, theirs, ours := t.TempDir(), t.TempDir(), t.TempDir()
		grow(t, from, rand.New(rand.NewPCG(seed, 3)))
		testkit.Must(t, os.Mkdir(from+"/closed", 0o500))
		form := []string{"gnu", "pax", "posix", "oldgnu"}[seed%4]
		packed, err := exec.Command("tar", "--format="+form, "-C", from, "-cf", "-", ".").Output()
		testkit.Must(t, err)
		c := exec.Command("tar", "-C", theirs, "-xpf", "-")
		c.Stdin = bytes.NewReader(packed)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("tar: %v %s", err, out)
		}
		testkit.Must(t, Unpack(bytes.NewReader(packed), ours, 1<<20, nil))
		a, err := Scan(theirs, Options{})
		testkit.Must(t, err)
		b, err := Scan(ours, Options{})
		testkit.Must(t, err)
		if d := Diff(a, b); len(d) > 0 || len(a) == 0 {
			t.Errorf("seed %d, %s: %d names, %d differ, the first: %+v %+v", seed, form, len(a), len(d), d[0].Before, d[0].After)
		}
		for _, e := range b {
			if e.Kind == File {
				one, _ := os.Stat(filepath.Join(theirs, e.Path))
				two, _ := os.Stat(filepath.Join(ours, e.Path))
				if one.ModTime().Unix() != two.ModTime().Unix() {
					t.Errorf("%q is of %v, expected %v", e.Path, two.ModTime(), one.ModTime())
				}
			}
		}
		exec.Command("chmod", "-R", "u+w", from, theirs, ours).Run()
	}
}

type entry struct {
	name, to string
	kind     byte
	content  string
}

func packed(t testing.TB, list ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range list {
		testkit.Must(t, w.WriteHeader(&tar.Header{Name: e.name, Linkname: e.to, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o755, ModTime: time.Unix(1, 0), Uid: os.Geteuid(), Gid: os.Getegid()}))
		w.Write([]byte(e.content))
	}
	testkit.Must(t, w.Close())
	return b.Bytes()
}

// TestUnpackRefuses: tars that lead out of the tree, or say what cannot be.
func TestUnpackRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		list []entry
		want string
	}{
		"absolute":                {[]entry{{"/etc/x", "", tar.TypeReg, "x"}}, "leads out"},
		"parent":                  {[]entry{{"a/../../x", "", tar.TypeReg, "x"}}, "leads out"},
		"parent at the end":       {[]entry{{"a/..", "", tar.TypeDir, ""}}, "leads out"},
		"below a link":            {[]entry{{"l", "/tmp", tar.TypeSymlink, ""}, {"l/x", "", tar.TypeReg, "x"}}, "leads out"},
		"below a link to here":    {[]entry{{"d", "", tar.TypeDir, ""}, {"l", "d", tar.TypeSymlink, ""}, {"l/x", "", tar.TypeReg, "x"}}, "leads out"},
		"below a file":            {[]entry{{"f", "", tar.TypeReg, "x"}, {"f/x", "", tar.TypeReg, "x"}}, "leads out"},
		"over a link":             {[]entry{{"l", "/tmp/x", tar.TypeSymlink, ""}, {"l", "", tar.TypeReg, "x"}}, "there already"},
		"a directory is there":    {[]entry{{"d", "", tar.TypeDir, ""}, {"d", "", tar.TypeReg, "x"}}, "there already"},
		"a link over it":          {[]entry{{"f", "", tar.TypeReg, "x"}, {"f", "/tmp", tar.TypeSymlink, ""}}, "there already"},
		"a directory over a link": {[]entry{{"l", "/tmp", tar.TypeSymlink, ""}, {"l", "", tar.TypeDir, ""}}, "there already"},
		"hard link out":           {[]entry{{"x", "/etc/passwd", tar.TypeLink, ""}}, "leads out"},
		"hard link up":            {[]entry{{"x", "../secret", tar.TypeLink, ""}}, "leads out"},
		"hard link over a link":   {[]entry{{"l", "..", tar.TypeSymlink, ""}, {"x", "l/secret", tar.TypeLink, ""}}, "link to"},
		"hard link to nothing":    {[]entry{{"x", "y", tar.TypeLink, ""}}, "no such file"},
		"a device":                {[]entry{{"x", "", tar.TypeChar, ""}}, "devices"},
		"too much":                {[]entry{{"x", "", tar.TypeReg, strings.Repeat("x", 101)}}, "more bytes"},
		"too much together":       {[]entry{{"x", "", tar.TypeReg, strings.Repeat("x", 60)}, {"y", "", tar.TypeReg, strings.Repeat("x", 60)}}, "more bytes"},
		"the root as a file":      {[]entry{{".", "", tar.TypeReg, ""}}, "leads out"},
	} {
		dir := t.TempDir()
		testkit.Must(t, os.WriteFile(dir+"/secret", []byte("s"), 0o600))
		testkit.Must(t, os.Mkdir(dir+"/in", 0o755))
		err := Unpack(bytes.NewReader(packed(t, x.list...)), dir+"/in", 100, nil)
		if err == nil || !strings.Contains(err.Error(), x.want) || Broken(err) {
			t.Errorf("%s: %v, expected %q", name, err, x.want)
		}
	}
	whole := packed(t, entry{"f", "", tar.TypeReg, "content"})
	for _, n := range []int{0, 1, 511, 512, 513, 519, 520, 1023, 1024, 1535, 1536, 2047} {
		if err := Unpack(bytes.NewReader(whole[:n]), t.TempDir(), 100, nil); err == nil || !Broken(err) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// TestUnpackEnd: what follows the end is looked at, so that a damaged check sum of a compressed tar is noticed.
func TestUnpackEnd(t *testing.T) {
	whole := packed(t, entry{"f", "", tar.TypeReg, "content"})
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(whole)
	testkit.Must(t, w.Close())
	damaged := bytes.Clone(z.Bytes())
	damaged[len(damaged)-5] ^= 1 // of its check sum
	for name, x := range map[string]struct {
		tar  []byte
		want string
	}{
		"whole": {z.Bytes(), ""}, "filled up": {append(bytes.Clone(whole), make([]byte, 20<<10)...), ""},
		"checksum": {damaged, "checksum"}, "cut": {z.Bytes()[:z.Len()-4], "EOF"}, "more": {append(bytes.Clone(whole), 0, 1), "follows"}, "zeros": {append(bytes.Clone(whole), make([]byte, maxRest+1)...), "follow"},
	} {
		r, err := Decompress(bytes.NewReader(x.tar))
		testkit.Must(t, err)
		if err := Unpack(r, t.TempDir(), 100, nil); (err == nil) != (x.want == "") || err != nil && (!strings.Contains(err.Error(), x.want) || !Broken(err)) {
			t.Errorf("%s: %v, expected %q", name, err, x.want)
		}
	}
}

// FuzzUnpack: no tar changes anything outside of the tree, and what was unpacked can be read.
func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, entry{"d/", "", tar.TypeDir, ""}, entry{"d/f", "", tar.TypeReg, "x"}, entry{"l", "d/f", tar.TypeSymlink, ""}, entry{"h", "d/f", tar.TypeLink, ""}, entry{"p", "", tar.TypeFifo, ""}))
	f.Add(packed(f, entry{"l", "../../out", tar.TypeSymlink, ""}, entry{"l/x", "", tar.TypeReg, "x"}))
	f.Add(packed(f, entry{"x", "../out", tar.TypeLink, ""}))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir, err := os.MkdirTemp("", "fuzz-")
		testkit.Must(t, err)
		defer os.RemoveAll(dir)
		testkit.Must(t, os.WriteFile(dir+"/out", []byte("s"), 0o600))
		testkit.Must(t, os.MkdirAll(dir+"/above/in", 0o755))
		before, err := Scan(dir, Options{})
		testkit.Must(t, err)
		Unpack(bytes.NewReader(b), dir+"/above/in", 1<<16, nil)
		after, err := Scan(dir, Options{})
		testkit.Must(t, err)
		after = slices.DeleteFunc(after, func(e Entry) bool { return strings.HasPrefix(e.Path, "above/in/") })
		if d := Diff(before, after); len(d) > 0 {
			t.Fatalf("%+v", d[0])
		}
		filepath.WalkDir(dir, func(name string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				os.Chmod(name, 0o700) // so that it can be removed
			}
			return nil
		})
	})
}

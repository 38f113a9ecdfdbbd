package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const vectorDir = "../../testdata/vectors/bundle"

// classes are the error classes by the names that vectors use.
var classes = map[string]error{
	"not_archive": ErrNotArchive, "truncated": ErrTruncated, "corrupt": ErrCorrupt, "hostile": ErrHostile,
	"order": ErrOrder, "limit": ErrLimit, "trailing": ErrTrailing, "ok": nil,
}

// file is one member of a vector, before it is damaged.
type file struct{ name, data string }

var plain = []file{
	{ManifestName, `{"schema":"assay.runner.archive_manifest.v0","run_id":"run_01","files":{}}`},
	{EventsName, "{}\n"},
	{SDKName, ""},
	{HealthName, "{}"},
}

// pack writes a tar whose headers fix may change before their checksum is set.
func pack(files []file, fix func(i int, h []byte)) []byte {
	var b []byte
	for i, f := range files {
		h := header(f.name, int64(len(f.data)))
		if fix != nil {
			fix(i, h)
		}
		seal(h)
		b = append(append(b, h...), f.data...)
		b = append(b, make([]byte, -len(f.data)&511)...)
	}
	return append(b, make([]byte, 1024)...)
}

func header(name string, size int64) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "x", Size: size, Mode: 0o644, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}); err != nil {
		panic(err)
	}
	h := b.Bytes()[:512]
	copy(h[:100], make([]byte, 100))
	copy(h[:100], name)
	return h
}

func seal(h []byte) { copy(h[148:], fmt.Sprintf("%06o\x00 ", checksum(h))) }

func zip(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// on changes the header of one member.
func on(n int, change func(h []byte)) func(int, []byte) {
	return func(i int, h []byte) {
		if i == n {
			change(h)
		}
	}
}

func set(at int, text string) func(h []byte) { return func(h []byte) { copy(h[at:], text) } }

func withType(t byte) []byte { return pack(plain, on(1, func(h []byte) { h[156] = t })) }

func renamed(n int, name string) []byte {
	files := append([]file(nil), plain...)
	files[n].name = name
	return pack(files, nil)
}

// vectors are archives with one fault each. Their names say what is refused.
func vectors() map[string]struct {
	class string
	data  []byte
} {
	type v = struct {
		class string
		data  []byte
	}
	good := pack(plain, nil)
	gz := zip(good)
	cut := func(b []byte, n int) []byte { return bytes.Clone(b[:len(b)-n]) }
	edit := func(b []byte, at int, c byte) []byte { b = bytes.Clone(b); b[at] ^= c; return b }
	gnu := pack(plain, func(_ int, h []byte) {
		copy(h[257:], "ustar  \x00")
		copy(h[265:], "assay")
		copy(h[297:], "assay")
		h[156] = 0
		copy(h[329:], make([]byte, 16))
	})
	for i := 0; i+512 <= len(gnu)-1024; i += 512 {
		if bytes.HasPrefix(gnu[i+257:], magicGNU) {
			copy(gnu[i+148:], fmt.Sprintf("%07o\x00", checksum(gnu[i:i+512])))
		}
	}
	big := append(pack(plain, on(3, set(124, "77777777777\x00")))[:len(good)-1024-512], 0)
	bomb := append([]file(nil), plain...)
	bomb[1].data = strings.Repeat(" ", 1<<20)
	return map[string]v{
		"plain.tar":                       {"ok", good},
		"gzip.tar.gz":                     {"ok", gz},
		"gnu_magic_nul_typeflag.tar.gz":   {"ok", zip(gnu)},
		"padded_to_record.tar":            {"ok", append(bytes.Clone(good), make([]byte, 10240-len(good))...)},
		"empty":                           {"truncated", nil},
		"text":                            {"not_archive", []byte(strings.Repeat("not an archive\n", 60))},
		"short_text":                      {"not_archive", []byte("hello")},
		"zeros.tar":                       {"not_archive", make([]byte, 1024)},
		"v7_magic.tar":                    {"not_archive", pack(plain, on(0, set(257, "\x00\x00\x00\x00\x00\x00\x00\x00")))},
		"gzip_of_text.gz":                 {"not_archive", zip([]byte("hello"))},
		"gzip_bad_method.gz":              {"not_archive", edit(gz, 2, 1)},
		"no_end.tar":                      {"truncated", cut(good, 1024)},
		"one_zero_block.tar":              {"truncated", cut(good, 512)},
		"cut_in_member.tar":               {"truncated", cut(good, 1024+511)},
		"cut_in_header.tar":               {"truncated", cut(good, 1024+512+100)},
		"cut_in_padding.tar":              {"truncated", append(bytes.Clone(good), make([]byte, 512)...)},
		"cut_gzip.tar.gz":                 {"truncated", cut(gz, 9)},
		"no_gzip_footer.tar.gz":           {"truncated", cut(gz, 8)},
		"gzip_crc.tar.gz":                 {"corrupt", edit(gz, len(gz)-8, 1)},
		"gzip_length.tar.gz":              {"corrupt", edit(gz, len(gz)-4, 1)},
		"header_checksum.tar":             {"corrupt", edit(good, 0, 1)},
		"second_header_checksum.tar":      {"corrupt", edit(good, 1024, 1)},
		"dotdot.tar":                      {"hostile", renamed(1, "../events.ndjson")},
		"dotdot_inside.tar":               {"hostile", renamed(1, "events/../../x")},
		"dot.tar":                         {"hostile", renamed(1, "./events.ndjson")},
		"absolute.tar":                    {"hostile", renamed(1, "/etc/passwd")},
		"empty_name.tar":                  {"hostile", renamed(1, "")},
		"double_slash.tar":                {"hostile", renamed(1, "layers//x")},
		"backslash.tar":                   {"hostile", renamed(1, `layers\x`)},
		"control_in_name.tar":             {"hostile", renamed(1, "events\x1b[2J")},
		"bytes_behind_name.tar":           {"hostile", renamed(1, "events.ndjson\x00hidden")},
		"name_prefix.tar":                 {"hostile", pack(plain, on(1, set(345, "layers")))},
		"link_name.tar":                   {"hostile", pack(plain, on(1, set(157, "/etc/passwd")))},
		"hard_link.tar":                   {"hostile", withType('1')},
		"symlink.tar":                     {"hostile", withType('2')},
		"char_device.tar":                 {"hostile", withType('3')},
		"block_device.tar":                {"hostile", withType('4')},
		"directory.tar":                   {"hostile", withType('5')},
		"fifo.tar":                        {"hostile", withType('6')},
		"contiguous.tar":                  {"hostile", withType('7')},
		"gnu_long_name.tar":               {"hostile", withType('L')},
		"gnu_long_link.tar":               {"hostile", withType('K')},
		"gnu_sparse.tar":                  {"hostile", withType('S')},
		"pax.tar":                         {"hostile", withType('x')},
		"pax_global.tar":                  {"hostile", withType('g')},
		"base256_size.tar":                {"hostile", pack(plain, on(1, set(124, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03")))},
		"bad_mode.tar":                    {"hostile", pack(plain, on(1, set(100, "0000688\x00")))},
		"hidden_in_member_padding.tar":    {"hostile", edit(good, 1024-1, 'x')},
		"owner_not_ascii.tar":             {"hostile", pack(plain, on(1, set(265, "\xff")))},
		"manifest_second.tar":             {"order", pack([]file{plain[1], plain[0]}, nil)},
		"manifest_twice.tar":              {"order", pack([]file{plain[0], plain[1], plain[0]}, nil)},
		"no_manifest.tar":                 {"order", pack(plain[1:], nil)},
		"unsorted.tar":                    {"order", pack([]file{plain[0], plain[2], plain[1], plain[3]}, nil)},
		"duplicate.tar":                   {"order", pack([]file{plain[0], plain[1], plain[1]}, nil)},
		"declared_size_beyond_limit.tar":  {"limit", big},
		"bomb.tar.gz":                     {"limit", zip(pack(bomb, nil))},
		"second_gzip_member.tar.gz":       {"trailing", append(bytes.Clone(gz), zip(nil)...)},
		"bytes_behind_gzip.tar.gz":        {"trailing", append(bytes.Clone(gz), 0)},
		"bytes_behind_tar.tar":            {"trailing", append(bytes.Clone(good), 'x')},
		"bytes_behind_tar_in_gzip.tar.gz": {"trailing", zip(append(bytes.Clone(good), 'x'))},
		"second_tar.tar":                  {"trailing", append(bytes.Clone(good), good...)},
		"one_zero_block_then_member.tar":  {"trailing", append(append(bytes.Clone(good[:len(good)-1024]), make([]byte, 512)...), good...)},
		"zeros_beyond_record.tar":         {"trailing", append(bytes.Clone(good), make([]byte, 10240-len(good)+512)...)},
	}
}

// small are limits for the vectors only: a vector can exceed them with few bytes.
var small = Limits{Total: 8 << 20, Member: 4 << 20, Members: 16, Ratio: 500, Free: 1 << 18}

func TestVectors(t *testing.T) {
	want := vectors()
	if testkit.Update() {
		if err := os.MkdirAll(vectorDir, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if err := os.WriteFile(filepath.Join(vectorDir, v.class+"."+name), v.data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := os.ReadDir(vectorDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(want) {
		t.Errorf("%d vectors in %s, expected %d", len(list), vectorDir, len(want))
	}
	for _, f := range list {
		t.Run(f.Name(), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(vectorDir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			class, name, _ := strings.Cut(f.Name(), ".")
			if v := want[name]; v.class != class || !strings.HasSuffix(name, ".gz") && !bytes.Equal(v.data, b) {
				t.Error("not what the generator makes; run: go test ./schemas/bundle -update")
			}
			_, _, id, err := read(b, small)
			expect, known := classes[class]
			switch {
			case !known:
				t.Fatalf("unknown class %q", class)
			case expect == nil && (err != nil || id == ""):
				t.Errorf("refused: %v", err)
			case expect != nil && !errors.Is(err, expect):
				t.Errorf("got %v, expected %v", err, expect)
			}
			if expect != nil {
				checkOneClass(t, err)
				if id != "" {
					t.Error("an identity in spite of an error")
				}
			}
		})
	}
}

// checkOneClass checks that an error wraps exactly one class.
func checkOneClass(t *testing.T, err error) {
	t.Helper()
	n := 0
	for _, c := range classes {
		if c != nil && errors.Is(err, c) {
			n++
		}
	}
	if errors.Is(err, ErrRead) {
		n++
	}
	if n != 1 {
		t.Errorf("error of %d classes: %v", n, err)
	}
}

// FuzzReader checks that nothing crashes, that every error has a class, and that
// what is accepted has one meaning for other readers as well.
func FuzzReader(f *testing.F) {
	for _, v := range vectors() {
		if len(v.data) < 1<<16 {
			f.Add(v.data)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		names, content, id, err := read(b, small)
		if err != nil {
			checkOneClass(t, err)
			return
		}
		if len(id) != 64 {
			t.Errorf("identity %q", id)
		}
		var r io.Reader = bytes.NewReader(b)
		if bytes.HasPrefix(b, gzipMagic) {
			if r, err = gzip.NewReader(r); err != nil {
				t.Fatalf("compress/gzip refuses it: %v", err)
			}
		}
		tr := tar.NewReader(r)
		for _, name := range names {
			h, err := tr.Next()
			if err != nil || h.Name != name {
				t.Fatalf("archive/tar: %v %v, expected %s", h, err, name)
			}
			if data, err := io.ReadAll(tr); err != nil || !bytes.Equal(data, content[name]) {
				t.Fatalf("archive/tar reads %s differently: %v", name, err)
			}
		}
		if h, err := tr.Next(); err != io.EOF {
			t.Fatalf("archive/tar finds one more member: %v %v", h, err)
		}
	})
}

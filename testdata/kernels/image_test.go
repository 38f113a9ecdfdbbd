package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// elfFile is this test's own program: an ELF file that is no kernel.
func elfFile(t *testing.T) []byte {
	t.Helper()
	b := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel "), 4096)...)
	return b
}

// packed compresses as a kernel's build does: all but gzip have the size at the end.
func packed(t *testing.T, form string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch form {
	case "gzip":
		w := gzip.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	case "zstd":
		w, err := zstd.NewWriter(&out)
		testkit.Must(t, err)
		w.Write(b)
		w.Close()
	default:
		if _, err := exec.LookPath(form); err != nil {
			testkit.Skip(t, "images compressed by "+form, err)
		}
		args := map[string][]string{"xz": {"-c", "--check=crc32"}, "lz4": {"-lc"}}[form]
		c := exec.Command(form, args...)
		c.Stdin, c.Stdout = bytes.NewReader(b), &out
		testkit.Must(t, c.Run())
	}
	return binary.LittleEndian.AppendUint32(out.Bytes(), uint32(len(b)))
}

// bzImage puts a payload behind the header of a bzImage.
func bzImage(payload []byte) []byte {
	const sectors, offset = 3, 0x400
	b := make([]byte, (sectors+1)*512+offset)
	b[0x1f1] = sectors
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x206:], 0x20f)
	binary.LittleEndian.PutUint32(b[0x248:], offset)
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)))
	// What comes first looks like a compressed file, and is none.
	copy(b[0x300:], "\x1f\x8b\x08\x28\xb5\x2f\xfd")
	return append(append(b, payload...), "after the payload"...)
}

func TestBootable(t *testing.T) {
	want := elfFile(t)
	for _, form := range []string{"gzip", "zstd", "xz", "lz4"} {
		t.Run(form, func(t *testing.T) {
			got, err := bootable(bzImage(packed(t, form, want)))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	plain := make([]byte, 256)
	copy(plain[0x38:], "ARMd")
	if got, err := bootable(plain); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("an arm64 image: %v", err)
	}
	body := packed(t, "gzip", plain)
	zboot := make([]byte, 128)
	copy(zboot, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(zboot[8:], 128)
	binary.LittleEndian.PutUint32(zboot[12:], uint32(len(body)))
	if got, err := bootable(append(zboot, body...)); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("an EFI image: %v", err)
	}
}

func TestBootableRefuses(t *testing.T) {
	good := bzImage(packed(t, "gzip", elfFile(t)))
	other := bzImage(packed(t, "gzip", []byte("no program")))
	old := bytes.Clone(good)
	old[0x206] = 7
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("text"), "cut": good[:len(good)-200],
		"holds no ELF file": other, "old protocol": old, "unknown compression": bzImage([]byte("zzzzzzzzzz"))} {
		if got, err := bootable(b); err == nil {
			t.Errorf("%s: accepted, %d bytes", name, len(got))
		}
	}
}

// TestKeepOnly: of an unpacked package only the image and the modules in use stay.
func TestKeepOnly(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"boot/vmlinuz-1": bzImage(packed(t, "gzip", elfFile(t))),
		"boot/config-1":  []byte("CONFIG_X=y"),
		"usr/lib/modules/1/kernel/net/sctp.ko.xz": []byte("module"),
		"usr/lib/modules/1/kernel/net/other.ko":   []byte("module"),
	} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		testkit.Write(t, filepath.Join(dir, name), b)
	}
	testkit.Must(t, keepOnly(dir))
	var got []string
	testkit.Must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	}))
	if strings.Join(got, " ") != "image modules/sctp.ko.xz" {
		t.Errorf("left: %q", got)
	}
	if err := keepOnly(t.TempDir()); err == nil {
		t.Error("a package without an image was accepted")
	}
}

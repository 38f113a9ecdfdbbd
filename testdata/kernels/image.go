package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// moduleNames are the modules that checks need, in the order in which they are loaded. A
// name may be built in or missing in one kernel or another.
var moduleNames = []string{"overlay", "vsock", "crc32c_generic", "libcrc32c", "udp_tunnel", "ip6_udp_tunnel", "sctp"}

// moduleName is a module's name from its path.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return name
}

// keepOnly reduces an unpacked kernel to its image, ready to boot, and the modules that
// are used: boot and modules/.
func keepOnly(dir string) error {
	var image string
	keep := filepath.Join(dir, "modules")
	if err := os.Mkdir(keep, 0o755); err != nil {
		return err
	}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.Type().IsRegular():
			return err
		case strings.HasPrefix(d.Name(), "vmlinuz"):
			image = p
		case strings.Contains(d.Name(), ".ko") && slices.Contains(moduleNames, moduleName(p)):
			return os.Rename(p, filepath.Join(keep, d.Name()))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if image == "" {
		return errors.New("the package has no vmlinuz")
	}
	b, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	if b, err = bootable(b); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "modules" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "image"), b, 0o644))
}

// bootable makes of a distribution's vmlinuz what QEMU boots fastest: of a bzImage the ELF
// file inside, of a compressed arm64 image the plain one.
func bootable(b []byte) ([]byte, error) {
	switch {
	case len(b) > 0x250 && string(b[0x202:0x206]) == "HdrS":
		return payload(b)
	case len(b) > 64 && string(b[4:8]) == "zimg": // an EFI program that unpacks the image
		start, size := uint64(binary.LittleEndian.Uint32(b[8:])), uint64(binary.LittleEndian.Uint32(b[12:]))
		if start+size > uint64(len(b)) {
			return nil, errors.New("the EFI image is cut")
		}
		return decompress(b[start : start+size])
	case len(b) > 64 && string(b[0x38:0x3c]) == "ARMd":
		return b, nil
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		return decompress(b)
	}
	return nil, errors.New("the kernel's image has an unknown form")
}

// payload takes the ELF file out of a bzImage. Its header says where it is (boot protocol
// 2.08).
func payload(b []byte) ([]byte, error) {
	if binary.LittleEndian.Uint16(b[0x206:]) < 0x208 {
		return nil, errors.New("the bzImage's boot protocol is too old")
	}
	sectors := uint64(b[0x1f1])
	if sectors == 0 {
		sectors = 4
	}
	start := (sectors+1)*512 + uint64(binary.LittleEndian.Uint32(b[0x248:]))
	size := uint64(binary.LittleEndian.Uint32(b[0x24c:]))
	if start+size > uint64(len(b)) || size < 8 {
		return nil, errors.New("the bzImage is cut")
	}
	out, err := decompress(b[start : start+size])
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(out, []byte(elf.ELFMAG)) {
		return nil, errors.New("the bzImage does not hold an ELF file")
	}
	return out, nil
}

// decompress unpacks what a kernel's build has compressed. All forms but gzip have the
// size after their end.
func decompress(b []byte) ([]byte, error) {
	var name string
	switch {
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		r.Multistream(false)
		return io.ReadAll(r)
	case bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")):
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if out, err := d.DecodeAll(b, nil); err == nil {
			return out, nil
		}
		return d.DecodeAll(b[:len(b)-4], nil)
	case bytes.HasPrefix(b, []byte("\xfd7zXZ\x00")):
		name = "xz"
	case bytes.HasPrefix(b, []byte("\x02\x21\x4c\x18")):
		name = "lz4"
	default:
		return nil, errors.New("unknown compression")
	}
	return filter(name, b[:len(b)-4])
}

// filter unpacks with a program of the host.
func filter(name string, b []byte) ([]byte, error) {
	c := exec.Command(name, "-dcq")
	c.Stdin = bytes.NewReader(b)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// readModule reads a module, unpacked: the guest would take long for that.
func readModule(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".xz") {
		return b, err
	}
	return filter("xz", b)
}

// withoutBTF damages the BTF of an ELF image, so that the kernel itself has none that it
// can read. No kernel package of Debian is built without BTF.
func withoutBTF(b []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	s := f.Section(".BTF")
	if s == nil || s.Offset+s.Size > uint64(len(b)) || s.Size < 24 {
		return nil, errors.New("the image has no section .BTF")
	}
	out := slices.Clone(b)
	clear(out[s.Offset : s.Offset+24]) // the header
	return out, nil
}

package bundle

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// packOne packs bytes in pieces, with a flush after each that flush says.
func packOne(t testing.TB, name string, data []byte, pieces int, flush func() bool) Source {
	var b bytes.Buffer
	p := NewPacker(&b)
	for piece := range slices.Chunk(data, max(1, len(data)/pieces)) {
		if _, err := p.Write(piece); err != nil {
			t.Fatal(err)
		}
		if flush() {
			testkit.Must(t, p.Flush())
		}
	}
	testkit.Must(t, p.Flush())
	return p.Source(name, bytes.NewReader(b.Bytes()))
}

func never() bool { return false }

// packedSources are the sources(n), packed in the same pieces every time.
func packedSources(t testing.TB, n int) (list []Source) {
	for _, s := range sources(n) {
		data, err := io.ReadAll(s.Content)
		testkit.Must(t, err)
		packed := packOne(t, s.Path, data, 7, never)
		if packed.ManifestFile != s.ManifestFile {
			t.Errorf("packed %+v, expected %+v", packed.ManifestFile, s.ManifestFile)
		}
		list = append(list, packed)
	}
	return list
}

// TestPacked: an archive of packed members is read as one of the same bytes, by this reader and by others, and has the same identity.
func TestPacked(t *testing.T) {
	for _, n := range []int{0, 1, 50000} {
		_, want := write(t, n)
		var b, again bytes.Buffer
		testkit.Must(t, Write(&b, "run_01", nil, packedSources(t, n)))
		testkit.Must(t, Write(&again, "run_01", nil, packedSources(t, n)))
		if !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("%d lines: other bytes the second time", n)
		}
		_, content, got, err := read(b.Bytes(), DefaultLimits)
		if err != nil || got != want {
			t.Errorf("%d lines: identity %s, expected %s: %v", n, got, want, err)
		}
		if id, err := Identity("run_01", nil, packedSources(t, n)); err != nil || id != want {
			t.Errorf("%d lines: identity without an archive %s, %v", n, id, err)
		}
		for _, s := range sources(n) {
			if b, _ := io.ReadAll(s.Content); !bytes.Equal(b, content[s.Path]) {
				t.Errorf("%s has changed", s.Path)
			}
		}
	}
}

// TestPackedRandom: members of all kinds of bytes, flushed anywhere.
func TestPackedRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		data := make([]byte, r.IntN(300_000)*r.IntN(2)+r.IntN(3))
		for i := range data {
			data[i] = byte(r.IntN(1 + i%255))
		}
		flush := func() bool { return r.IntN(3) == 0 }
		var b bytes.Buffer
		testkit.Must(t, Write(&b, "run_01", nil, []Source{packOne(t, "a", data, 1+r.IntN(20), flush), packOne(t, "b", data, 1+r.IntN(20), flush)}))
		_, content, _, err := read(b.Bytes(), DefaultLimits)
		if err != nil || !bytes.Equal(content["a"], data) || !bytes.Equal(content["b"], data) {
			t.Fatalf("%d: %d bytes: %v", i, len(data), err)
		}
		// What is read while it is written is what was written so far.
		s := packOne(t, "a", data, 3, flush)
		if got, err := io.ReadAll(s.Content); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d: read again: %d bytes of %d, %v", i, len(got), len(data), err)
		}
	}
}

// TestPackedCut: compressed bytes that are lost are noticed, if bytes of the member are lost with them.
func TestPackedCut(t *testing.T) {
	var b bytes.Buffer
	p := NewPacker(&b)
	const whole = "1099511627776"
	io.WriteString(p, whole)
	testkit.Must(t, p.Flush())
	for n := range b.Len() {
		cut := p.Source("a", bytes.NewReader(b.Bytes()[:n]))
		if got, err := io.ReadAll(cut.Content); err == nil && string(got) != whole {
			t.Errorf("%d bytes of %d: reads %q", n, b.Len(), got)
		}
	}
}

// TestPackedDense: members that are packed already do not make an archive that its reader takes for a bomb.
func TestPackedDense(t *testing.T) {
	out := packOne(t, schemas.MemberStdout, make([]byte, 300<<20), 1000, never)
	var b bytes.Buffer
	testkit.Must(t, Write(&b, "run_01", nil, append(packedSources(t, 10), out)))
	if _, _, _, err := read(b.Bytes(), DefaultLimits); err != nil {
		t.Error(err)
	}
}

func TestJoinCRC(t *testing.T) {
	data := make([]byte, 70_000)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	for _, cut := range []int{0, 1, 2, 3, 255, 256, 4097, 65_536, len(data)} {
		a, b := crc32.ChecksumIEEE(data[:cut]), crc32.ChecksumIEEE(data[cut:])
		if got := joinCRC(a, b, int64(len(data)-cut)); got != crc32.ChecksumIEEE(data) {
			t.Errorf("cut at %d: %08x", cut, got)
		}
	}
	mega, joined, whole := make([]byte, 1<<20), uint32(0), uint32(0)
	for range 70 {
		joined, whole = joinCRC(joined, crc32.ChecksumIEEE(mega), 1<<20), crc32.Update(whole, crc32.IEEETable, mega)
	}
	if joined != whole {
		t.Errorf("70 parts: %08x, expected %08x", joined, whole)
	}
}

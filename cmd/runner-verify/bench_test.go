package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"io"
	"sync"
	"testing"
)

var benchArchive = sync.OnceValue(func() []byte {
	var t testing.B
	return zipped(&t, large(300_000, 20_000).digest(&t).tar(&t), gzip.BestSpeed)
})

// BenchmarkVerify measures the whole check, in uncompressed bytes. Compare it
// with BenchmarkUnpackAndHash, which is what `gzip -dc | sha256sum` does.
func BenchmarkVerify(b *testing.B) {
	in := benchArchive()
	b.SetBytes(unpackedSize(b, in))
	b.ReportAllocs()
	for b.Loop() {
		v := newVerifier()
		if err := v.verify(context.Background(), bytes.NewReader(in)); err != nil || v.total > 0 {
			b.Fatal(err, v.list)
		}
		v.close()
	}
}

func BenchmarkUnpackAndHash(b *testing.B) {
	in := benchArchive()
	b.SetBytes(unpackedSize(b, in))
	for b.Loop() {
		z, err := gzip.NewReader(bytes.NewReader(in))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(sha256.New(), z); err != nil {
			b.Fatal(err)
		}
	}
}

func unpackedSize(b *testing.B, in []byte) int64 {
	z, err := gzip.NewReader(bytes.NewReader(in))
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, z)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

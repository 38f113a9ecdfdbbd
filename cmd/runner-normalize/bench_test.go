package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// typical is n opens as a build does them, by a few processes that take turns.
func typical(n int) []schemas.RawEvent {
	var r raw
	for p := range uint32(8) {
		r.add(1000, 1000, "fork", child(1001+p, 1001+p))
	}
	for i := len(r.events); i < n; i++ {
		pid := uint32(1001 + i/7%8)
		name := fmt.Sprintf("/home/user/src/project/module_%d/internal/package_%d/source_file_%d.go", i%13, i%97, i)
		switch i % 10 {
		case 0:
			r.add(pid, pid, "openat", user("/home/user/src/project", fmt.Sprintf("module_%d/missing.go", i%100)), flags(0o2000000), ret(-2))
		case 1:
			r.add(pid, pid, "openat", user("", "libc.so.6"), opened("/usr/lib/x86_64-linux-gnu/libc.so.6"))
		default:
			r.add(pid, pid, "openat", user("/home/user/src/project", name[23:]), opened(name))
		}
	}
	return r.events
}

func BenchmarkNormalize(b *testing.B) {
	const n = 400_000
	in := rawStream(b, typical(n), nil)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.SetBytes(int64(len(in)))
	b.ReportMetric(float64(len(in))/n, "B/event")
	b.ResetTimer()
	for range b.N {
		if code := app().Call(context.Background(), bytes.NewReader(in), io.Discard, io.Discard, nil); code != 0 {
			b.Fatal("exit", code)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

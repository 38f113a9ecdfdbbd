package main

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// BenchmarkCalls joins lines of a busy tool server with a thousand calls, and the
// same lines without calls.
func BenchmarkCalls(b *testing.B) {
	const lines = 200_000
	var kernel bytes.Buffer
	busyAgent(b, &kernel, lines)
	policy, sdk := manyCalls(b, lines, 1000)
	for name, args := range map[string][]string{"1000 calls": logArgs(b, policy, sdk), "no logs": nil} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(kernel.Len()))
			for b.Loop() {
				if code := app().Call(context.Background(), bytes.NewReader(kernel.Bytes()), io.Discard, io.Discard, args); code != 0 {
					b.Fatal("exit", code)
				}
			}
			b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

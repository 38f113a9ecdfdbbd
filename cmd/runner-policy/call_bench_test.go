//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkCall makes tool calls one after the other, with and without the proxy between
// the same client and server.
func BenchmarkCall(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(map[bool]string{false: "direct", true: "proxy"}[through], func(b *testing.B) {
			benchmarkCall(b, through)
		})
	}
}

func benchmarkCall(b *testing.B, through bool) {
	dir := b.TempDir()
	if err := os.WriteFile(dir+"/policy.yaml", []byte(readOnly), 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "RUNNER_POLICY_TEST_AS=server")
	if through {
		c = exec.Command(os.Args[0], "--policy", dir+"/policy.yaml", "--log", dir+"/log", "--", os.Args[0])
		c.Env = append(os.Environ(), "RUNNER_POLICY_TEST_AS=proxy")
	}
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReaderSize(out, 1<<20)
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		start := time.Now()
		io.WriteString(in, callLine(strconv.Itoa(n), "read_x", `{"path":"/work/a/file"}`)+"\n")
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	in.Close()
	c.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
}

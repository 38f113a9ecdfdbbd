//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestTimes: with --times the raw stream says when the run started and ended, and a
// collected log when each line was read; without it, neither.
func TestTimes(t *testing.T) {
	for _, times := range []bool{false, true} {
		args, pause := []string{"--no-kernel", "--stream", "raw", "--policy-log", "log"}, "0"
		if times {
			args, pause = append(args, "--times"), "1" // longer than a busy machine lets a stage wait
		}
		r := call(t, append(args, "--", "sh", "-c", "echo 1 >>$"+schemas.EnvPolicyLog+"; sleep "+pause+"; printf 2 >>$"+schemas.EnvPolicyLog)...)
		if r.code != 0 {
			t.Fatal(r)
		}
		raw := text(t, filepath.Join(r.dir, "raw"))
		at := strings.Index(raw, `"run_clock":"`)
		if (at >= 0) != times {
			t.Fatalf("with times %v the stream is\n%s", times, raw)
		}
		log := text(t, filepath.Join(r.dir, "log"))
		var read []uint64
		for line := range strings.Lines(log) {
			if l, err := schemas.ParseLogLine([]byte(strings.TrimSuffix(line, "\n"))); err == nil {
				read = append(read, l.ReceivedNS)
			}
		}
		if len(read) != 2 {
			t.Fatalf("%d lines in\n%s", len(read), log)
		}
		if !times {
			if read[0] != 0 || read[1] != 0 {
				t.Errorf("times without --times: %v", read)
			}
			continue
		}
		fact, _, _ := strings.Cut(raw[at+len(`"run_clock":"`):], `"`)
		span, err := schemas.ParseRunSpan(fact)
		if err != nil {
			t.Fatal(err)
		}
		end := span.MonotonicNS + span.FinishedNS
		if read[0] < span.MonotonicNS || read[1] < read[0]+40e6 || read[1] < span.MonotonicNS+1e9 || read[1] > end+1e9 || span.FinishedNS < 1e9 {
			t.Errorf("run from %d to %d, lines read at %v", span.MonotonicNS, end, read)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

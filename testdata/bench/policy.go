//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

// benchPolicy has rules of the kinds that calls usually meet before one allows them.
const benchPolicy = `schema: runner.policy.v0
default: deny
rules:
  - id: no-secrets
    deny: "*"
    args:
      - at: $.path
        under: [/etc, /root/.ssh]
  - id: no-writes
    deny: [write_*, delete_*]
  - id: read-work
    allow: [read_*, big]
    args:
      - at: $.path
        under: %s
`

// policy measures what runner-policy adds to a tool call and how fast large results pass.
// It compares call by call with the same client and server without it.
func (b *bench) policy() error {
	work := filepath.Join(b.dir, "work", "some", "where")
	file := filepath.Join(work, "file.txt")
	rules := filepath.Join(b.dir, "policy.yaml")
	err := errors.Join(os.MkdirAll(work, 0o755), os.WriteFile(file, []byte("text\n"), 0o644),
		os.WriteFile(rules, fmt.Appendf(nil, benchPolicy, filepath.Join(b.dir, "work")), 0o644))
	if err != nil {
		return err
	}
	server := []string{b.self, workloadArg, "mcp-server"}
	proxy := func(log string) []string {
		return append([]string{b.tool("runner-policy"), "--policy", rules, "--log", filepath.Join(b.dir, log), "--"}, server...)
	}
	if err := b.policyLatency(file, server, proxy("latency.ndjson"), filepath.Join(b.dir, "latency.ndjson")); err != nil {
		return err
	}
	return b.policyThroughput(file, server, proxy("throughput.ndjson"))
}

func (b *bench) policyLatency(file string, server, proxy []string, log string) error {
	plain, err := b.startMCP(server...)
	if err != nil {
		return err
	}
	defer plain.stop()
	measured, err := b.startMCP(proxy...)
	if err != nil {
		return err
	}
	defer measured.stop()
	n := 10_000
	if b.short {
		n = 2_000
	}
	const warm = 200
	one := func(c *mcpClient, into *[]float64) error {
		begin := time.Now()
		_, err := c.call("read_file", file, nil)
		*into = append(*into, time.Since(begin).Seconds())
		return err
	}
	var s series
	err = interleave(n+warm, func() error { return one(plain, &s.plain) }, func() error { return one(measured, &s.measured) })
	if err != nil {
		return err
	}
	if err := measured.stop(); err != nil {
		return fmt.Errorf("runner-policy: %w\n%s", err, clip(measured.err.String()))
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	decided := 0
	for line := range bytes.Lines(text) { // requests that are no calls are decided too
		if bytes.Contains(line, []byte(`"`+schemas.LogDecision+`"`)) && bytes.Contains(line, []byte(`"decision":"`+schemas.DecisionAllow+`"`)) {
			decided++
		}
	}
	s.plain, s.measured = s.plain[warm:], s.measured[warm:]
	added := s.differences()
	whole := decided == n+warm
	note := fmt.Sprintf("%s calls of each, in turns; each decision written before its call is forwarded", thousands(int64(n)))
	if !whole {
		note = fmt.Sprintf("%d of %d decisions in the log", decided, n+warm)
	}
	l := limit{bound: 150e-6, text: "<= 150µs"}
	m := median(added)
	b.table.add(row{what: "runner-policy, added per tool call", plain: micro(median(s.plain)), measured: micro(median(s.measured)),
		ratio: "+" + micro(m), spread: micro(percentile(added, 0.25)) + ".." + micro(percentile(added, 0.75)), target: l.text, verdict: l.verdict(m, whole), note: note + "; spread: quartiles"})
	b.table.add(row{what: "  of the slowest, p99", plain: micro(percentile(s.plain, 0.99)), measured: micro(percentile(s.measured, 0.99)),
		ratio: "+" + micro(percentile(s.measured, 0.99)-percentile(s.plain, 0.99)), note: "difference of the two p99"})
	return nil
}

// cpuOf is the CPU time that a process itself has used, in seconds.
func cpuOf(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	const ticks = 100 // per second: the kernel reports in this unit on every build
	return float64(user+system) / ticks
}

// micro writes seconds as microseconds.
func micro(s float64) string { return fmt.Sprintf("%.0fµs", s*1e6) }

func (b *bench) policyThroughput(file string, server, proxy []string) error {
	plain, err := b.startMCP(server...)
	if err != nil {
		return err
	}
	defer plain.stop()
	measured, err := b.startMCP(proxy...)
	if err != nil {
		return err
	}
	defer measured.stop()
	// One call that is not measured: the server makes its answer, and both sides must agree.
	var sums [2][]byte
	for i, c := range []*mcpClient{plain, measured} {
		h := sha256.New()
		if _, err := c.call("big", file, func(p []byte) { h.Write(p) }); err != nil {
			return err
		}
		sums[i] = h.Sum(nil)
	}
	same := bytes.Equal(sums[0], sums[1])
	one := func(c *mcpClient, into *[]float64) error {
		begin := time.Now()
		n, err := c.call("big", file, nil)
		*into = append(*into, float64(n)/1e6/time.Since(begin).Seconds())
		if err == nil && n < bigText {
			err = fmt.Errorf("the answer has %d bytes, expected more than %d", n, bigText)
		}
		return err
	}
	var s series
	n := b.n(10, 5)
	busy := cpuOf(measured.cmd.Process.Pid)
	err = interleave(n, func() error { return one(plain, &s.plain) }, func() error { return one(measured, &s.measured) })
	if err != nil {
		return err
	}
	busy = cpuOf(measured.cmd.Process.Pid) - busy
	name, rss := highWater(measured.cmd.Process.Pid)
	if err := measured.stop(); err != nil {
		return fmt.Errorf("runner-policy: %w\n%s", err, clip(measured.err.String()))
	}
	note := fmt.Sprintf("%d results of each, in turns; the same bytes with and without it; %.0f MB in a second of the proxy's CPU", n, float64(n)*bigText/1e6/busy)
	if !same {
		note = "the bytes differ with and without it"
	}
	l := limit{bound: 500, atLeast: true, text: ">= 500 MB/s"}
	rate, r := median(s.measured), s.ratios()
	b.table.add(row{what: "runner-policy, results of 50 MB", plain: fmt.Sprintf("%.0f MB/s", median(s.plain)), measured: fmt.Sprintf("%.0f MB/s", rate),
		ratio: times(median(r)), spread: span(r, "%.2f"), target: l.text, verdict: l.verdict(rate, same), note: note})
	l = limit{bound: memoryLimit, text: "< 64 MiB"}
	b.table.add(row{what: "  RSS of " + name, measured: fmt.Sprintf("%.1f MiB", float64(rss)/(1<<20)),
		target: l.text, verdict: l.verdict(float64(rss+1), rss > 0), note: "its largest resident set, VmHWM, after these results"})
	return nil
}

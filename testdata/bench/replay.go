//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// answerTime is how long the server of a recorded run takes: a fast model of a language takes longer.
const answerTime = 50 * time.Millisecond

// replay compares a recorded run, and what runner-replay takes to run it again and to compare: 20 requests that are answered after
// 50 ms each, in a box.
func (b *bench) replay() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(answerTime)
		io.WriteString(w, "answer")
	})}
	go server.Serve(l)
	defer server.Close()
	base, rules := filepath.Join(b.dir, "replay-base"), filepath.Join(b.dir, "replay-allow.yaml")
	program, err := os.ReadFile(b.self)
	if err == nil {
		err = os.Mkdir(base, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(base, "program"), program, 0o755)
	}
	if err == nil {
		err = os.WriteFile(rules, []byte("schema: runner.net_allow.v0\nrules: [{host: bench.test}]\n"), 0o644)
	}
	if err != nil {
		return err
	}
	var wall series
	for i := range b.n(7, 3) {
		archive := filepath.Join(b.dir, "replay"+strconv.Itoa(i)+".tar.gz")
		recorded, err := b.execute(nil, b.tool("runner-exec"), "-q", "--replayable", "--archive", archive, "--", b.tool("runner-net"), "record", "--allow", rules, "--upstream", "bench.test:80="+l.Addr().String(), "--",
			b.tool("runner-box"), "--base", base, "--", "sh", "-c", "./program "+workloadArg+" get 20 http://bench.test/ >/dev/null")
		if err != nil {
			return err
		}
		again, err := b.execute(nil, b.tool("runner-replay"), archive)
		if err != nil {
			return err
		}
		wall.add(recorded.wall, again.wall)
	}
	ratio := median(wall.ratios())
	bound := limit{bound: 1, text: "<= 1.00"}
	b.table.add(row{what: "runner-replay, of a run with 20 requests of 50 ms", plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)), ratio: times(ratio), spread: span(wall.ratios(), "%.2f"), target: bound.text, verdict: bound.verdict(ratio, true)})
	return nil
}

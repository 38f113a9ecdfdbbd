//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// large is the body that is passed through runner-net, in bytes.
const large = 512 << 20

// box measures what runner-box adds to a program that does nothing: the box, and its record.
func (b *bench) box() error {
	base := filepath.Join(b.dir, "base")
	if err := os.Mkdir(base, 0o755); err != nil {
		return err
	}
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(base, strconv.Itoa(i)), make([]byte, 4<<10), 0o644); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		what   string
		record bool
	}{{"runner-box -- true", false}, {"runner-box, a base of 100 files, and its record", true}} {
		var wall series
		for i := range b.n(21, 9) {
			plain, err := b.execute(nil, "/bin/true")
			if err != nil {
				return err
			}
			args := []string{b.tool("runner-box")}
			if x.record {
				args = append(args, "--base", base, "-o", filepath.Join(b.dir, "box"+strconv.Itoa(i)))
			}
			measured, err := b.execute(nil, append(args, "--", "/bin/true")...)
			if err != nil {
				return err
			}
			wall.add(plain.wall, measured.wall)
		}
		l := limit{bound: 0.060, text: "<= 60ms more"}
		added := median(wall.differences())
		b.table.add(row{what: x.what, plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)), ratio: "+" + seconds(added), spread: span(wall.differences(), "%.3f"), target: l.text, verdict: l.verdict(added, true)})
	}
	return nil
}

// network measures what runner-net adds to small requests, and how fast a large body goes through and into the record.
func (b *bench) network() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			io.WriteString(w, "small")
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(large))
		for range large / len(block) {
			w.Write(block)
		}
	})}
	go server.Serve(l)
	defer server.Close()
	rules := filepath.Join(b.dir, "allow.yaml")
	if err := os.WriteFile(rules, []byte("schema: runner.net_allow.v0\nrules: [{host: bench.test}]\n"), 0o644); err != nil {
		return err
	}
	records := 0
	// took is how long the requests themselves took, in seconds.
	took := func(through bool, n int, path string) (float64, error) {
		var args []string
		host := l.Addr().String()
		if through {
			records++
			host = "bench.test"
			args = []string{b.tool("runner-net"), "record", "--allow", rules, "--upstream", "bench.test:80=" + l.Addr().String(), "-o", filepath.Join(b.dir, "net"+strconv.Itoa(records)), "--"}
		}
		s, err := b.execute(nil, append(args, b.self, workloadArg, "get", strconv.Itoa(n), "http://"+host+path)...)
		if err != nil {
			return 0, err
		}
		var c clocked
		err = json.Unmarshal([]byte(s.out), &c)
		return float64(c.WallNS) / 1e9, err
	}
	n := 2000
	if b.short {
		n = 300
	}
	for _, x := range []struct {
		what, path string
		n          int
	}{{"runner-net record, small requests", "/small", n}, {"runner-net record, a body of 512 MiB", "/large", 1}} {
		var wall series
		for range b.n(7, 3) {
			plain, err := took(false, x.n, x.path)
			if err != nil {
				return err
			}
			measured, err := took(true, x.n, x.path)
			if err != nil {
				return err
			}
			wall.add(plain/float64(x.n), measured/float64(x.n))
		}
		r := row{what: x.what, plain: micros(median(wall.plain)), measured: micros(median(wall.measured)), spread: span(wall.ratios(), "%.1f")}
		if x.n == 1 {
			rate := large / 1e6 / median(wall.measured)
			bound := limit{bound: 300, atLeast: true, text: ">= 300MB/s"}
			r.plain, r.measured = seconds(median(wall.plain)), seconds(median(wall.measured))
			r.ratio, r.target, r.verdict = fmt.Sprintf("%.0fMB/s", rate), bound.text, bound.verdict(rate, true)
		} else {
			added := median(wall.differences())
			bound := limit{bound: 0.0015, text: "<= 1.5ms more"}
			r.ratio, r.target, r.verdict = "+"+micros(added), bound.text, bound.verdict(added, true)
		}
		b.table.add(r)
	}
	return nil
}

// getLoop gets a URL n times, one after another, and reads each body to its end.
func getLoop(n int, url string) error {
	for range n {
		r, err := http.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if err != nil {
			return err
		}
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, r.Status)
		}
	}
	return nil
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

type program struct {
	name, needs string
	command     func(dir string) []string
}

// ordinary are programs with many threads, or rings, that do nothing odd: lines in doubt must be rare in their records.
var ordinary = []program{
	{"go build in an empty cache", "go", func(dir string) []string {
		return []string{"env", "GOCACHE=" + dir, "go", "build", "-trimpath", "-o", dir + "/built", "./cmd/runner-verify"}
	}},
	{"npm install express in an empty cache", "npm", func(dir string) []string {
		return []string{"npm", "install", "--prefix", dir, "--cache", dir + "/cache", "--no-audit", "--no-fund", "express@4.21.2"}
	}},
	{"Node server, 4 clients, 8,000 files read", "node", func(dir string) []string {
		return []string{"/proc/self/exe", "_serve", dir, "node", "-e", `
const fs = require('fs'), http = require('http');
http.createServer((q, r) => fs.readFile(process.argv[1] + q.url, (e, b) => { r.statusCode = e ? 404 : 200; r.end(b); }))
	.listen(0, '127.0.0.1', function () { fs.writeFileSync(process.argv[1] + '/port', String(this.address().port)); });`, dir}
	}},
	{"Node with rings (UV_USE_IO_URING=1), 16 files at once", "node", func(dir string) []string {
		return []string{"env", "UV_USE_IO_URING=1", "node", "-e", `
const fs = require('fs').promises;
const one = async (name) => {
	const h = await fs.open(name, 'w'); await h.write('x'); await h.close();
	await (await fs.open(name, 'r')).close();
	await fs.rename(name, name + 'b'); await fs.unlink(name + 'b');
};
(async () => { for (let r = 0; r < 100; r++) await Promise.all([...Array(16).keys()].map((i) => one(process.argv[1] + '/' + r + '-' + i))); })();`, dir}
	}},
	{"Python, 8 threads that write, rename and remove files", "python3", func(dir string) []string {
		return []string{"python3", "-c", `
import os, socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
def work(i):
    for n in range(500):
        name = f"{sys.argv[1]}/{i}-{n % 10}"
        with open(name, "w") as f: f.write("x")
        os.rename(name, name + "b")
        with open(name + "b") as f: f.read()
        os.remove(name + "b")
        if n % 50 == 0: socket.create_connection(server.getsockname()).close()
all = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in all: t.start()
for t in all: t.join()
`, dir}
	}},
}

func init() {
	helpers["_serve"] = func(args []string) {
		if err := serve(args[0], args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "attacks: error:", err)
			os.Exit(1)
		}
	}
}

// serve starts a server that writes its port to a file, and lets four clients read files from it.
func serve(dir string, command []string) error {
	const files, clients, each = 50, 4, 2000
	for i := range files {
		if err := os.WriteFile(fmt.Sprint(dir, "/f", i), []byte(strings.Repeat("x", 4096)), 0o600); err != nil {
			return err
		}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	var port []byte
	for end := time.Now().Add(time.Minute); len(port) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		port, _ = os.ReadFile(dir + "/port")
	}
	var all sync.WaitGroup
	faults := make([]error, clients)
	for i := range clients {
		all.Go(func() {
			for n := range each {
				r, err := http.Get("http://127.0.0.1:" + string(port) + "/f" + strconv.Itoa((i+n)%files))
				if err != nil {
					faults[i] = err
					return
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// marks prints which share of the lines of ordinary programs is in doubt.
func marks(bin string) int {
	fmt.Println("| program | lines | `changed` | `unproven` | other notes |\n|---|---|---|---|---|")
	for _, o := range ordinary {
		if _, err := exec.LookPath(o.needs); err != nil {
			fmt.Printf("| %s | not tried: no %s here | | | |\n", o.name, o.needs)
			continue
		}
		r, err := recorded(bin, o.command)
		if err != nil {
			fmt.Fprintf(os.Stderr, "attacks: error: %s: %v\n", o.name, err)
			return 1
		}
		count := map[string]int{}
		for i := range r.lines {
			count[r.lines[i].marked()]++
		}
		var notes []string
		for _, n := range r.notes {
			if strings.HasPrefix(n, "s2_kernel_loss") || strings.HasPrefix(n, "s2_cgroup_escape") {
				notes = append(notes, n)
			}
		}
		share := func(n int) string {
			return fmt.Sprintf("%d (%.2f %%)", n, 100*float64(n)/float64(max(len(r.lines), 1)))
		}
		fmt.Printf("| %s | %d | %s | %s | %s |\n", o.name, len(r.lines), share(count["doubt changed"]), share(count["status "+statusUnproven]), strings.Join(notes, ", "))
	}
	return 0
}

// recorded is the record of a program that gets an empty directory.
func recorded(bin string, command func(dir string) []string) (record, error) {
	dir, err := os.MkdirTemp("", "marks-")
	if err != nil {
		return record{}, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return record{}, err
	}
	archive := dir + "/run.tar.gz"
	args := append([]string{"--archive", archive, "--"}, command(dir)...)
	for i := range args {
		if args[i] == "/proc/self/exe" {
			args[i] = self
		}
	}
	c := exec.Command(bin+"/runner-exec", args...)
	if out, err := c.CombinedOutput(); err != nil {
		return record{}, fmt.Errorf("%w: %s", err, out)
	}
	return read(archive)
}

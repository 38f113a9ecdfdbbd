//go:build linux

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// spawner starts a program N times with posix_spawn and waits for each: what the C library makes of it.
const spawner = `#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(int c, char **v) {
	char *argv[] = {v[2], 0}, *env[] = {0};
	for (int i = atoi(v[1]); i > 0; i--) {
		pid_t p;
		if (posix_spawn(&p, v[2], 0, 0, argv, env) || waitpid(p, 0, 0) != p) return 1;
	}
	return 0;
}
`

// bulk is how much goes through a process, in bytes.
const bulk = 16 << 20

// proc measures runner-proc: what starts and ends in a second on one core, next to posix_spawn from C, and what goes through
// a program's pipes.
func (b *bench) proc() error {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	if err := b.compile(at("tiny"), "int main(void) { return 0; }\n", "-static"); err != nil {
		b.table.add(row{what: "runner-proc serve", note: "NOT MEASURED: " + err.Error()})
		return nil
	}
	if err := b.compile(at("spawner"), spawner); err != nil {
		return err
	}
	n := 2000
	if b.short {
		n = 500
	}
	frame, err := b.frame(at("tiny"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(at("requests"), []byte(strings.Repeat(`{"id":1,"op":"run","frame":"`+base64.StdEncoding.EncodeToString(frame)+"\"}\n", n)), 0o600); err != nil {
		return err
	}
	var wall series
	for range b.n(5, 3) {
		plain, err := b.execute(nil, b.self, workloadArg, "pinned", at("spawner"), strconv.Itoa(n), at("tiny"))
		if err != nil {
			return err
		}
		measured, err := b.execute(nil, b.self, workloadArg, "pinned", "/bin/sh", "-c", `exec "$1" serve <"$2" >"$2.answers"`, "sh", b.tool("runner-proc"), at("requests"))
		if err != nil {
			return err
		}
		answers, err := os.ReadFile(at("requests.answers"))
		if err != nil {
			return err
		}
		if ok := strings.Count(string(answers), `"result":"AQ`); ok != n { // tag and version
			return fmt.Errorf("%d of %d requests have a result", ok, n)
		}
		wall.add(plain.wall, measured.wall)
	}
	each, of := median(wall.measured)/float64(n), median(wall.plain)/float64(n)
	l, rate := limit{bound: 1.5, text: "<= 1.5"}, limit{bound: 2000, atLeast: true, text: ">= 2,000/s"}
	r := median(wall.ratios())
	b.table.add(row{what: "runner-proc run of a tiny program", plain: micros(of), measured: micros(each), ratio: fmt.Sprintf("%.2f", r),
		spread: span(wall.ratios(), "%.2f"), target: l.text, verdict: l.verdict(r, true), note: "plain: posix_spawn and waitpid from C; both on one core"})
	b.table.add(row{what: "runner-proc serve, one core", plain: thousands(int64(1/of)) + "/s", measured: thousands(int64(1/each)) + "/s",
		target: rate.text, verdict: rate.verdict(1/each, true), note: fmt.Sprintf("%d requests at a time in the queue", n)})
	return b.through(at("bulk"))
}

func micros(seconds float64) string { return fmt.Sprintf("%.0fus", seconds*1e6) }

// through measures how fast bytes go through standard input and output of a program.
func (b *bench) through(file string) error {
	in := make([]byte, bulk)
	frame, err := b.frameOf(fmt.Sprintf(`{"argv":["/bin/cat"],"stdin":%q,"caps":{"max_stdout_bytes":%d}}`, strings.Repeat("x", bulk), bulk))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, frame, 0o600); err != nil {
		return err
	}
	empty, err := b.frameOf(`{"argv":["/bin/cat"],"caps":{"max_stdout_bytes":1}}`)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".empty", empty, 0o600); err != nil {
		return err
	}
	var wall series
	for range b.n(9, 5) {
		var took [2]float64
		for i, name := range []string{file + ".empty", file} {
			s, err := b.execute(nil, "/bin/sh", "-c", `exec "$1" run <"$2" >"$2.result"`, "sh", b.tool("runner-proc"), name)
			if err != nil {
				return err
			}
			took[i] = s.wall
		}
		if st, err := os.Stat(file + ".result"); err != nil || st.Size() != int64(len(in))+18 {
			return errors.New("not all bytes came back")
		}
		wall.add(took[0], took[1])
	}
	l := limit{bound: 500, atLeast: true, text: ">= 500MB/s"}
	rate := bulk / 1e6 / median(wall.differences())
	b.table.add(row{what: "runner-proc run, 16 MiB through cat", plain: seconds(median(wall.plain)), measured: seconds(median(wall.measured)),
		ratio: fmt.Sprintf("%.0fMB/s", rate), target: l.text, verdict: l.verdict(rate, true), note: "without the time of an empty request"})
	return nil
}

// frame is a request to run a program without arguments.
func (b *bench) frame(program string) ([]byte, error) {
	return b.frameOf(fmt.Sprintf(`{"argv":[%q],"caps":{"max_stdout_bytes":10,"max_stderr_bytes":10}}`, program))
}

func (b *bench) frameOf(request string) ([]byte, error) {
	c := exec.Command(b.tool("runner-proc"), "encode")
	c.Stdin = strings.NewReader(request)
	return c.Output()
}

func (b *bench) compile(to, source string, flags ...string) error {
	c := exec.Command("cc", append(flags, "-O2", "-o", to, "-x", "c", "-")...)
	c.Stdin = strings.NewReader(source)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w %s", err, clip(string(out)))
	}
	return nil
}

// pinned runs a program on one core.
func pinned(argv []string) error {
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for i := range 1024 {
		if all.IsSet(i) {
			one.Set(i)
			break
		}
	}
	// The thread that executes the program has it; others are gone then.
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, argv, os.Environ())
}

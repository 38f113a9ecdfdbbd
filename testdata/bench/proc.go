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

// tinyPrograms do nothing. The smallest one is without the C library, so that starting it takes a third of the time.
var tinyPrograms = []struct {
	name, source string
	flags        []string
}{
	{"a tiny static program", "int main(void) { return 0; }\n", []string{"-static"}},
	{"the smallest program", "#include <sys/syscall.h>\nvoid _start(void) { __asm__ volatile(EXIT); }\n", []string{"-static", "-nostdlib", "-DEXIT=" + exitCall[runtime.GOARCH]}},
}

// exitCall is exit(0) without a library.
var exitCall = map[string]string{
	"amd64": `"mov $60, %eax; xor %edi, %edi; syscall"`,
	"arm64": `"mov x8, #93; mov x0, #0; svc #0"`,
}

// proc measures runner-proc: what starts and ends in a second on one core, next to posix_spawn from C, and what goes through
// a program's pipes.
func (b *bench) proc() error {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	if err := b.compile(at("spawner"), spawner); err != nil {
		b.table.add(row{what: "runner-proc serve", note: "NOT MEASURED: " + err.Error()})
		return b.through(at("bulk"))
	}
	for i, p := range tinyPrograms {
		program := at("tiny" + strconv.Itoa(i))
		if err := b.compile(program, p.source, p.flags...); err != nil {
			return err
		}
		if err := b.spawns(p.name, program, i == 0); err != nil {
			return err
		}
	}
	return b.through(at("bulk"))
}

// spawns measures one program. The ratio has a target with a program that has the C library, the rate with the other one:
// without it, what the kernel does for any program is the most of it.
func (b *bench) spawns(name, program string, ratioHasTarget bool) error {
	n := 2000
	if b.short {
		n = 500
	}
	frame, err := b.frame(program)
	if err != nil {
		return err
	}
	requests := filepath.Join(b.dir, "requests")
	if err := os.WriteFile(requests, []byte(strings.Repeat(`{"id":1,"op":"run","frame":"`+base64.StdEncoding.EncodeToString(frame)+"\"}\n", n)), 0o600); err != nil {
		return err
	}
	var wall series
	for range b.n(5, 3) {
		plain, err := b.execute(nil, b.self, workloadArg, "pinned", filepath.Join(b.dir, "spawner"), strconv.Itoa(n), program)
		if err != nil {
			return err
		}
		measured, err := b.execute(nil, b.self, workloadArg, "pinned", "/bin/sh", "-c", `exec "$1" serve <"$2" >"$2.answers"`, "sh", b.tool("runner-proc"), requests)
		if err != nil {
			return err
		}
		answers, err := os.ReadFile(requests + ".answers")
		if err != nil {
			return err
		}
		if ok := strings.Count(string(answers), `"result":"AQ`); ok != n { // tag and version
			return fmt.Errorf("%d of %d requests have a result", ok, n)
		}
		wall.add(plain.wall, measured.wall)
	}
	each, of := median(wall.measured)/float64(n), median(wall.plain)/float64(n)
	r := row{what: "runner-proc serve, " + name, plain: micros(of), measured: micros(each), ratio: fmt.Sprintf("%.2f", median(wall.ratios())), spread: span(wall.ratios(), "%.2f"),
		note: fmt.Sprintf("one core: %s/s; plain: posix_spawn and waitpid from C, %s/s", thousands(int64(1/each)), thousands(int64(1/of)))}
	l := limit{bound: 2000, atLeast: true, text: ">= 2,000/s"}
	r.target, r.verdict = l.text, l.verdict(1/each, true)
	if ratioHasTarget {
		l = limit{bound: 1.5, text: "<= 1.5"}
		r.target, r.verdict = l.text, l.verdict(median(wall.ratios()), true)
	}
	b.table.add(r)
	return nil
}

func micros(seconds float64) string { return fmt.Sprintf("%.0fus", seconds*1e6) }

// through measures how fast bytes go through standard input and output of a program.
func (b *bench) through(file string) error {
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
	run := func(name, to string) (sample, error) {
		return b.execute(nil, "/bin/sh", "-c", `exec "$1" run <"$2" >"$3"`, "sh", b.tool("runner-proc"), name, to)
	}
	if _, err := run(file, file+".result"); err != nil {
		return err
	}
	if st, err := os.Stat(file + ".result"); err != nil || st.Size() != bulk+18 {
		return errors.New("not all bytes came back")
	}
	var wall series
	for range b.n(15, 9) {
		empty, err := run(file+".empty", os.DevNull) // a disk is not measured
		if err != nil {
			return err
		}
		full, err := run(file, os.DevNull)
		if err != nil {
			return err
		}
		wall.add(empty.wall, full.wall)
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

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// A sender writes results to the port, and the same to the console.
type sender struct {
	port  *os.File
	lines int
}

// openPort opens the serial port for results: the second of a PC, a card on arm64. It
// carries bytes as they are.
func openPort(arch string) (*os.File, error) {
	name := "/dev/ttyS1"
	if arch == "arm64" {
		name = "/dev/ttyS0"
	}
	f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ICANON
	return f, unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}

func (s *sender) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.port.Write(append(b, '\n'))
	return err
}

func (s *sender) send(l guest.Line) {
	s.lines++
	if err := s.write(l); err != nil {
		fmt.Fprintln(os.Stderr, "init: send:", err)
	}
}

// started sends a failure to set the guest up.
func (s *sender) started(err error) {
	if err != nil {
		s.send(guest.Line{Check: "boot", Result: guest.Failed, Detail: err.Error()})
	}
}

func (s *sender) end(release, version string) error {
	return errors.Join(s.write(guest.End{End: true, Lines: s.lines, Release: release, Version: version}), drain(s.port))
}

// drain waits until the port has sent everything.
func drain(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1)
}

// refusal is why runner-capture cannot observe this kernel, or empty.
func refusal() string {
	c := exec.Command(guest.Bin+"/runner-capture", "--probe")
	out, err := c.CombinedOutput()
	if err == nil {
		return ""
	}
	fmt.Printf("init: runner-capture --probe: %v\n%s", err, out)
	return "this kernel cannot be observed"
}

// run carries out one job and sends its results as they come. A job that ends badly
// without a failed check, or prints no result, is a failure of its own.
func (s *sender) run(j guest.Job) {
	if err := useCores(j.Cores); err != nil {
		s.send(guest.Line{Check: j.Name, Result: guest.Failed, Detail: err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(j.Seconds)*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, guest.Bin+"/"+j.Args[0], j.Args[1:]...)
	c.Dir = "/tmp"
	c.Env = append(os.Environ(), "RUNNER_REQUIRE_BPF=")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 2 * time.Second
	out := &output{job: j, sender: s}
	var errs bytes.Buffer
	c.Stdout, c.Stderr = out, &errs
	err := c.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("killed after %d s", j.Seconds)
	}
	switch {
	case err != nil && !out.failed:
		s.send(guest.Line{Check: j.Name, Result: guest.Failed, Detail: fmt.Sprintf("%v: %s", err, tail(out.rest+errs.String()))})
	case out.lines == 0:
		s.send(guest.Line{Check: j.Name, Result: guest.Failed, Detail: "printed no result: " + tail(out.rest+errs.String())})
	}
	if out.failed || err != nil {
		fmt.Printf("%s%s\n", out.all, errs.Bytes())
	}
}

// useCores takes cores after the first out of use, or into use again.
func useCores(n int) error {
	if n == 0 {
		return nil
	}
	files, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/online")
	if len(files) == 0 {
		return fmt.Errorf("this kernel takes no core out of use: %w", errors.ErrUnsupported)
	}
	for _, f := range files {
		i, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(f)), "cpu"))
		if i == 0 {
			continue // on many machines it has no such file
		}
		text := "1"
		if i >= n {
			text = "0"
		}
		err = errors.Join(err, os.WriteFile(f, []byte(text), 0o644))
	}
	return err
}

// An output reads what a job prints and sends each result in it.
type output struct {
	job     guest.Job
	sender  *sender
	partial []byte // a line without its end
	all     []byte
	rest    string // what is no result
	lines   int
	failed  bool
}

func (o *output) Write(b []byte) (int, error) {
	o.all = append(o.all, b...)
	o.partial = append(o.partial, b...)
	for {
		i := bytes.IndexByte(o.partial, '\n')
		if i < 0 {
			return len(b), nil
		}
		line := o.partial[:i]
		o.partial = o.partial[i+1:]
		if r, ok := o.result(line); ok {
			o.lines++
			o.failed = o.failed || r.Result == guest.Failed
			r.Check = o.job.Name + "/" + r.Check
			o.sender.send(r)
		} else {
			o.rest += string(line) + "\n"
		}
	}
}

// result reads a line that tells a result. A compiled test prints "--- PASS: TestName",
// after what the test said.
func (o *output) result(line []byte) (guest.Line, bool) {
	if !o.job.Test {
		l, err := guest.Parse(line)
		return l, err == nil
	}
	words := strings.Fields(string(line))
	if len(words) < 3 || words[0] != "---" || line[0] != '-' {
		return guest.Line{}, false
	}
	said := o.rest
	o.rest = ""
	l := guest.Line{Check: words[2], Result: guest.OK}
	switch words[1] {
	case "FAIL:":
		l.Result, l.Detail = guest.Failed, tail(said)
	case "SKIP:":
		l.Result, l.Detail = guest.Unavailable, tail(said)
	}
	return l, true
}

// longest is how much of an output a result quotes.
const longest = 600

// tail is the end of a text on one line.
func tail(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = "… " + s[len(s)-longest:]
	}
	return strings.ToValidUTF8(s, "?")
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// called is the exit code of a call, and what it said.
func called(t *testing.T, in io.Reader, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = app().Call(t.Context(), in, &o, &e, args)
	return code, o.String(), e.String()
}

// TestForeign: of an input that cannot be a document of the kind that is read, however long, no more than the beginning is read.
func TestForeign(t *testing.T) {
	worker := filepath.Join(t.TempDir(), "worker")
	testkit.Must(t, os.WriteFile(worker, frame(t, `{"argv":["/none"]}`), 0o644))
	zeros, text := strings.Repeat("\x00", 512), "{\"schema\":\"x\"}\n"
	for _, x := range []struct {
		what string
		args []string
		says string
	}{
		{zeros, []string{"run"}, "not a frame: "}, {text, []string{"run"}, "not a frame: "}, {"#!/bin/sh\n", []string{"run"}, "not a frame: "},
		{zeros, []string{"map", "--worker", worker}, "items: "}, {text, []string{"map", "--worker", worker}, "items: "},
		{zeros, []string{"encode"}, "an example: "}, {"argv: [x]\n", []string{"encode"}, "an example: "},
		{zeros, []string{"decode"}, "neither a frame nor a result"}, {text, []string{"decode"}, "neither a frame nor a result"},
		{zeros, []string{"decode", "--as", "frame"}, "not a frame: "}, {text, []string{"decode", "--as", "request"}, "request: "},
		{zeros, []string{"decode", "--as", "caps"}, "limits: "}, {"\x01", []string{"decode", "--as", "caps"}, "limits: "}, {text, []string{"decode", "--as", "result"}, "result: "},
	} {
		if code, out, errs := called(t, &testkit.Endless{T: t, What: x.what, Most: 16 * firstLook}, x.args...); code != tool.ExitInput || out != "" || !strings.Contains(errs, x.says) {
			t.Errorf("%s of %.20q: exit %d: %s", x.args, x.what, code, errs)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	testkit.Must(t, unix.Mkfifo(pipe, 0o600))
	var wrote atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		for n := 0; err == nil && wrote.Load() < 64<<20; wrote.Add(int64(n)) {
			n, err = f.Write(make([]byte, firstLook))
		}
		f.Close()
	}()
	code, _, errs := called(t, strings.NewReader(""), "map", "--worker", pipe)
	<-ended
	if code != tool.ExitInput || !strings.Contains(errs, pipe+": not a frame: ") || wrote.Load() > 16*firstLook {
		t.Errorf("exit %d after %d bytes: %s", code, wrote.Load(), errs)
	}
}

func frame(t *testing.T, text string) []byte {
	t.Helper()
	code, out, errs := called(t, strings.NewReader(text), "encode")
	if code != 0 {
		t.Fatal(errs)
	}
	return []byte(out)
}

// TestLargeIsRead: documents that are larger than the first look are read, wherever it ends in them.
func TestLargeIsRead(t *testing.T) {
	for _, size := range []int{firstLook - 100, firstLook - 1, firstLook, firstLook + 1, 5 * firstLook} {
		long := strings.Repeat("x", size)
		for _, space := range []string{"", strings.Repeat(" \n", size/2)} {
			whole := frame(t, space+`{"argv":["/none","`+long+`"],"env":[["A","`+long+`"]],"cwd":"/","stdin":"`+long+`"}`)
			request, caps, err := proc.ParseFrame(whole)
			testkit.Must(t, err)
			result := proc.Result{Response: proc.Response{Stdout: []byte(long), Stderr: []byte(long)}}
			for kind, b := range map[string][]byte{"frame": whole, "request": request, "result": result.Append(nil, proc.WideErr), "caps": caps} {
				for _, args := range [][]string{{"decode"}, {"decode", "--as", kind}} {
					if len(args) == 1 && kind != "frame" && kind != "result" {
						continue
					}
					if code, out, errs := called(t, bytes.NewReader(b), args...); code != 0 || kind != "caps" && !strings.Contains(out, long) {
						t.Errorf("%d: %s: exit %d: %s", size, args, code, errs)
					}
				}
			}
			if code, out, errs := called(t, bytes.NewReader(whole), "run", "--world", worldSandboxed); code != 0 || out == "" {
				t.Errorf("%d: exit %d: %s", size, code, errs)
			}
		}
		var items [][]byte
		for n := range 3 {
			items = append(items, []byte(fmt.Sprint(n, long)))
		}
		worker := filepath.Join(t.TempDir(), "worker")
		testkit.Must(t, os.WriteFile(worker, frame(t, `{"argv":["/none"],"stdin":"`+long+`"}`), 0o644))
		if code, _, errs := called(t, bytes.NewReader(proc.AppendItems(nil, items)), "map", "--world", worldSandboxed, "--worker", worker); code != tool.ExitNo || !strings.Contains(errs, "POLICY_DENIED") {
			t.Errorf("%d: exit %d: %s", size, code, errs)
		}
	}
}

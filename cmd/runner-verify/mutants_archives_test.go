package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const runs = "../../testdata/runs"

// base is one good archive, of which mutants are made.
type base struct {
	name    string
	members content
}

// bases are good archives of every kind: recorded runs, runs that the stages make of a changed
// recording, made-up ones with what no recording has, and one of another implementation.
func bases(t *testing.T) []base {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "../runner-normalize", "../runner-correlate", "../runner-pack")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stage := func(in []byte, name string, args ...string) []byte {
		cmd := exec.Command(filepath.Join(dir, name), args...)
		cmd.Stdin = bytes.NewReader(in)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, errs.Bytes())
		}
		return out
	}
	list := []base{{"layered", layered().digest(t)}, {"sample", sample().digest(t)}, {"other", foreign().digest(t)}, {"wrapped", wrappedRun(t).digest(t)}}
	for _, name := range testkit.Names(t, runs) {
		if name == "escape" { // tasks left the cgroup, so its archive is refused
			continue
		}
		joined := testkit.Read(t, filepath.Join(runs, name, "3-joined.ndjson"))
		list = append(list, base{name, membersOf(t, stage(joined, "runner-pack", "-o", "-"))})
	}
	raw := testkit.Read(t, filepath.Join(runs, "kernel-only/1-raw.ndjson"))
	pack := func(name string, raw []byte, flags ...string) {
		joined := stage(stage(raw, "runner-normalize", flags...), "runner-correlate")
		list = append(list, base{name, membersOf(t, stage(joined, "runner-pack", "-o", "-"))})
	}
	pack("dropped-by-program", raw, "--canonical-pids", "--drop", `.kind == "openat"`)
	pack("losses", resealed(t, raw, strings.NewReplacer(`"dropped":0`, `"dropped":7,"dropped.connect":2,"dropped.openat":5`, `"seen":53`, `"seen":60`,
		`"recursion_misses":0`, `"missed.sys_exit":3,"recursion_misses":3`, `"survivors_killed":0`, `"survivors_killed":2`,
		`"path_fault":0`, `"path_fault":1`)))
	return list
}

// resealed is a stream with other text, sealed again as a partial one.
func resealed(t *testing.T, raw []byte, change *strings.Replacer) []byte {
	in, err := stream.NewReader(bytes.NewReader(raw), "raw", schemas.StreamRaw)
	testkit.Must(t, err)
	var b bytes.Buffer
	out, err := stream.NewWriter(&b, in.Header())
	testkit.Must(t, err)
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		testkit.Must(t, out.WriteRaw([]byte(change.Replace(string(rec.Bytes)))))
	}
	testkit.Must(t, out.Seal(schemas.StatusPartial))
	testkit.Must(t, out.Close())
	return b.Bytes()
}

// membersOf are the members of a packed archive.
func membersOf(t *testing.T, packed []byte) content {
	a, err := bundle.Open(bytes.NewReader(packed), bundle.DefaultLimits)
	testkit.Must(t, err)
	defer a.Close()
	c := content{}
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return c
		}
		testkit.Must(t, err)
		b, err := io.ReadAll(r)
		testkit.Must(t, err)
		c[m.Name] = string(b)
	}
}

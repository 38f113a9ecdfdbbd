//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// wrappedArchive is the archive of a run behind all wrappers, without a kernel layer.
func wrappedArchive(t *testing.T) string {
	t.Helper()
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	testkit.Programs(t, "a run behind all wrappers", "curl", "python3")
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(dir+"/base/d", 0o755))
	for _, name := range []string{"a", "d/b", "empty"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "base", name), []byte(strings.TrimPrefix(name, "empty")), 0o644))
	}
	for _, name := range []string{"a", "d/b", "empty", "d", "."} { // its list has the times
		testkit.Must(t, os.Chtimes(filepath.Join(dir, "base", name), time.Unix(1, 0), time.Unix(1, 0)))
	}
	file := filepath.Join(dir, "wrapped.tar.gz")
	cmd := command(t, "runner-exec", "--no-kernel", "--replayable", "--run-id", "r", "--archive", file, "--", tool("runner-net"), "deny", "--", tool("runner-box"), "--base", dir+"/base", "--fallback", "copy", "--",
		tool("runner-clock"), "--seed", "5", "--start", "2026-01-01T00:00:00Z", "--", "sh", "-c", `cat; echo said; echo new >b; : >c; rm a; chmod 700 d; curl -s -d body http://x.test/a; curl -s http://x.test/b; python3 -c 'import time,random; time.sleep(0.01); print(time.time(), random.random())'; echo x >&2; exit 3`)
	cmd.Stdin = strings.NewReader("typed in\n")
	if o := call(t, cmd); o.code != 3 || !strings.Contains(o.stdout, "typed in\nsaid\nrunner-net: no rule allows POST http://x.test/a\n") || !strings.HasPrefix(o.stderr, "x\n") {
		t.Fatal(o)
	}
	return file
}

// TestWrappedNames: names are in the order of their bytes, whatever their texts are, and a command cannot spoil its record by names.
func TestWrappedNames(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	testkit.Programs(t, "names that are no text", "python3")
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(dir+"/base", 0o755))
	file := filepath.Join(dir, "names.tar")
	const program = `import os
for n in [b"\xff", b"\xef\xbb\xbf", b"\\", b"\\x41", b"A", b"]", b"\x80", b"a\\b", b"a]b", b"a\xfeb", b"\xe2\x80\xae", b"z\n", b"z\x7f"]:
    open(b"/workspace/" + n, "w").close()
    os.makedirs(b"/workspace/d" + n)
    open(b"/workspace/d" + n + b"/" + n, "w").close()
`
	if o := call(t, command(t, "runner-exec", "--no-kernel", "--archive", file, "--", tool("runner-box"), "--base", dir+"/base", "--fallback", "copy", "--", "python3", "-c", program)); o.code != 0 {
		t.Fatal(o)
	}
	if o := call(t, command(t, "runner-verify", file)); o.code != 0 {
		t.Error(o)
	}
	if says := readerSays(t, []string{file}); len(says) != 1 || says[0].Exit != 0 {
		t.Errorf("%+v", says)
	}
}

// TestWrappedArchive: the archive of such a run has what each wrapper recorded, says the same each time, and is valid.
func TestWrappedArchive(t *testing.T) {
	file := wrappedArchive(t)
	o := call(t, command(t, "runner-verify", "-v", file))
	if o.code != 0 {
		t.Fatal(o)
	}
	for _, claim := range []string{"4 names of its workspace differ at the end", "network was runner-net (deny): the layer network has 2 exchanges", "they reported 3 ticks about themselves"} {
		if !strings.Contains(o.stdout, claim) {
			t.Errorf("no %q: %s", claim, o.stdout)
		}
	}
	a := openArchive(t, file)
	for member, want := range map[string]string{
		"logs/stdout": "typed in\nsaid\n", "logs/stderr": "x\n", "layers/filesystem.ndjson": `"op":"delete","path":"a"`, "layers/network.ndjson": `"decision":"deny","scheme":"http","host":"x.test","port":80`,
		"layers/dns.ndjson": `"name":"x.test","type":"A"`, "layers/clock.ndjson": `"op":"sleep"`, "run/box.json": `"changes":{`, "run/net.json": `"mode":"deny"`, "run/clock.json": `"seed":"5"`,
		"run/env.json": `"wrappers":["runner-net","runner-box","runner-clock"],"command":["sh","-c",`,
	} {
		if !strings.Contains(string(a.members[member]), want) {
			t.Errorf("%s has no %s:\n%s", member, want, a.members[member])
		}
	}
	if o := call(t, command(t, "runner-show", file)); o.code != 0 || !strings.Contains(o.stdout, "workspace  2 added  b  c\nworkspace  1 removed  a\nworkspace  1 modes of  d\nnetwork    2 refused  POST http://x.test/a 403  GET http://x.test/b 403\n") {
		t.Errorf("runner-show: %v", o)
	}
	if o := call(t, command(t, "runner-net", "har", file)); o.code != 0 || strings.Count(o.stdout, `"startedDateTime"`) != 2 || !strings.Contains(o.stdout, `"text":"body"`) {
		t.Errorf("HAR: %v", o)
	}
	if o := call(t, command(t, "runner-net", "replay", file, "--", "curl", "-s", "http://x.test/b")); o.code != 0 || o.stdout != "runner-net: no rule allows GET http://x.test/b\n" {
		t.Errorf("replay: %v", o)
	}
	again := openArchive(t, wrappedArchive(t))
	for member, b := range a.members {
		if strings.HasPrefix(member, "run/env") || member == "manifest.json" || member == "events.ndjson" || strings.HasPrefix(member, "blobs/") { // with the names of directories and times of files
			continue
		}
		if string(again.members[member]) != string(b) {
			t.Errorf("%s differs from run to run:\n%s\nand\n%s", member, b, again.members[member])
		}
	}
}

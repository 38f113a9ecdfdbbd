package cmd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The reader in testdata/reader is written in another language and from the
// specification only. It must agree with the tools on every vector, on real archives
// and streams, and on mutants of them.

// verdict is what a checker says of one file.
type verdict struct {
	File     string   `json:"file"`
	Exit     int      `json:"exit"`
	Rules    []string `json:"rules"`
	Findings []string `json:"findings"`
}

// requirePython: the reader runs where there is Python 3.9 or later.
func requirePython(t *testing.T) {
	t.Helper()
	err := exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run()
	if err != nil {
		testkit.SkipUnless(t, "RUNNER_REQUIRE_PYTHON", "the reader in Python", "python3 of version 3.9 or later: ", err)
	}
}

// reader runs a program of testdata/reader.
func reader(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	c := command(t, "python3", append([]string{"-B", "../testdata/reader/" + name}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	o := call(t, c)
	if o.code != 0 {
		t.Fatalf("%s: %v", name, o)
	}
	return o.stdout
}

// readerSays asks the reader about many files in one process.
func readerSays(t *testing.T, files []string, flags ...string) []verdict {
	t.Helper()
	var all []verdict
	in := bufio.NewScanner(strings.NewReader(reader(t, strings.Join(files, "\n"), "check.py", append(flags, "--batch")...)))
	for in.Scan() {
		var v verdict
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) != len(files) {
		t.Fatalf("the reader says something of %d files, expected %d", len(all), len(files))
	}
	return all
}

// verifySays asks runner-verify about one archive.
func verifySays(t *testing.T, file string) verdict {
	t.Helper()
	o := call(t, command(t, "runner-verify", "--json", file))
	var report struct {
		Findings []struct{ Rule, Message string } `json:"findings"`
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
		t.Fatalf("%s: %v: %v", file, err, o)
	}
	v := verdict{File: file, Exit: o.code}
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, f.Rule+": "+f.Message)
		if !slices.Contains(v.Rules, f.Rule) {
			v.Rules = append(v.Rules, f.Rule)
		}
	}
	slices.Sort(v.Rules)
	return v
}

// agree compares what the reader and runner-verify say of archives.
func agree(t *testing.T, files []string) {
	t.Helper()
	refused := 0
	read := readerSays(t, files)
	for i, v := range verifyAll(t, files) {
		if v.Exit != 0 {
			refused++
		}
		if r := read[i]; v.Exit != r.Exit || !slices.Equal(decisive(v.Rules), decisive(r.Rules)) {
			t.Errorf("%s:\nrunner-verify exits %d: %q\nthe reader exits %d: %q %q", r.File, v.Exit, v.Findings, r.Exit, r.Rules, r.Findings)
		}
	}
	t.Logf("%d archives, %d of them refused by both", len(files), refused)
}

// form are the rules about the form of an archive and of its lines. If one of them is
// broken, what else is found depends on how much of the archive a checker still reads,
// so only these rules are compared.
var form = []string{
	"archive.", "member.", "manifest.", "document.", "lines.", "line.", "run_id", "seq", "events.pair",
	"kernel.text", "kernel.derived", "policy.", "sdk.text",
}

// decisive are the rules on which two checkers must agree. A set of the surface that is
// out of order need not be compared with the layers. A run_id of the wrong form in a
// document is document.schema, and may be run_id as well.
func decisive(rules []string) []string {
	of := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
		return !slices.ContainsFunc(form, func(s string) bool { return strings.HasPrefix(rule, s) })
	})
	if len(of) == 0 {
		of = slices.Clone(rules)
	}
	if slices.Contains(of, "surface.order") {
		of = slices.DeleteFunc(of, func(rule string) bool { return rule == "surface.derived" })
	}
	if slices.Contains(of, "document.schema") {
		of = slices.DeleteFunc(of, func(rule string) bool { return rule == "run_id" })
	}
	return of
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: nothing there: %v", pattern, err)
	}
	return files
}

// packedRuns are the archives of all recorded runs.
func packedRuns(t *testing.T) []string {
	t.Helper()
	var files []string
	dir := t.TempDir()
	for _, run := range glob(t, "../testdata/runs/*") {
		file := filepath.Join(dir, filepath.Base(run)+".tar.gz")
		if o := call(t, command(t, "runner-pack", "-o", file, filepath.Join(run, "3-joined.ndjson"))); o.code != 0 {
			t.Fatal(o)
		}
		files = append(files, file)
	}
	return files
}

func TestReaderVectors(t *testing.T) {
	requirePython(t)
	agree(t, glob(t, "../testdata/vectors/bundle/*"))
}

func TestReaderRuns(t *testing.T) {
	requirePython(t)
	agree(t, packedRuns(t))
}

// TestReaderStreams: the class of every stream vector, and no finding about the
// streams of all recorded runs.
func TestReaderStreams(t *testing.T) {
	requirePython(t)
	dir := t.TempDir()
	var files, want []string
	for _, vector := range glob(t, "../testdata/vectors/stream/*") {
		b, err := os.ReadFile(vector)
		if err != nil {
			t.Fatal(err)
		}
		head, stream, _ := bytes.Cut(b, []byte("\n\n"))
		files = append(files, filepath.Join(dir, filepath.Base(vector)))
		want = append(want, strings.TrimPrefix(string(head), "expect: "))
		if err := os.WriteFile(files[len(files)-1], stream, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range readerSays(t, files, "--stream", "kernel.raw", "--form") {
		exit, rules := 3, []string{"stream." + want[i]}
		if want[i] == "ok" {
			exit, rules = 0, []string{}
		}
		if v.Exit != exit || !slices.Equal(v.Rules, rules) {
			t.Errorf("%s: exit %d %q %q, expected %q", v.File, v.Exit, v.Rules, v.Findings, want[i])
		}
	}
	for _, v := range readerSays(t, recordedStreams(t)) {
		if v.Exit != 0 {
			t.Errorf("%s: exit %d %q %q", v.File, v.Exit, v.Rules, v.Findings)
		}
	}
}

// recordedStreams are the streams of all recorded runs, each after its name and a tab.
func recordedStreams(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, k := range []struct{ file, stream string }{
		{"1-raw", "kernel.raw"}, {"2-kernel", "kernel.normalized"}, {"3-joined", "run.joined"},
		{"policy.log", "policy.log"}, {"sdk.log", "sdk.log"}, {"intents.log", "intent.log"},
	} {
		for _, file := range glob(t, "../testdata/runs/*/"+k.file+".ndjson") {
			files = append(files, k.stream+"\t"+file)
		}
	}
	return files
}

// TestReaderCorpora: archives of another implementation, and bundles of other kinds.
func TestReaderCorpora(t *testing.T) {
	requirePython(t)
	agree(t, otherArchives(t, "*.tar.gz"))
}

// otherArchives are the archives outside of the repository whose name matches.
func otherArchives(t *testing.T, pattern string) []string {
	t.Helper()
	root := testkit.Corpora(t, "assay")
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

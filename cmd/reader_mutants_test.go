package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// verifyAll asks runner-verify about many archives, a few at a time.
func verifyAll(t *testing.T, files []string) []verdict {
	t.Helper()
	all := make([]verdict, len(files))
	next := make(chan int)
	var done sync.WaitGroup
	for range runtime.NumCPU() {
		done.Go(func() {
			for i := range next {
				all[i] = verifySays(t, files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	done.Wait()
	return all
}

// mutants makes changed copies of archives or streams, about one in part of all that
// mutate.py knows, always the same ones.
func mutants(t *testing.T, part any, files []string) []string {
	t.Helper()
	args := append([]string{t.TempDir(), fmt.Sprint(part)}, files...)
	return strings.Split(strings.TrimSuffix(reader(t, "", "mutate.py", args...), "\n"), "\n")
}

// TestReaderMutants: one byte, field or line of a recorded run is changed, and lengths and
// digests are corrected afterwards.
func TestReaderMutants(t *testing.T) {
	requirePython(t)
	var calls, others, intents []string
	for _, file := range packedRuns(t) {
		switch name := filepath.Base(file); {
		case strings.HasPrefix(name, "tool-"), strings.HasPrefix(name, "sdk-"):
			calls = append(calls, file)
		case strings.HasPrefix(name, "intents"):
			intents = append(intents, file)
		default:
			others = append(others, file)
		}
	}
	agree(t, slices.Concat(mutants(t, 127, calls), mutants(t, 331, others), mutants(t, 11, intents)))
}

// TestReaderContainers: fields of tar and gzip headers, padding, sizes and limits.
func TestReaderContainers(t *testing.T) {
	requirePython(t)
	for _, file := range packedRuns(t) {
		if filepath.Base(file) == "tool-allowed.tar.gz" {
			agree(t, mutants(t, "containers", []string{file}))
			return
		}
	}
	t.Fatal("the run tool-allowed is not there")
}

// TestReaderWrapped: the same of archives with all that wrappers record, and with the policy file of a run.
func TestReaderWrapped(t *testing.T) {
	requirePython(t)
	calls := callsArchive(t, "--no-kernel", "--policy", filepath.Join(callsBase(t), "policy.yaml"))
	agree(t, slices.Concat(mutants(t, 13, []string{wrappedArchive(t)}), mutants(t, 29, []string{calls}), []string{wrappedArchive(t), calls}))
}

func TestReaderMutantsOfCorpora(t *testing.T) {
	requirePython(t)
	agree(t, mutants(t, 613, otherArchives(t, "archive.tar.gz")))
}

// runOf is the run that the header of a stream names.
func runOf(data string) string {
	_, rest, _ := strings.Cut(data, `"run_id":"`)
	run, _, _ := strings.Cut(rest, `"`)
	return run
}

// refusal is where a stream is refused: by a stage that reads it, or by runner-verify.
// The name is empty if an archive is made of it and verifies.
func refusal(t *testing.T, stream, file string) (string, outcome) {
	t.Helper()
	stages := []string{"runner-normalize", "runner-correlate", "runner-pack", "runner-verify"}
	first := slices.Index([]string{"kernel.raw", "kernel.normalized", "run.joined"}, stream)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data := string(b)
	for _, stage := range stages[first:] {
		c := command(t, stage)
		switch stage {
		case "runner-pack":
			c = command(t, stage, "-o", "-")
		case "runner-correlate":
			_, logs := logFlags("../testdata/runs/" + runOf(data))
			c = command(t, stage, logs...)
		}
		c.Stdin = strings.NewReader(data)
		o := call(t, c)
		if o.code != 0 {
			return stage, o
		}
		data = o.stdout
	}
	return "", outcome{}
}

// TestReaderMutantStreams: what a stage refuses, the reader refuses. What the reader
// refuses, that stage or a later one refuses, or runner-verify: a stage passes on some
// records without reading them. Only stage healths are read by one stage and no other.
func TestReaderMutantStreams(t *testing.T) {
	requirePython(t)
	var files []string
	for _, run := range []string{"tool-allowed", "kernel-only", "network-blocked", "file-blocked", "intents"} {
		dir := "../testdata/runs/" + run + "/"
		files = append(files, "kernel.raw\t"+dir+"1-raw.ndjson", "kernel.normalized\t"+dir+"2-kernel.ndjson", "run.joined\t"+dir+"3-joined.ndjson")
	}
	files = mutants(t, 113, files)
	refused := 0
	for i, r := range readerSays(t, files) {
		stream, file, _ := strings.Cut(files[i], "\t")
		stage, o := refusal(t, stream, file)
		if stage != "" {
			refused++
		}
		switch {
		case stage != "" && stage != "runner-verify" && r.Exit == 0:
			t.Errorf("%s: %s refuses what the reader accepts: %v", files[i], stage, o)
		case stage == "" && r.Exit != 0 && !slices.Equal(r.Rules, []string{"stream.health"}):
			t.Errorf("%s: only the reader refuses: %q %q", files[i], r.Rules, r.Findings)
		}
	}
	t.Logf("%d streams, %d of them refused", len(files), refused)
}

// TestReaderFreshRuns: runs that are measured here and now, with processes, files,
// endpoints, refused connections, tool calls, an SDK log and times.
func TestReaderFreshRuns(t *testing.T) {
	requirePython(t)
	requireBPF(t)
	dir := shortDir(t)
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(`{"schema":"runner.policy.v0","rules":[{"id":"work","allow":"*"}],`+
		`"network":{"default":"allow","rules":[{"id":"no","deny":"127.0.0.9"}]}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	sdk := `n=0; for e in tool_call_started tool_call_completed; do
		printf '{"schema":"%s","run_id":"%s","seq":%d,"event_type":"%s","source":"test","tool_call_id":"a","tool":"other"}\n' \
			"$ASSAY_RUNNER_SDK_EVENT_SCHEMA" "$ASSAY_RUNNER_RUN_ID" $n $e >>"$ASSAY_RUNNER_SDK_EVENT_LOG"; n=1
	done; "$@"`
	call := func(args ...string) []string {
		return slices.Concat([]string{tool("mcp-client")}, args,
			[]string{"--", tool("runner-policy"), "--policy", policy, "--", tool("mcp-server")})
	}
	connect := []string{"bash", "-c", "exec 3<>/dev/tcp/127.0.0.9/9; exec 3<>/dev/tcp/127.0.0.1/1; exit 0"}
	var files []string
	for _, run := range []struct{ flags, argv []string }{
		{nil, []string{tool("kinds"), dir, "opens", "failures", "tree", "attrs"}},
		{[]string{"--canonical-pids"}, []string{tool("shapes"), "siblings", dir}},
		{[]string{"--no-kernel"}, []string{"true"}},
		{[]string{"--policy", policy}, connect},
		{[]string{"--policy", policy, "--times"}, call(`a=read_file={"path":"` + policy + `"}`)},
		{[]string{"--policy", policy, "--agent-shim", "openai-agents", "--times"},
			append([]string{"sh", "-c", sdk, "sh"}, call("-at-once", `a=barrier={"n":2}`, `b=barrier={"n":2}`)...)},
	} {
		_, m := record(t, run.flags, run.argv...)
		files = append(files, m.path)
	}
	agree(t, append(files, mutants(t, 211, files)...))
}

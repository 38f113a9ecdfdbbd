package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// hostileIntents writes a collected log of intents with a name, which is quoted already, where names can be.
func hostileIntents(t *testing.T, file, name string) {
	t.Helper()
	const run = "tool-times"
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamIntentLog, RunID: run, Tool: schemas.StageExec, Version: "test"})
	testkit.Must(t, err)
	path := strings.ReplaceAll(strings.ReplaceAll(name, "/", "_"), `\\`, `\\\\`) // one name; its text form
	payloads := [][2]string{
		{schemas.IntentFilesWrite, `{"path":"` + path + `","text":"` + name + `"}`},
		{schemas.IntentHTTPRequest, `{"method":"GET","url":"https://a.test/","text":"` + name + `"}`},
		{"other.kind", `{"` + name + `":"` + name + `"}`},
	}
	for i, p := range payloads {
		line := fmt.Sprintf(`{"schema":%q,"run_id":%q,"seq":%d,"intent_type":%q,"payload":%s}`, schemas.SchemaIntent, run, i, p[0], p[1])
		testkit.Must(t, w.Write(schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: run, Seq: uint64(i), Line: schemas.Text(line), ReceivedNS: uint64(1000 + i)}))
	}
	n := uint64(len(payloads))
	testkit.Must(t, w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: run, Stage: schemas.StageExec, In: n, Out: n, Filtered: map[string]uint64{}, Notes: []string{},
		Counters: map[string]uint64{schemas.CounterAfterEndBytes: 0, schemas.CounterBytes: 0, schemas.CounterDroppedBytes: 0, schemas.CounterLines: n},
		Facts:    map[string]string{schemas.FactReplaced: schemas.No, schemas.FactStopped: schemas.StoppedNot, schemas.FactUnterminated: schemas.No, schemas.FactWritersAtEnd: schemas.WritersNone}}))
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	write(t, file, b.String())
}

// TestIntentsShown: what a run asks to have done is on the first screen, is a log record in an export, and is no claim
// about what was done.
func TestIntentsShown(t *testing.T) {
	dir := t.TempDir()
	path, logs := packed(t, "intents", filepath.Join(dir, "run.tar.gz")), filepath.Join(dir, "logs")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"runner-show", path}, []string{"asks for", "1 files.write", "notes/today.txt", "1 http.request", "POST https://payments.example/v1/payments", "1 email.send", `{"subject":"done","to":["bob@example.org"]}`}},
		{[]string{"runner-otel", "--logs", logs, path}, []string{`"eventName":"runner.intent.files.write"`, `{"key":"runner.intent.idempotency_key","value":{"stringValue":"payment-1"}}`, `{"key":"runner.intent.amount","value":{"intValue":"1250"}}`}},
		{[]string{"runner-otel", "--sensitive", "--logs", logs, path}, []string{`{"key":"runner.intent.payload","value":{"stringValue":"{\"headers\":{\"accept\":\"application/json\"},\"json\":{\"amount\":12.50,`}},
		{[]string{"runner-verify", "-v", path}, []string{"the command itself reported 3 intents: what it wants to have done, of which the run did nothing"}},
	} {
		o := call(t, command(t, c.args[0], c.args[1:]...))
		if c.args[0] == "runner-otel" {
			o.stdout = string(testkit.Read(t, logs))
			testkit.Must(t, os.Remove(logs))
		}
		if strings.Contains(o.stdout, "alice") && len(c.want) != 1 {
			t.Errorf("%q shows what it was not asked for: %s", c.args, o.stdout)
		}
		for _, want := range c.want {
			if o.code != 0 || !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%q does not say %q: %s", c.args, want, testkit.Clip(fmt.Sprint(o)))
			}
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// timedRows writes records by hand: P DEPTH PID, or a kernel line of PID with or
// without a time.
func timedRows(rows []string, records uint64, counted bool) input {
	n := uint64(0)
	in := input{raw: func(w *stream.Writer) {
		for _, row := range rows {
			var depth, pid uint32
			if k, _ := fmt.Sscanf(row, "P %d %d", &depth, &pid); k == 2 {
				w.Write(schemas.Process{Schema: schemas.SchemaProcess, RunID: testRun, PID: pid, KernelPID: pid, Depth: depth})
				continue
			}
			if strings.HasPrefix(row, "{") {
				w.WriteRaw([]byte(row))
				continue
			}
			var tail string
			fmt.Sscanf(row, "%d %s", &pid, &tail)
			e := ev(schemas.EventUnlink, "/x")
			e.PID, e.Seq = pid, n
			n++
			line := e.AppendJSON(nil, testRun)
			if tail != "" {
				line = append(append(line[:len(line)-1], tail...), '}')
			}
			w.WriteRaw(line)
		}
	}}
	in.change = func(c, nz *schemas.StageHealth) {
		c.In, c.Out, nz.In, nz.Out = n, n, n, n
		for _, name := range []string{"read", "emitted", "seen"} {
			c.Counters[name] = n + 2
		}
		if counted {
			nz.Counters["process_records"] = records
		}
	}
	return in
}

func TestTimedStreams(t *testing.T) {
	at := func(pid int, ns string) string { return fmt.Sprintf(`%d ,"ktime_ns":%s`, pid, ns) }
	for _, c := range []struct {
		name    string
		rows    []string
		records uint64
		counted bool
		want    string // the error; "" is none
	}{
		{"complete", []string{"P 0 1", at(1, "5"), "P 1 2", at(2, "18446744073709551615"), "P 1 3", at(3, "0")}, 3, true, ""},
		{"no lines", nil, 0, true, ""},
		{"no times", []string{"1", "2"}, 0, false, ""},
		{"a line without a time", []string{"P 0 1", at(1, "5"), "1"}, 1, true, "some kernel lines have a ktime_ns"},
		{"the first line without a time", []string{"1", "P 0 1", at(1, "5")}, 1, true, "follows kernel lines without"},
		{"only a later line with a time", []string{"1", at(1, "5")}, 0, false, "some kernel lines have a ktime_ns"},
		{"a time without a process", []string{at(1, "5")}, 0, true, "some kernel lines have a ktime_ns"},
		{"a process record, but no time", []string{"P 0 1", "1"}, 1, true, "some kernel lines have a ktime_ns"},
		{"another process's line", []string{"P 0 1", at(2, "5")}, 1, true, "kernel line of pid 2 under the record of process 1"},
		{"a gap in depth", []string{"P 0 1", "P 2 2", at(2, "5")}, 2, true, "process of depth 2 below one of depth 0"},
		{"the first process has no parent", []string{"P 1 1", at(1, "5")}, 1, true, "process of depth 1 below one of depth -1"},
		{"a lost record", []string{"P 0 1", at(1, "5")}, 2, true, "wrote 2 process records, the stream has 1"},
		{"not counted", []string{"P 0 1", at(1, "5")}, 0, false, `no counter "process_records"`},
		{"counted, but no times", []string{"1"}, 0, true, "have no ktime_ns"},
		{"a leading zero", []string{"P 0 1", at(1, "05")}, 1, true, "leading zero"},
		{"too large", []string{"P 0 1", at(1, "18446744073709551616")}, 1, true, "too large"},
		{"far too large", []string{"P 0 1", at(1, "118446744073709551616")}, 1, true, "too large"},
		{"a sign", []string{"P 0 1", at(1, "-5")}, 1, true, "unsigned integer"},
		{"no digits", []string{"P 0 1", at(1, "")}, 1, true, "unsigned integer"},
		{"twice", []string{"P 0 1", at(1, `5,"ktime_ns":5`)}, 1, true, "must be the last key"},
		{"a bad record", []string{`{"schema":"runner.process.v0","run_id":"run_01","pid":1}`}, 1, true, "process: "},
		{"a record in another form", []string{`{"schema":"runner.process.v0","run_id":"run_01","depth":0,"kernel_pid":1,"pid":1}`, at(1, "5")}, 1, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, msg := call(timedRows(c.rows, c.records, c.counted).build(t))
			switch {
			case c.want == "" && code != 0:
				t.Errorf("exit %d: %s", code, msg)
			case c.want == "" && (bytes.Contains(out, []byte("ktime_ns")) || bytes.Contains(out, []byte(schemas.SchemaProcess))):
				t.Errorf("times are in the output:\n%s", out)
			case c.want != "" && (code != 3 || !strings.Contains(msg, c.want) || bytes.Contains(out, []byte(schemas.SchemaTrailer))):
				t.Errorf("exit %d: %s, expected 3 and %q", code, msg, c.want)
			}
		})
	}
}

// TestTimesWithoutLogs: a stream with times and one without give the same
// kernel layer, surface, report and health.
func TestTimesWithoutLogs(t *testing.T) {
	with, without := world{kernel: agent}, world{kernel: agent, untimed: true}
	for _, w := range []*world{&with, &without} {
		w.capture.notes = []string{schemas.NotePIDs.Format()}
	}
	a, b := join(t, with.stream(t), nil, nil), join(t, without.stream(t), nil, nil)
	strip := func(j *threeLayers) string {
		return strings.Replace(string(j.out), `,"process_records":3`, "", 1)[:strings.Index(string(j.out), `"stage":"runner-normalize"`)]
	}
	if strip(a) != strip(b) {
		t.Errorf("with\n%s\nwithout\n%s", a.out, b.out)
	}
}

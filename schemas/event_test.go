package schemas

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func TestRawRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := NewRawParser(testRun)
	for range 5000 {
		want := randomRaw(r)
		line := want.AppendJSON(nil, testRun)
		var got RawEvent
		if err := p.Parse(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("parsed differently\n got %+v\nwant %+v", got, want)
		}
		if again := got.AppendJSON(nil, testRun); !bytes.Equal(again, line) {
			t.Fatalf("written differently\n got %s\nwant %s", again, line)
		}
		for _, n := range []int{0, 1, r.IntN(len(line)), len(line) - 1} {
			if p.Parse(line[:n], &got) == nil {
				t.Fatalf("accepts a prefix: %s", line[:n])
			}
		}
	}
}

func TestKernelRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := NewKernelParser(testRun)
	for range 5000 {
		want := randomKernel(r)
		line := want.AppendJSON(nil, testRun)
		var got KernelEvent
		if err := p.Parse(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("parsed differently\n got %+v\nwant %+v", got, want)
		}
		if again := got.AppendJSON(nil, testRun); !bytes.Equal(again, line) {
			t.Fatalf("written differently\n got %s\nwant %s", again, line)
		}
	}
}

const rawStart = `{"schema":"runner.raw_event.v0","run_id":"run_01","seq":0,"op":"open","ktime_ns":1,"cgroup_id":2,"pid":3,"tid":4,"cpu":0,"cpu_seq":5`

func TestRawRefuses(t *testing.T) {
	p := NewRawParser(testRun)
	var e RawEvent
	if err := p.Parse([]byte(rawStart+"}"), &e); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, say string }{
		{"", "expected {"},
		{"null", "expected {"},
		{strings.Replace(rawStart, "run_01", "run_02", 1) + "}", "run_id is not the one"},
		{strings.Replace(rawStart, `"run_01",`, `"run_01" ,`, 1) + "}", "expected ,"},
		{strings.Replace(rawStart, `raw_event`, `raw_evenT`, 1) + "}", "expected {"},
		{strings.Replace(rawStart, `"open"`, `"opener"`, 1) + "}", "unknown word"},
		{strings.Replace(rawStart, `"pid":3`, `"pid":4294967296`, 1) + "}", "too large"},
		{strings.Replace(rawStart, `"pid":3`, `"pid":03`, 1) + "}", "leading zero"},
		{strings.Replace(rawStart, `"pid":3`, `"pid":-3`, 1) + "}", "unsigned"},
		{strings.Replace(rawStart, `"pid":3`, `"pid":3.0`, 1) + "}", "not a float"},
		{strings.Replace(rawStart, `"pid":3,"tid":4`, `"tid":4,"pid":3`, 1) + "}", "expected"},
		{rawStart, "expected a comma or the end"},
		{rawStart + "}}", "data after"},
		{rawStart + "}\n", "data after"},
		{rawStart + ",}", "expected a key"},
		{rawStart + `,"ret":}`, "unsigned integer"},
		{rawStart + `,"ret":-0}`, "minus zero"},
		{rawStart + `,"ret":9223372036854775808}`, "too large"},
		{rawStart + `,"ret":-9223372036854775809}`, "too large"},
		{rawStart + `,"flags":18446744073709551616}`, "too large"},
		{rawStart + `,"ret":1,"ret":1}`, "repeated or out of order"},
		{rawStart + `,"flags":1,"ret":1}`, "repeated or out of order"},
		{rawStart + `,"colour":1}`, "unknown key"},
		{rawStart + `,"Ret":1}`, "expected a key"},
		{rawStart + `,"path":null}`, "expected a string"},
		{rawStart + `,"path":"a}`, "without an end"},
		{rawStart + `,"path":"a\`, "bad escape"},
		{rawStart + `,"path":"` + "a\nbcdefghijk" + `"}`, "control character"},
		{rawStart + `,"path":"` + "abcdefghijk\xff" + `"}`, "UTF-8"},
		{rawStart + `,"path":"\ud800"}`, "bad escape"},
		{rawStart + `,"path":"\udc00\ud800"}`, "bad escape"},
		{rawStart + `,"path":"\ud800\u0041"}`, "bad escape"},
		{rawStart + `,"path":"\x"}`, "bad escape"},
		{rawStart + `,"path":"a\\b"}`, "not an escaped byte string"},
		{rawStart + `,"path":"a\\x41"}`, "not an escaped byte string"},
		{rawStart + `,"child_pid":1}`, "child_tid"},
		{rawStart + `,"child_tid":1}`, "unknown key"},
		{rawStart + `,"ns_pid":1}`, "pid_ns"},
		{rawStart + `,"pid_ns":1}`, "unknown key"},
		{rawStart + `,"marks":[]}`, "expected a string"},
		{rawStart + `,"marks":["deleted","chroot"]}`, "out of order"},
		{rawStart + `,"marks":["deleted","deleted"]}`, "out of order"},
		{rawStart + `,"marks":["gone"]}`, "unknown"},
		{rawStart + `,"marks":["deleted"}`, "expected ]"},
	} {
		err := p.Parse([]byte(c.line), &e)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: got %v, want %q", c.line, err, c.say)
		}
		var le *LineError
		if err != nil && (!errors.As(err, &le) || le.Offset > len(c.line)) {
			t.Errorf("%q: not a LineError inside the line: %#v", c.line, err)
		}
	}
	if err := p.Parse([]byte(strings.Replace(rawStart, "run_01", "run_02", 1)+"}"), &e); !errors.Is(err, ErrRunID) {
		t.Errorf("another run: %v, want ErrRunID", err)
	}
}

const kernelStart = `{"schema":"assay.runner.kernel_event.v0","run_id":"run_01","seq":0,"pid":3,"event_type":1,"kind":"openat","value":"/x"`

func TestKernelRefuses(t *testing.T) {
	p := NewKernelParser(testRun)
	var e KernelEvent
	for _, good := range []string{
		kernelStart + `}`,
		kernelStart + `,"operation_flags":[]}`,
		kernelStart + `,"operation_flags":["exclusive","create"],"flags":1}`,
		`{"value":null,"kind":"event_7","event_type":7,"pid":3,"seq":0,"run_id":"run_01","schema":"assay.runner.kernel_event.v0"}`,
		`{"value":"","kind":"sendmsg","event_type":7,"pid":3,"seq":0,"run_id":"run_01","schema":"assay.runner.kernel_event.v0"}`,
		kernelStart + `,"return_value":-2,"status":"success"}`, // whether they fit is judged elsewhere
	} {
		if err := p.Parse([]byte(good), &e); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	kind := func(eventType, kind string) string {
		return strings.NewReplacer(`:1,`, `:`+eventType+`,`, `"openat"`, `"`+kind+`"`).Replace(kernelStart) + "}"
	}
	for _, c := range []struct{ line, say string }{
		{"{}", "expected a key"},
		{strings.Replace(kernelStart, `,"value":"/x"`, ``, 1) + "}", "missing"},
		{strings.Replace(kernelStart, `"seq":0,`, ``, 1) + "}", "missing"},
		{strings.Replace(kernelStart, `run_01`, `run_02`, 1) + "}", "run_id"},
		{kernelStart + `,"seq":0}`, "repeated"},
		{kernelStart + `,"flags":0,"flags":0}`, "repeated"},
		{kernelStart + `,"colour":0}`, "unknown key"},
		{kernelStart + `,"status":"success"}`, "status without return_value"},
		{kernelStart + `,"return_value":1,"status":"fine"}`, "unknown word"},
		{kernelStart + `,"resolve":0}`, "at least 1"},
		{kernelStart + `,"network_port":65536}`, "too large"},
		{kernelStart + `,"operation_flags":["create","create"]}`, "repeated"},
		{kernelStart + `,"operation_flags":["execute"]}`, "unknown"},
		{kernelStart + `,"access_mode":"execute"}`, "unknown word"},
		{kernelStart + `} `, "data after"},
		{kind("1", "connect"), "does not go with"},
		{kind("1", "event_1"), "does not go with"},
		{kind("6", "sendmsg"), "does not go with"},
		{kind("3", "event_03"), "does not go with"},
		{kind("3", "event_4"), "does not go with"},
		{kind("999", "event_998"), "does not go with"},
		{kind("999", "openat"), "does not go with"},
	} {
		if err := p.Parse([]byte(c.line), &e); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want %q", c.line, err, c.say)
		}
	}
	if err := p.Parse([]byte(strings.Replace(kernelStart, "run_01", "run_02", 1)+"}"), &e); !errors.Is(err, ErrRunID) {
		t.Errorf("another run: %v, want ErrRunID", err)
	}
}

// Parsing a good line must not allocate: the stages parse millions.
func TestParsersDoNotAllocate(t *testing.T) {
	_, raw := benchRaw()
	_, kernel := benchKernel()
	escaped := []byte(rawStart + `,"path":"/a\\\\b\n\u00e9","user_path":"\\\\"}`)
	rp, kp := NewRawParser(testRun), NewKernelParser(testRun)
	var re RawEvent
	var ke KernelEvent
	buf := make([]byte, 0, 1024)
	for name, f := range map[string]func(){
		"raw":     func() { testkit.Must(t, rp.Parse(raw, &re)); buf = re.AppendJSON(buf[:0], testRun) },
		"kernel":  func() { testkit.Must(t, kp.Parse(kernel, &ke)); buf = ke.AppendJSON(buf[:0], testRun) },
		"escaped": func() { testkit.Must(t, rp.Parse(escaped, &re)) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations a line", name, n)
		}
	}
}

func TestOpenFlags(t *testing.T) {
	for _, c := range []struct {
		flags  uint64
		access string
		ops    string
	}{
		{0, "read", "[]"},
		{577, "write", `["create","truncate"]`},
		{0o2 | 0o100 | 0o200 | 0o400, "read_write", `["create","exclusive"]`},
		{0o100 | 0o400, "read", `["create"]`},
		{3 | 0o2000, "unknown", `["append"]`},
		{1<<63 | 0o3300, "read", `["create","truncate","append","exclusive"]`},
	} {
		if got := AccessMode(c.flags); got != c.access {
			t.Errorf("AccessMode(%#o) = %s, want %s", c.flags, got, c.access)
		}
		if got := AppendOperationFlags(nil, OperationsOf(c.flags)); string(got) != c.ops {
			t.Errorf("operations of %#o = %s, want %s", c.flags, got, c.ops)
		}
	}
}

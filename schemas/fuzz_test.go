package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rawJSON and kernelJSON are the lines as general decoders see them.
type rawJSON struct {
	Schema    string     `json:"schema"`
	RunID     string     `json:"run_id"`
	Seq       uint64     `json:"seq"`
	Op        string     `json:"op"`
	KtimeNS   uint64     `json:"ktime_ns"`
	CgroupID  uint64     `json:"cgroup_id"`
	PID       uint32     `json:"pid"`
	TID       uint32     `json:"tid"`
	CPU       uint32     `json:"cpu"`
	CPUSeq    uint64     `json:"cpu_seq"`
	Probe     *uint8     `json:"probe"`
	Ret       *int64     `json:"ret"`
	Flags     *uint64    `json:"flags"`
	Mode      *uint64    `json:"mode"`
	Resolve   *uint64    `json:"resolve"`
	Path      *string    `json:"path"`
	UserPath  *string    `json:"user_path"`
	Base      *string    `json:"base"`
	Path2     *string    `json:"path2"`
	UserPath2 *string    `json:"user_path2"`
	Base2     *string    `json:"base2"`
	Interp    *string    `json:"interp"`
	OldTID    *uint32    `json:"old_tid"`
	ChildPID  *uint32    `json:"child_pid"`
	ChildTID  *uint32    `json:"child_tid"`
	Family    *uint32    `json:"family"`
	Addr      *string    `json:"addr"`
	Socket    *uint64    `json:"socket"`
	Source    string     `json:"source"`
	Rule      *uint32    `json:"rule"`
	Hook      string     `json:"hook"`
	ExitCode  *int64     `json:"exit_code"`
	DstCgroup *uint64    `json:"dst_cgroup_id"`
	FileType  string     `json:"file_type"`
	UID       *uint32    `json:"uid"`
	GID       *uint32    `json:"gid"`
	MountNS   *uint32    `json:"mount_ns"`
	Root      *string    `json:"root"`
	NSPID     *uint32    `json:"ns_pid"`
	PIDNS     *uint32    `json:"pid_ns"`
	Arguments *Arguments `json:"arguments"`
	Marks     []string   `json:"marks"`
}

// opt unpacks an optional number and notes its presence.
func opt[N any, H ~uint16](has *H, bit H, v *N) (n N) {
	if v != nil {
		*has |= bit
		n = *v
	}
	return n
}

func text(v *string) []byte {
	if v == nil {
		return nil
	}
	return []byte(*v)
}

func (j *rawJSON) event() (e RawEvent) {
	e = RawEvent{Seq: j.Seq, Op: j.Op, KtimeNS: j.KtimeNS, CgroupID: j.CgroupID, PID: j.PID, TID: j.TID, CPU: j.CPU, CPUSeq: j.CPUSeq,
		Path: text(j.Path), UserPath: text(j.UserPath), Base: text(j.Base), UserPath2: text(j.UserPath2), Base2: text(j.Base2),
		Interp: text(j.Interp), Addr: text(j.Addr), Root: text(j.Root), Arguments: j.Arguments, Source: j.Source, Hook: j.Hook, FileType: j.FileType}
	e.Ret = opt(&e.Has, HasRet, j.Ret)
	e.Flags = opt(&e.Has, HasFlags, j.Flags)
	e.Mode = opt(&e.Has, HasMode, j.Mode)
	e.Resolve = opt(&e.Has, HasResolve, j.Resolve)
	e.OldTID = opt(&e.Has, HasOldTID, j.OldTID)
	e.ChildPID = opt(&e.Has, HasChild, j.ChildPID)
	e.ChildTID = opt(&e.Has, HasChild, j.ChildTID)
	e.Family = opt(&e.Has, HasFamily, j.Family)
	e.ExitCode = opt(&e.Has, HasExitCode, j.ExitCode)
	e.DstCgroupID = opt(&e.Has, HasDstCgroup, j.DstCgroup)
	e.Rule = opt(&e.Has, HasRule, j.Rule)
	e.Socket = opt(&e.Has, HasSocket, j.Socket)
	e.Probe = opt(&e.Has, HasProbe, j.Probe)
	e.UID, e.GID, e.MountNS = opt(&e.Has, HasContext, j.UID), opt(&e.Has, HasContext, j.GID), opt(&e.Has, HasContext, j.MountNS)
	e.NSPID, e.PIDNS = opt(&e.Has, HasNSPID, j.NSPID), opt(&e.Has, HasNSPID, j.PIDNS)
	for _, m := range j.Marks {
		e.Marks |= rawMarks()[m]
	}
	return e
}

type kernelJSON struct {
	Schema      string   `json:"schema"`
	RunID       string   `json:"run_id"`
	Seq         uint64   `json:"seq"`
	PID         uint32   `json:"pid"`
	EventType   uint32   `json:"event_type"`
	Kind        string   `json:"kind"`
	Value       *string  `json:"value"`
	CgroupID    *uint64  `json:"cgroup_id"`
	Destination *string  `json:"network_destination"`
	Port        *uint16  `json:"network_port"`
	RuleID      *uint32  `json:"rule_id"`
	Flags       *uint64  `json:"flags"`
	Mode        *uint64  `json:"mode"`
	Resolve     *uint64  `json:"resolve"`
	ReturnValue *int64   `json:"return_value"`
	AccessMode  string   `json:"access_mode"`
	Operations  []string `json:"operation_flags"`
	Status      string   `json:"status"`
}

func (j *kernelJSON) event() (e KernelEvent) {
	e = KernelEvent{Seq: j.Seq, PID: j.PID, EventType: j.EventType, Kind: j.Kind, Value: text(j.Value),
		Destination: text(j.Destination), AccessMode: j.AccessMode, Status: j.Status}
	e.CgroupID = opt(&e.Has, KernelHasCgroupID, j.CgroupID)
	e.Port = opt(&e.Has, KernelHasPort, j.Port)
	e.RuleID = opt(&e.Has, KernelHasRuleID, j.RuleID)
	e.Flags = opt(&e.Has, KernelHasFlags, j.Flags)
	e.Mode = opt(&e.Has, KernelHasMode, j.Mode)
	e.Resolve = opt(&e.Has, KernelHasResolve, j.Resolve)
	e.ReturnValue = opt(&e.Has, KernelHasReturn, j.ReturnValue)
	for _, o := range j.Operations {
		for i, name := range operationNames {
			if o == name {
				e.Operations |= 1 << i
			}
		}
	}
	return e
}

// decoders are general JSON decoders that must read an accepted line the same.
var decoders = map[string]func([]byte, any) error{
	"go-json":       Unmarshal,
	"encoding/json": func(b []byte, v any) error { return json.Unmarshal(b, v) },
}

func FuzzRawParser(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 20 {
		e := randomRaw(r)
		f.Add(e.AppendJSON(nil, testRun))
	}
	usual, strict := NewRawParser(testRun), NewRawParser(testRun)
	f.Add([]byte(rawStart + `,"path":"\u00e9\ud83d\ude00\/\\\\","marks":["deleted"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		var e RawEvent
		err := NewRawParser(testRun).Parse(line, &e)
		for range 2 { // the second time it knows the operation
			strictly(t, usual, strict, line)
		}
		if !bytes.Equal(line, before) {
			t.Fatal("Parse changed the line")
		}
		if err != nil {
			return
		}
		for name, decode := range decoders {
			var j rawJSON
			if err := decode(line, &j); err != nil {
				t.Fatalf("%s refuses what Parse accepts: %v", name, err)
			}
			if got := j.event(); !reflect.DeepEqual(got, e) || j.RunID != testRun || j.Schema != SchemaRawEvent {
				t.Fatalf("%s reads\n%+v\nParse read\n%+v", name, got, e)
			}
		}
		var again RawEvent
		if err := NewRawParser(testRun).Parse(e.AppendJSON(nil, testRun), &again); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("written and read again: %v\n%+v\n%+v", err, again, e)
		}
	})
}

func FuzzKernelParser(f *testing.F) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 20 {
		e := randomKernel(r)
		f.Add(e.AppendJSON(nil, testRun))
	}
	f.Add([]byte(kernelStart + `,"operation_flags":[],"network_destination":"\u00e9\ud83d\ude00\/\\"}`))
	for _, value := range []string{`/a\u0001`, `/a\u001F`, `/a\u001f`, `/a\u0009`, `/a\t`, `/a\/`, `/a\u0041`, `\u002f`, `\"`, `\u0022`, `\ud83d\ude00`, `\u007f`} {
		f.Add([]byte(`{"schema":"assay.runner.kernel_event.v0","run_id":"` + testRun + `","seq":0,"pid":1,"event_type":211,"kind":"event_211","value":"` + value + `"}`))
	}
	for _, line := range timedLines {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		bothWays(t, line)
		before := bytes.Clone(line)
		var e KernelEvent
		p := NewKernelParser(testRun)
		err := p.Parse(line, &e)
		if again := e.AppendJSON(nil, testRun); err == nil && p.Canonical() && !bytes.Equal(again, line) {
			t.Fatalf("called canonical is\n%s, expected\n%s", line, again)
		}
		if !bytes.Equal(line, before) {
			t.Fatal("Parse changed the line")
		}
		if err != nil {
			return
		}
		for name, decode := range decoders {
			var j kernelJSON
			if err := decode(line, &j); err != nil {
				t.Fatalf("%s refuses what Parse accepts: %v", name, err)
			}
			if got := j.event(); !reflect.DeepEqual(got, e) || j.RunID != testRun || j.Schema != SchemaKernelEvent {
				t.Fatalf("%s reads\n%+v\nParse read\n%+v", name, got, e)
			}
		}
		var again KernelEvent
		if err := NewKernelParser(testRun).Parse(e.AppendJSON(nil, testRun), &again); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("written and read again: %v\n%+v\n%+v", err, again, e)
		}
	})
}

// remembers is a parser that has read the lines before: what it knows of them changes no result.
var remembers = NewKernelParser(testRun)

// bothWays reads a line with the parser for canonical lines and with the one for all
// lines, with and without a time, and compares the results.
func bothWays(t *testing.T, line []byte) (accepted bool) {
	t.Helper()
	for _, timed := range []bool{false, true} {
		p, q := NewKernelParser(testRun), NewKernelParser(testRun)
		p.timed, q.timed, remembers.timed = timed, timed, timed
		var e, f, g KernelEvent
		errE, errF := p.read(line, &e), q.strict(line, &f)
		for range 3 { // the third time it knows the whole line
			errG := remembers.read(line, &g)
			if fmt.Sprint(errE) != fmt.Sprint(errG) || errE == nil && (!reflect.DeepEqual(e, g) || remembers.time != p.time || remembers.canonical != p.canonical) {
				t.Fatalf("%s\nread              %v %+v\nby one that knows %v %+v", line, errE, e, errG, g)
			}
		}
		if (errE == nil) != (errF == nil) || errE != nil && errE.Error() != errF.Error() {
			t.Fatalf("%s\nread: %v, strict: %v", line, errE, errF)
		}
		if errE != nil {
			continue
		}
		accepted = true
		if !reflect.DeepEqual(e, f) || p.time != q.time {
			t.Fatalf("%s\nread   %+v %+v\nstrict %+v %+v", line, e, p.time, f, q.time)
		}
		if p.time.At > 0 {
			// What is left without the time is the same event, and has none.
			left := append(bytes.Clone(p.time.Without(line)), '}')
			var g KernelEvent
			if err := NewKernelParser(testRun).Parse(left, &g); err != nil || !reflect.DeepEqual(e, g) {
				t.Fatalf("%s\nwithout its time %s: %v\n%+v\n%+v", line, left, err, e, g)
			}
		}
	}
	return accepted
}

// timedLines are lines with a time, or what looks like one.
var timedLines = []string{
	kernelStart + `,"ktime_ns":0}`,
	kernelStart + `,"return_value":-2,"status":"error","ktime_ns":18446744073709551615}`,
	kernelStart + `,"ktime_ns":5,"status":"error"}`,
	kernelStart + `,"ktime_ns":5,"ktime_ns":5}`,
	kernelStart + `,"ktime_ns":05}`,
	kernelStart + `,"ktime_ns":18446744073709551616}`,
	kernelStart + `,"ktime_ns":}`,
	kernelStart + `,"ktime_ns":1`,
	strings.Replace(kernelStart, `"/x"`, `"/x\",\"ktime_ns\":5"`, 1) + `}`,
	strings.Replace(kernelStart, `"/x"`, `","ktime_ns":5`, 1) + `}`,
	`{"ktime_ns":5}`,
}

// TestTwoWays makes small changes to valid lines: both parsers always agree.
func TestTwoWays(t *testing.T) {
	for _, line := range timedLines {
		bothWays(t, []byte(line))
	}
	r := rand.New(rand.NewPCG(17, 18))
	const bytesOf = `"\,:{}[]09-e.nulctx_` + "\x00\x1f\x80\xff"
	good, bad, quick := 0, 0, 0
	for range 3000 {
		e := randomKernel(r)
		if maybe(r) {
			e.Operations, e.Status = 0, ""
			if e.Has&KernelHasFlags != 0 {
				e.Operations = OperationsOf(e.Flags)
			}
		}
		line := e.AppendJSON(nil, testRun)
		if maybe(r) {
			line = append(strconv.AppendUint(append(line[:len(line)-1], timeKey...), randomUint(r), 10), '}')
		}
		p := NewKernelParser(testRun)
		p.timed = true
		p.s.reset(line)
		if p.fast(&KernelEvent{}) {
			quick++
		}
		if !bothWays(t, line) {
			t.Fatalf("refused: %s", line)
		}
		for range 20 {
			damaged := bytes.Clone(line)
			switch at := r.IntN(len(damaged)); r.IntN(4) {
			case 0:
				damaged[at] = bytesOf[r.IntN(len(bytesOf))]
			case 1:
				damaged = slices.Delete(damaged, at, at+1)
			case 2:
				damaged = slices.Insert(damaged, at, bytesOf[r.IntN(len(bytesOf))])
			case 3:
				damaged = damaged[:at]
			}
			if bothWays(t, damaged) {
				good++
			} else {
				bad++
			}
		}
	}
	if good < 500 || bad < 500 || quick < 500 {
		t.Errorf("%d damaged lines accepted, %d refused, %d read the quick way: not enough of each to compare", good, bad, quick)
	}
}

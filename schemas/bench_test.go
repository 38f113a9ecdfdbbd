package schemas

import "testing"

// benchRaw is a raw line of the usual size.
func benchRaw() (RawEvent, []byte) {
	e := RawEvent{
		Seq: 123456, Op: "openat", KtimeNS: 987654321012345, CgroupID: 54321, PID: 41234, TID: 41235, CPU: 1, CPUSeq: 61234,
		Has: HasRet | HasFlags | HasMode, Ret: 3, Flags: 0o2101101, Mode: 0o644,
		Path:     []byte("/home/agent/work/project/internal/package/testdata/some/fixture-file-000123.json"),
		UserPath: []byte("testdata/some/fixture-file-000123.json"),
	}
	return e, e.AppendJSON(nil, "run_01")
}

func benchKernel() (KernelEvent, []byte) {
	e := KernelEvent{
		Seq: 123456, PID: 41234, EventType: EventOpenat, Kind: "openat",
		Value: []byte("/home/agent/work/project/internal/package/testdata/some/fixture-file-000123.json"),
		Has:   KernelHasFlags | KernelHasMode | KernelHasReturn, Flags: 0o2101101, Mode: 0o644, ReturnValue: 3,
		AccessMode: "write", Operations: OperationCreate | OperationTruncate, Status: StatusSuccess,
	}
	return e, e.AppendJSON(nil, "run_01")
}

func BenchmarkRawParser(b *testing.B) {
	_, line := benchRaw()
	p := NewRawParser("run_01")
	var e RawEvent
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Parse(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRawAppend(b *testing.B) {
	e, line := benchRaw()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		line = e.AppendJSON(line[:0], "run_01")
	}
}

func BenchmarkKernelParser(b *testing.B) {
	_, line := benchKernel()
	p := NewKernelParser("run_01")
	var e KernelEvent
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Parse(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKernelAppend(b *testing.B) {
	e, line := benchKernel()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		line = e.AppendJSON(line[:0], "run_01")
	}
}

func BenchmarkEffect(b *testing.B) {
	open, _ := benchKernel()
	unlink := KernelEvent{EventType: EventUnlink, Value: open.Value, Status: StatusSuccess}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range [...]*KernelEvent{&open, &unlink} {
			buf = AppendEffect(buf[:0], e)
		}
	}
}

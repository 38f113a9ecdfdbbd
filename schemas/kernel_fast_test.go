package schemas

import "testing"

// BenchmarkKernelLine shows what the short way of kernel_fast.go gains over the strict
// parser on the same line:
//
//	go test ./schemas -run '^$' -bench KernelLine
func BenchmarkKernelLine(b *testing.B) {
	open, _ := benchKernel()
	exec := KernelEvent{Seq: 7, PID: 41234, EventType: EventExec, Kind: KindOf(EventExec), Value: []byte("/usr/bin/env"),
		Has: KernelHasReturn, Status: StatusSuccess}
	connect := KernelEvent{Seq: 8, PID: 41234, EventType: EventConnect, Kind: KindOf(EventConnect), Value: []byte("10.0.0.1:443"),
		Has: KernelHasPort | KernelHasReturn, Destination: []byte("10.0.0.1"), Port: 443, ReturnValue: -115, Status: StatusError}
	for _, c := range []struct {
		name  string
		event KernelEvent
	}{{"open", open}, {"exec", exec}, {"connect", connect}} {
		line := c.event.AppendJSON(nil, "run_01")
		p := NewKernelParser("run_01")
		var e KernelEvent
		run := func(name string, parse func([]byte, *KernelEvent) error) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(line)))
				for b.Loop() {
					if err := parse(line, &e); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("again", p.Parse)
		run("fast", func(line []byte, e *KernelEvent) error {
			p.again.forget() // or it is the line before
			return p.Parse(line, e)
		})
		run("plain", p.strict)
		p.s.reset(line)
		if !p.fast(&e) {
			b.Errorf("%s is not read the short way", line)
		}
	}
}

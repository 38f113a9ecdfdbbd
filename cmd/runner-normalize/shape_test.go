package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

func TestShapes(t *testing.T) {
	s := newShapes()
	var packed, want []byte
	results := []int16{noResult, 0, -111}
	add := func(k schemas.KernelEvent) {
		packed = s.pack(packed, &k)
		want = append(k.AppendJSON(want, "r"), '\n')
	}
	for i := range 3 * maxShapes {
		v := []byte("/a\"b\\\\\n")
		switch i % 3 {
		case 0:
			v = nil
		case 1:
			v = []byte{}
		}
		k := schemas.KernelEvent{EventType: schemas.EventOpenat, Value: v, Has: schemas.KernelHasReturn, ReturnValue: int64(i), Status: schemas.StatusSuccess}
		add(k)
		add(k)
		k.Status = ""
		add(k)
		k.Has, k.ReturnValue, k.EventType = 0, 0, 999
		add(k)
		k.EventType, k.Has, k.Resolve, k.Flags, k.Mode = 1, schemas.KernelHasResolve|schemas.KernelHasFlags|schemas.KernelHasMode, 1, 0o101, 2
		k.AccessMode, k.Operations = schemas.AccessMode(k.Flags), schemas.OperationsOf(k.Flags)
		add(k)
	}
	for i, result := range results {
		k := schemas.KernelEvent{EventType: schemas.EventConnect, Value: []byte("1.1.1.1:1"), Has: schemas.KernelHasReturn, ReturnValue: eInProgress}
		packed = s.packPending(packed, &k, i)
		if result != noResult {
			k.Has, k.ConnectResult = k.Has|schemas.KernelHasConnectResult, int64(result)
		}
		want = append(k.AppendJSON(want, "r"), '\n')
	}
	if len(s.texts) != maxShapes {
		t.Errorf("%d shapes", len(s.texts))
	}
	var got []byte
	for len(packed) > 0 {
		var line shortLine
		line, packed = s.unpack(packed, results)
		got = line.appendDetails(append(append(schemas.AppendKernelHead(got, "r", 0, 0), line.shape.operation...), line.text...))
		got = append(got, schemas.KernelEnd+"\n"...)
	}
	if string(got) != string(want) {
		t.Error("lines changed")
	}
}

//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const mostRecord = 50 << 10

// ringWriter is a ring, and a program that writes the first bytes of the map value to it.
type ringWriter struct {
	t           *testing.T
	ring, value *ebpf.Map
	prog        *ebpf.Program
}

func newRingWriter(t *testing.T, size int) *ringWriter {
	t.Helper()
	w := &ringWriter{t: t}
	var err error
	w.ring, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(size)})
	if err == nil {
		w.value, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8 + mostRecord, MaxEntries: 1})
	}
	if err == nil {
		w.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "Dual BSD/GPL", Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, w.value.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "lost"),
			asm.LoadMem(asm.R3, asm.R0, 0, asm.DWord),
			asm.JGT.Imm(asm.R3, mostRecord, "lost"),
			asm.Mov.Reg(asm.R2, asm.R0),
			asm.Add.Imm(asm.R2, 8),
			asm.LoadMapPtr(asm.R1, w.ring.FD()),
			asm.Mov.Imm(asm.R4, 1), // no wake-up
			asm.FnRingbufOutput.Call(),
			asm.JNE.Imm(asm.R0, 0, "lost"),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("lost"),
			asm.Return(),
		}})
	}
	if err != nil {
		testkit.Missing(t, "a ring", err)
	}
	t.Cleanup(func() { w.ring.Close(); w.value.Close(); w.prog.Close() })
	return w
}

// record is the content of record number i of n bytes.
func record(i, n int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(i*7 + k*3)
	}
	return b
}

// write reports whether the ring had room.
func (w *ringWriter) write(i, n int) bool {
	w.t.Helper()
	value := make([]byte, 8+mostRecord)
	binary.NativeEndian.PutUint64(value, uint64(n))
	copy(value[8:], record(i, n))
	testkit.Must(w.t, w.value.Put(uint32(0), value))
	done, err := w.prog.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		w.t.Fatal(err)
	}
	return done == 1
}

// TestRing writes records of many lengths to rings of many sizes, and reads them as they were written.
func TestRing(t *testing.T) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 4 << 20} {
		w := newRingWriter(t, size)
		r, err := NewRing(w.ring)
		if err != nil {
			t.Fatal(err)
		}
		var rec ringbuf.Record
		written, read, bytes := 0, 0, 0
		drain := func() {
			r.SetDeadline(time.Now())
			for {
				err := r.ReadInto(&rec)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := record(read, lengthOf(read, size)); string(rec.RawSample) != string(want) {
					t.Fatalf("ring of %d: record %d is another one", size, read)
				}
				read++
			}
		}
		for i := 0; bytes < 3*size || i < 300; i++ {
			n := lengthOf(i, size)
			if !w.write(i, n) {
				drain()
				if r.AvailableBytes() != 0 || !w.write(i, n) {
					t.Fatalf("ring of %d: record %d of %d bytes has no room in an empty ring", size, i, n)
				}
			}
			written++
			bytes += n + ringHead
			if len(r.window) > ringWindow {
				t.Fatalf("ring of %d: %d bytes are mapped", size, len(r.window))
			}
		}
		if drain(); read != written || r.AvailableBytes() != 0 {
			t.Errorf("ring of %d: %d of %d records read", size, read, written)
		}
		r.Close()
	}
}

// lengthOf is the length of record i: small ones, and some of nearly the most that fits.
func lengthOf(i, size int) int {
	if i%13 == 12 {
		return min(mostRecord, size-2*ringHead) - i%8
	}
	return 1 + i*37%(min(size, 4096)/4)
}

// TestRingFlush: Flush ends a wait after what is there, also one that comes before it; and after Close it touches nothing.
func TestRingFlush(t *testing.T) {
	w := newRingWriter(t, 64<<10)
	r, err := NewRing(w.ring)
	if err != nil {
		t.Fatal(err)
	}
	if !w.write(0, 100) {
		t.Fatal("no room")
	}
	testkit.Must(t, r.Flush())
	var rec ringbuf.Record
	if err := r.ReadInto(&rec); err != nil || len(rec.RawSample) != 100 {
		t.Fatal(err, len(rec.RawSample))
	}
	if err := r.ReadInto(&rec); !errors.Is(err, ringbuf.ErrFlushed) {
		t.Fatal(err)
	}
	go func() { time.Sleep(20 * time.Millisecond); r.Flush() }()
	if err := r.ReadInto(&rec); !errors.Is(err, ringbuf.ErrFlushed) {
		t.Fatal(err)
	}
	r.Close()
	if err := r.Flush(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestRingMoved: what does not begin where a record begins is an error, and no record.
func TestRingMoved(t *testing.T) {
	w := newRingWriter(t, 64<<10)
	r, err := NewRing(w.ring)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 4 {
		w.write(i, 200)
	}
	var rec ringbuf.Record
	r.SetDeadline(time.Now())
	binary.NativeEndian.PutUint64(r.cons, position(r.prod)+8) // beyond what was written
	if err := r.ReadInto(&rec); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what was not written was read: ", err)
	}
	binary.NativeEndian.PutUint64(r.cons, 16) // into the first record
	if err := r.ReadInto(&rec); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what is inside of a record was read as one: ", err)
	}
}

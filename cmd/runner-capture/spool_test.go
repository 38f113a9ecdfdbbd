package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// What goes in comes out, in order, from memory or from disk, at any mix of speeds.
func TestSpoolOrder(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newSpool(1 << 20)
		var want, got bytes.Buffer
		done := make(chan error, 1)
		go func() {
			for {
				c, err := s.get()
				if err == io.EOF {
					done <- nil
					return
				}
				if err != nil {
					done <- err
					return
				}
				got.Write(c.b)
				s.release(c.b)
			}
		}()
		for i := range 3000 {
			b := fmt.Appendf(s.buffer(), "%d:%d\n", i, rnd.Uint32())
			b = append(b, bytes.Repeat([]byte("x"), rnd.IntN(3000))...)
			want.Write(b)
			if err := s.put(chunk{b, 1}); err != nil {
				t.Fatal(err)
			}
		}
		s.finish()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Fatalf("seed %d: %d bytes in, %d out, or in another order", seed, want.Len(), got.Len())
		}
	}
}

// A stopped reader costs disk up to the limit and never blocks before it.
func TestSpoolHoldsBackOnDisk(t *testing.T) {
	s, rnd := newSpool(64<<10), rand.New(rand.NewPCG(3, 4))
	put := 0
	for ; put < memoryChunks+64; put++ { // 16 in memory, 64 KiB on disk
		if err := s.put(chunk{noise(rnd, 1024), 1}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Spooled != 64<<10 {
		t.Errorf("%d bytes went to disk, expected %d", s.Spooled, 64<<10)
	}
	full := make(chan error, 1)
	go func() { full <- s.put(chunk{[]byte("one more"), 1}) }()
	for range put {
		if _, err := s.get(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-full; err != nil {
		t.Fatal(err)
	}
	c, err := s.get()
	if err != nil || string(c.b) != "one more" {
		t.Errorf("%q, %v", c.b, err)
	}
}

// noise is bytes that do not compress.
func noise(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// Lines are compressed on disk: much more than the limit fits.
func TestSpoolPacks(t *testing.T) {
	s := newSpool(64 << 10)
	line := bytes.Repeat([]byte(`{"schema":"runner.raw_event.v0"}`+"\n"), chunkSize/34)
	const chunks = memoryChunks + 50
	for range chunks {
		if err := s.put(chunk{append(s.buffer(), line...), 1}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Spooled != 50*uint64(len(line)) || s.wr > s.limit {
		t.Errorf("%d bytes of lines are %d on disk, at most %d", s.Spooled, s.wr, s.limit)
	}
	s.finish()
	for i := range chunks {
		c, err := s.get()
		if err != nil || !bytes.Equal(c.b, line) {
			t.Fatalf("chunk %d: %d bytes, %v", i, len(c.b), err)
		}
		s.release(c.b)
	}
	if _, err := s.get(); err != io.EOF {
		t.Error(err)
	}
}

func TestSpoolFails(t *testing.T) {
	s := newSpool(0)
	broken := errors.New("broken pipe")
	for range memoryChunks {
		s.put(chunk{[]byte("x"), 1})
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.put(chunk{[]byte("y"), 1}) }()
	s.fail(broken)
	if err := <-waiting; !errors.Is(err, broken) {
		t.Errorf("a waiting put returned %v", err)
	}
	if _, err := s.get(); !errors.Is(err, broken) {
		t.Errorf("get returned %v", err)
	}
}

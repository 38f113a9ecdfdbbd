//go:build amd64 || arm64

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// EarlyRing is a ring that is made while other things go on: the kernel clears all of its memory for it. Not safe for concurrent use.
type EarlyRing struct {
	size int
	made chan madeRing // nil once it was taken
}

type madeRing struct {
	m   *ebpf.Map
	err error
}

// StartRing makes a ring of size bytes in the background. What fails is told to who attaches with it. The caller closes it at last.
func StartRing(size int) *EarlyRing {
	made := make(chan madeRing, 1)
	go func() {
		m, err := ringMap(size)
		made <- madeRing{m, err}
	}()
	return &EarlyRing{size, made}
}

// take hands out the ring, once.
func (r *EarlyRing) take() (m *ebpf.Map, err error, first bool) {
	if r == nil || r.made == nil {
		return nil, nil, false
	}
	got := <-r.made
	r.made = nil
	return got.m, got.err, true
}

// Close closes the ring if nobody took it.
func (r *EarlyRing) Close() {
	if m, _, _ := r.take(); m != nil {
		m.Close()
	}
}

// ring is a ring that no program has written to yet: each attempt to attach has its own.
func (o Options) ring() (*ebpf.Map, error) {
	if o.Early != nil && o.Early.size != o.RingSize {
		return nil, fmt.Errorf("the ring that was made beforehand has %d bytes, expected %d", o.Early.size, o.RingSize)
	}
	if m, err, first := o.Early.take(); first {
		return m, err
	}
	return ringMap(o.RingSize)
}

func ringMap(size int) (*ebpf.Map, error) {
	return ebpf.NewMap(&ebpf.MapSpec{Name: objects.KernelMapEvents, Type: ebpf.RingBuf, MaxEntries: uint32(size)})
}

//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
)

func TestDetectPreemption(t *testing.T) {
	types := btf.NewCache()
	types.Kernel()
	begin := time.Now()
	p := DetectPreemption(types)
	t.Logf("%+v in %v", p, time.Since(begin))
	if p.Err != nil {
		t.Error(p.Err)
	}
}

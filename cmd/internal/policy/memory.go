package policy

import (
	"context"
	"errors"
	"runtime/metrics"
	"time"
)

const (
	programMemory = 256 << 20            // bytes by which a program may make the heap grow
	memoryEvery   = 5 * time.Millisecond // between two measurements
)

var errMemory = errors.New("the jq program takes too much memory")

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchMemory stops a program when the heap has grown too much since it began. The time
// limit is not enough: a program that only collects values can take a lot of memory in it.
func watchMemory(ctx context.Context, stop context.CancelCauseFunc) {
	before := heap()
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if heap() > before+programMemory {
				stop(errMemory)
			}
		}
	}
}

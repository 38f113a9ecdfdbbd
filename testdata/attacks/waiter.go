package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// waiter is a thread that makes a call which waits. How long it takes until it waits
// depends on the load, so the kernel is asked.
type waiter struct{ tid atomic.Int32 }

// calls is what the thread does right before its call, with nothing between that waits.
func (w *waiter) calls() { w.tid.Store(int32(unix.Gettid())) }

// asleep returns when the thread waits in its call.
func (w *waiter) asleep() error {
	return asleep(func() string { return fmt.Sprintf("/proc/self/task/%d/stat", w.tid.Load()) })
}

// childAsleep returns when a process of one thread waits.
func childAsleep(pid int) error {
	return asleep(func() string { return fmt.Sprintf("/proc/%d/stat", pid) })
}

func asleep(stat func() string) error {
	for began, seen := time.Now(), 0; time.Since(began) < patience/10; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(stat())
		if _, after, ok := bytes.Cut(b, []byte(") ")); !ok || after[0] != 'S' {
			seen = 0
		} else if seen++; seen == 3 {
			return nil
		}
	}
	return errors.New("the call did not wait")
}

package main

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnThread: what is changed of a thread is never changed of the first one, which stands for the process.
func TestOwnThread(t *testing.T) {
	var all sync.WaitGroup
	for range 2000 {
		all.Add(1)
		onOwnThread(func() {
			defer all.Done()
			if unix.Gettid() == unix.Getpid() {
				t.Error("it is the first thread")
			}
		})
		if unix.Gettid() == unix.Getpid() { // nor is that taken for good
			all.Wait()
		}
	}
	all.Wait()
}

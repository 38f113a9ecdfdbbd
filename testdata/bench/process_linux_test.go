package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestTooLong: a program that is not waited for any longer ends, and what it started ends with it.
func TestTooLong(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	b := &bench{dir: t.TempDir()}
	begin := time.Now()
	// The second sleep keeps the pipe of the output open until it is killed.
	if _, err := b.executeIn(ctx, nil, "/bin/sh", "-c", "sleep 60 & sleep 60"); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("waited %s", took)
	}
}

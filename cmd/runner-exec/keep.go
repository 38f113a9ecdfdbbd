package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// link connects two stages and returns the end to write to and the end to read from.
// Without keep they are the ends of one connection. With keep there are two, and runner-exec copies from one to the other and into the file.
func (p *pipeline) link(keep *tool.AtomicFile) (*os.File, *os.File, error) {
	r, w, err := connect()
	if err != nil {
		return nil, nil, fmt.Errorf("connecting two stages: %w", err)
	}
	if keep == nil {
		return w, r, nil
	}
	nextR, nextW, err := connect()
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, fmt.Errorf("connecting two stages: %w", err)
	}
	p.pumps.Add(1)
	go func() {
		defer p.pumps.Done()
		p.pump(r, nextW, keep)
	}()
	return w, nextR, nil
}

// pump copies one stream. On a failure it closes both ends, so that both neighbours
// fail: the next stage sees an input without a seal, the previous one a closed pipe.
func (p *pipeline) pump(from, to *os.File, keep *tool.AtomicFile) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := keep.Write(buf[:n]); err != nil {
				p.fail(fmt.Errorf("writing a stream of --keep: %w", err))
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				if !errors.Is(err, syscall.EPIPE) { // after EPIPE, the next stage reports the reason
					p.fail(fmt.Errorf("copying a stream: %w", err))
				}
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			p.fail(fmt.Errorf("copying a stream: %w", err))
			return
		}
	}
}

func (p *pipeline) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
}

// failure is the first failure of a --keep copy.
func (p *pipeline) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

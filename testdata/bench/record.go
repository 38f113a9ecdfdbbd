//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// record is what a benchmark reads from an archive.
type record struct {
	health  schemas.Health
	surface []byte
	lines   int64
}

// readRecord reads an archive; line sees the type and value of every kernel line.
func readRecord(path string, line func(event uint32, value []byte)) (*record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := bundle.Open(f, bundle.DefaultLimits)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	rec := &record{}
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return rec, nil
		}
		if err != nil {
			return nil, err
		}
		switch m.Name {
		case bundle.KernelName:
			err = rec.kernel(r, line)
		case bundle.HealthName:
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = json.Unmarshal(b, &rec.health)
			}
		case bundle.SurfaceName:
			rec.surface, err = io.ReadAll(r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
}

func (rec *record) kernel(r io.Reader, line func(uint32, []byte)) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	p := schemas.NewKernelParser("bench")
	var e schemas.KernelEvent
	for s.Scan() {
		if err := p.Parse(bytes.TrimSpace(s.Bytes()), &e); err != nil {
			return err
		}
		rec.lines++
		line(e.EventType, e.Value)
	}
	return s.Err()
}

// whole says why a record is not complete, or nil.
func (rec *record) whole() error {
	if h := rec.health; h.KernelLayer != "complete" || h.RingbufDrops != 0 {
		why := ""
		for _, n := range h.Notes {
			if strings.HasPrefix(n, "s2_kernel_loss") {
				why = " (" + n + ")"
			}
		}
		return fmt.Errorf("kernel layer %s, %d dropped%s", h.KernelLayer, h.RingbufDrops, why)
	}
	return nil
}

// counted is a check: exactly want kernel lines with this type and value.
func counted(event uint32, value string, want int) func(string) error {
	return func(archive string) error {
		n := 0
		rec, err := readRecord(archive, func(e uint32, v []byte) {
			if e == event && string(v) == value {
				n++
			}
		})
		if err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%s of %s recorded, %d dropped", thousands(int64(n)), thousands(int64(want)), rec.health.RingbufDrops)
		}
		return rec.whole()
	}
}

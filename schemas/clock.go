package schemas

import (
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/schemas/pattern"
)

// What runner-clock records. The program itself wrote it down: it is self-reported.

// What a tick is.
const (
	TickRead     = "read"     // the clock was read
	TickSleep    = "sleep"    // the program slept
	TickTimer    = "timer"    // it set a timer
	TickInterval = "interval" // it set one that fires again and again
	TickEnd      = "end"      // the process ended, by itself
)

// Ticks are all kinds of ticks.
var Ticks = [...]string{TickRead, TickSleep, TickTimer, TickInterval, TickEnd}

// Runtimes are those that runner-clock has a shim for.
var Runtimes = [...]string{"node", "python"}

// MaxTickReads is how many reads one tick has at most.
const MaxTickReads = 256

// Clock is the first record of a clock stream: what the program was told.
type Clock struct {
	Schema   string   `json:"schema"`
	RunID    string   `json:"run_id"`
	Seed     string   `json:"seed"`
	Start    string   `json:"start"`    // RFC 3339, in UTC
	Runtimes []string `json:"runtimes"` // that have a shim
	Crypto   string   `json:"crypto"`   // where random numbers for cryptography come from: seed or system
	Bad      uint64   `json:"bad_lines"`
	Lost     uint64   `json:"lost"`    // ticks of which only the number is known
	Unended  uint64   `json:"unended"` // processes whose last tick is not their end: what they did after it is not known
}

// Where random numbers for cryptography come from.
const (
	CryptoSeed   = "seed"
	CryptoSystem = "system"
)

// CryptoSources are both.
var CryptoSources = [...]string{CryptoSeed, CryptoSystem}

// ClockTick is one line of layers/clock.ndjson.
type ClockTick struct {
	Schema  string   `json:"schema"`
	RunID   string   `json:"run_id"`
	Seq     uint64   `json:"seq"`
	Process string   `json:"process"` // RUNTIME:HASH.N: what it was started with, and the how manyth it was
	Tick    uint64   `json:"tick"`    // its number in the process, from 0
	Op      string   `json:"op"`
	ForNS   uint64   `json:"for_ns,omitzero"` // of sleep, timer and interval: how long, in ns
	AtNS    []uint64 `json:"at_ns"`           // what the clock said, in ns since the start; of a read up to 256 of them
}

var tickProcess = pattern.New(`^(node|python):[0-9a-f]{16}(\.[0-9]{1,9})?$`)

// Check checks what a tick says on its own.
func (t *ClockTick) Check() error {
	switch {
	case !tickProcess.MatchString(t.Process):
		return fmt.Errorf("process is %.100q, expected RUNTIME:HASH.N", t.Process)
	case len(t.AtNS) == 0 || len(t.AtNS) > MaxTickReads:
		return fmt.Errorf("at_ns has %d values, expected 1 to %d", len(t.AtNS), MaxTickReads)
	case (t.Op == TickRead || t.Op == TickEnd) && t.ForNS != 0, t.Op != TickRead && len(t.AtNS) != 1:
		return errors.New("a read and an end have no for_ns, and all but reads have one at_ns")
	}
	return oneOf("op", t.Op, Ticks[:]...)
}

// ParseClockTick parses one line of layers/clock.ndjson.
func ParseClockTick(b []byte) (*ClockTick, error) {
	t := new(ClockTick)
	err := decode(b, t)
	if err == nil {
		err = first(head(t.Schema, SchemaClockTick, t.RunID), t.Check())
	}
	if err != nil {
		return nil, fmt.Errorf("clock tick: %w", err)
	}
	return t, nil
}

// ParseClock parses the first record of a clock stream.
func ParseClock(b []byte) (*Clock, error) {
	c := new(Clock)
	err := decode(b, c)
	if err == nil {
		err = first(head(c.Schema, SchemaClock, c.RunID), notEmpty("seed", c.Seed), oneOf("crypto", c.Crypto, CryptoSources[:]...), startTime(c.Start))
	}
	for _, r := range c.Runtimes {
		if err == nil {
			err = oneOf("runtimes", r, Runtimes[:]...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	return c, nil
}

var startForm = pattern.New(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z$`)

func startTime(s string) error {
	if !startForm.MatchString(s) {
		return fmt.Errorf("start is %.100q, expected a time such as 2026-01-01T00:00:00Z", s)
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return fmt.Errorf("start is not a text of a time: %.100q is not a text", s)
	}
	return nil
}

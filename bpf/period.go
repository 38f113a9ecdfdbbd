package bpf

// Period is a time by CLOCK_MONOTONIC; without an end it goes on.
type Period struct{ from, to uint64 }

func (p *Period) holds(ns uint64) bool { return p == nil || ns >= p.from && (p.to == 0 || ns <= p.to) }

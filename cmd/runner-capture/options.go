package main

import (
	"crypto/rand"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// options are runner-capture's flags.
type options struct {
	runID     string
	cgroup    string
	ringSize  int
	spoolSize int64
	grace     time.Duration
	// supervised: standard input carries control lines from runner-exec, and the
	// cgroup belongs to this run: nothing in it may go on unobserved.
	supervised bool
	make       bool // make the cgroup; with remove, it is gone whatever happens
	remove     bool
	ready      int // descriptor for the line "ready", or -1
	redundant  string
	rulesFile  string
	rules      *schemas.NetworkRules // to enforce; nil is none
}

// parseSize reads a number of bytes with an optional suffix K, M or G (powers of 1024).
func parseSize(s string) (int64, error) {
	num, shift := s, 0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("KMG", s[n-1]&^0x20); i >= 0 {
			num, shift = s[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("size %q: expected a number of bytes such as 4096, 64K or 16M", s)
	}
	return n << shift, nil
}

// parseRing also demands what the kernel demands of a ring (bpf_ringbuf_alloc):
// a power of two, at least a page.
func parseRing(s string) (int, error) {
	n, err := parseSize(s)
	if err != nil {
		return 0, err
	}
	if n < 4096 || n > 1<<30 || bits.OnesCount64(uint64(n)) != 1 {
		return 0, fmt.Errorf("ring size %q: expected a power of two from 4K to 1G", s)
	}
	return int(n), nil
}

// parse checks the flags.
func parse(env *tool.Env) (options, error) {
	f := env.Flag
	o := options{
		runID: f.String("run-id"), cgroup: f.String("cgroup"), grace: f.Duration("grace"),
		supervised: f.Bool("supervised"), make: f.Bool("make-cgroup"), remove: f.Bool("remove-cgroup"),
		ready: f.Int("ready-fd"), redundant: f.String("redundant"), rulesFile: f.String("network-rules"),
	}
	var err error
	if o.ringSize, err = parseRing(f.String("ring-size")); err != nil {
		return o, tool.Usagef("--ring-size: %v", err)
	}
	if o.spoolSize, err = parseSize(f.String("spool-size")); err != nil {
		return o, tool.Usagef("--spool-size: %v", err)
	}
	if o.runID == "" {
		o.runID = "run_" + strings.ToLower(rand.Text())
	}
	switch {
	case !schemas.ValidRunID(o.runID):
		return o, tool.Usagef("--run-id %q: expected 1 to 128 of A-Z a-z 0-9 _ -", o.runID)
	case o.cgroup == "":
		return o, tool.Usagef("--cgroup DIR is required")
	case o.grace < 0:
		return o, tool.Usagef("--grace %v: expected a duration of 0 or more", o.grace)
	case o.redundant != "auto" && o.redundant != "on" && o.redundant != "off":
		return o, tool.Usagef("--redundant %q: expected auto, on or off", o.redundant)
	case tool.IsTerminal(env.Stdout):
		return o, tool.Usagef("standard output is a terminal: redirect it to a file or a pipe")
	}
	return o, nil
}

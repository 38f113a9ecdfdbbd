package main

import (
	"time"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
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
	// cgroup belongs to this run: nothing in it may run on unobserved.
	supervised    bool
	make          bool // make the cgroup; with remove, it is gone in any case
	remove        bool
	ready         int // descriptor for the line "ready", or -1
	redundant     string
	probes        string // whose
	without       string // parts of the kernel that the probes must not use
	rulesFile     string
	rules         *schemas.NetworkRules // to enforce; nil is none
	filesFile     string
	files         *schemas.FileRules // the same for files and programs
	fileMechanism string
	arguments     arguments.Describer
	checksum      string // of the stream
}

// parse checks the flags.
func parse(env *tool.Env) (options, error) {
	f := env.Flag
	o := options{
		cgroup: f.String("cgroup"), supervised: f.Bool("supervised"), make: f.Bool("make-cgroup"),
		remove: f.Bool("remove-cgroup"), ready: f.Int("ready-fd"), rulesFile: f.String("network-rules"), filesFile: f.String("file-rules"),
	}
	ring, err := env.RingSize("ring-size")
	if err != nil {
		return o, err
	}
	o.ringSize = int(ring)
	spool, err := env.Size("spool-size", 0, tool.MaxSize)
	if err != nil {
		return o, err
	}
	o.spoolSize = int64(spool)
	if o.runID, err = env.RunID(); err != nil {
		return o, err
	}
	if o.runID == "" {
		o.runID = tool.NewRunID()
	}
	if o.grace, err = env.Duration("grace"); err != nil {
		return o, err
	}
	if o.redundant, err = env.Word("redundant", "auto", "on", "off"); err != nil {
		return o, err
	}
	if o.without, err = env.Word("without", schemas.LoadWithout...); err != nil {
		return o, err
	}
	if o.probes, err = env.Word("probes", schemas.ProbesWords[:]...); err != nil {
		return o, err
	}
	if o.fileMechanism, err = env.Word("file-mechanism", schemas.FileMechanismWords()...); err != nil {
		return o, err
	}
	if o.arguments.Mode, err = env.Word("argv", schemas.ArgvModes[:]...); err != nil {
		return o, err
	}
	if o.arguments.Key, err = arguments.ReadKey(f.String("argv-key")); err != nil {
		return o, tool.Usagef("--argv-key: %v", err)
	}
	if o.checksum, err = env.Word("checksum", schemas.Checksums[:]...); err != nil {
		return o, err
	}
	switch {
	case o.cgroup == "":
		return o, tool.Missing("--cgroup DIR", "runner-capture --cgroup DIR")
	case o.filesFile == "" && o.fileMechanism != schemas.FileMechanismAuto:
		return o, tool.Usagef("--file-mechanism %s has nothing to enforce: it needs --file-rules FILE", o.fileMechanism)
	case tool.IsTerminal(env.Stdout):
		return o, tool.Usagef("standard output is a terminal: redirect it to a file or a pipe")
	}
	return o, nil
}

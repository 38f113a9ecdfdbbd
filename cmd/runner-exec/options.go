package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math/bits"
	"runtime"
	"strconv"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

const usage = `
runner-exec runs a command in a cgroup of its own and records what it did.

Usage:
  runner-exec [flags] -- COMMAND [ARG…]

The command's streams, environment and exit status are passed through.

Flags:
  --archive FILE      where to write (default assay-runner-spike-RUN_ID.tar.gz)
  --stream FILE       the raw stream instead; - is stdout, the command's goes to stderr
  --keep DIR, --policy-log FILE, --sdk-log FILE   leave all streams, or one log
  --policy FILE       collect the policy log (of tool rules), enforce network rules
  --agent-shim openai-agents   collect the SDK log; none (default) has no SDK layer
  --run-id ID         name of the run, of A-Z a-z 0-9 _ - (default random)
  --no-kernel         no capture: an archive that says kernel_layer=absent
  --canonical-pids    number processes by their place in the fork tree
  --drop EXPR         drop kernel lines for which the jq program says true
  --timeout D         send TERM after D, and kill after --grace more
  --grace D           wait so long for survivors, then kill them (default 10s)
  --ring-size N, --spool-size N, --redundant auto|on|off   as runner-capture
  --cgroup-parent DIR make the cgroup below DIR, not below our own
  -v                  say what is done; -h, --help and --version likewise

Exit codes: the command's own; 128+N killed by signal N; 127 not found; 126
cannot be run; 125 own failure; 4 cannot observe here; 2 wrong call

Examples:
  sudo runner-exec -- ./agent.sh
  sudo runner-exec --policy policy.yaml --agent-shim openai-agents -- node agent.mjs
  runner-exec --stream - -- make | runner-normalize | runner-correlate | runner-pack
`

const defaultGrace = 10 * time.Second

// Options is one call of runner-exec.
type Options struct {
	RunID         string
	Named         bool   // the run's name was given
	Archive       string // file to write unless Stream is set
	Stream        string // "", "-" or a file for the raw stream
	Keep          string // directory for the intermediate streams, or ""
	AgentShim     string
	Policy        string                // policy file, or ""
	Network       *schemas.NetworkRules // what of it the kernel is to enforce, or nil
	PolicyDigest  string                // of it
	LogFiles      map[string]string     // layer → file for its collected log, or ""
	Collect       map[string]bool       // layer → the command is given its log
	Kernel        bool                  // start runner-capture
	CanonicalPids bool
	Drop          string        // gojq program for runner-normalize, or ""
	RingSize      uint64        // bytes
	SpoolSize     uint64        // bytes; 0 leaves runner-capture's own default
	Timeout       time.Duration // 0: none
	Grace         time.Duration
	Redundant     string // auto, on, off
	CgroupParent  string // "" is the caller's own cgroup
	Command       []string
}

func options(env *tool.Env) (Options, error) {
	f := env.Flag
	o := Options{
		RunID: f.String("run-id"), Archive: f.String("archive"), Stream: f.String("stream"),
		Keep: f.String("keep"), AgentShim: f.String("agent-shim"),
		Kernel:        !f.Bool("no-kernel") && runtime.GOOS == "linux",
		CanonicalPids: f.Bool("canonical-pids"), Drop: f.String("drop"),
		Timeout: f.Duration("timeout"), Grace: f.Duration("grace"),
		Redundant: f.String("redundant"), CgroupParent: f.String("cgroup-parent"),
		Policy: f.String("policy"), LogFiles: map[string]string{},
		Named: f.IsSet("run-id"), Command: env.Args,
	}
	var err error
	if o.RingSize, err = parseSize("ring-size", f.String("ring-size")); err != nil {
		return o, err
	}
	if o.RingSize < 4096 || bits.OnesCount64(o.RingSize) != 1 {
		return o, tool.Usagef("--ring-size %s: want a power of two, at least 4K", f.String("ring-size"))
	}
	if f.IsSet("spool-size") {
		if o.SpoolSize, err = parseSize("spool-size", f.String("spool-size")); err != nil {
			return o, err
		}
		if o.SpoolSize == 0 {
			return o, tool.Usagef("--spool-size 0: want at least one byte")
		}
	}
	names := []string{"run-id", "archive", "stream", "keep", "cgroup-parent", "policy"}
	for _, l := range schemas.LogLayers() {
		o.LogFiles[l.Name] = f.String(l.Name + "-log")
		names = append(names, l.Name+"-log")
	}
	for _, name := range names {
		if f.IsSet(name) && f.String(name) == "" {
			return o, tool.Usagef("--%s is empty", name)
		}
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if err := o.layers(); err != nil {
		return o, err
	}
	if o.RunID == "" {
		o.RunID = newRunID()
	}
	if o.Archive == "" {
		o.Archive = "assay-runner-spike-" + o.RunID + ".tar.gz"
	}
	return o, o.checkCommand()
}

func (o *Options) check() error {
	switch {
	case o.RunID != "" && !schemas.ValidRunID(o.RunID):
		return tool.Usagef("--run-id %q: want 1 to 128 of A-Z a-z 0-9 _ -", o.RunID)
	case !schemas.KnownShim(o.AgentShim):
		return tool.Usagef("--agent-shim %q: want openai-agents or none", o.AgentShim)
	case o.Redundant != "auto" && o.Redundant != "on" && o.Redundant != "off":
		return tool.Usagef("--redundant %q: want auto, on or off", o.Redundant)
	case o.Timeout < 0 || o.Grace < 0:
		return tool.Usagef("--timeout and --grace must not be negative")
	case o.Stream != "" && o.Archive != "":
		return tool.Usagef("--stream writes no archive; give either --stream or --archive")
	case o.Stream != "" && o.Keep != "":
		return tool.Usagef("--stream runs no other stages, so there is nothing for --keep")
	case o.Stream != "" && (o.CanonicalPids || o.Drop != ""):
		return tool.Usagef("--canonical-pids and --drop belong to runner-normalize when --stream is used")
	case len(o.Command) == 0:
		return tool.Fail(tool.ExitUsage, fmt.Errorf("no command given"),
			"runner-exec -- COMMAND [ARG…]")
	}
	return nil
}

// checkCommand refuses a command whose run_started line would not fit into a
// stream, before it has run for an hour.
func (o *Options) checkCommand() error {
	line, err := schemas.Marshal(o.runStarted())
	if err != nil {
		return err
	}
	const room = 4 << 10 // the control line has other keys
	if len(line)+room > stream.MaxLine {
		return tool.Failf(tool.ExitOwn, "the command line takes %d bytes, a record can hold %d",
			len(line), stream.MaxLine-room)
	}
	return nil
}

func (o *Options) commandText() []string {
	text := make([]string, len(o.Command))
	for i, a := range o.Command {
		text[i] = schemas.Text(a)
	}
	return text
}

func (o *Options) runStarted() schemas.RunStarted {
	return schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: o.RunID, Seq: 0, Type: "run_started",
		AgentShim: o.AgentShim, Command: o.commandText(), EnvKeys: o.envKeys()}
}

// newRunID is a name that no other run has: 128 random bits.
func newRunID() string {
	var b [16]byte
	rand.Read(b[:])
	return "run_" + hex.EncodeToString(b[:])
}

// parseSize reads a number of bytes with an optional K, M or G (powers of 1024).
func parseSize(flag, s string) (uint64, error) {
	digits, shift := s, 0
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'k', 'K':
			digits, shift = s[:n-1], 10
		case 'm', 'M':
			digits, shift = s[:n-1], 20
		case 'g', 'G':
			digits, shift = s[:n-1], 30
		}
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v > 1<<62>>shift {
		return 0, tool.Usagef("--%s %q: want a number of bytes, K, M or G may follow", flag, s)
	}
	return v << shift, nil
}

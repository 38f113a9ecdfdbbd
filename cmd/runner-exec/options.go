package main

import (
	"errors"
	"runtime"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/identity"
	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

const usage = `
runner-exec runs a command in a cgroup of its own and records what it did.
It passes the command's streams, environment and exit status through.

Usage:
  runner-exec [flags] -- COMMAND [ARG…]

Flags:
  --archive FILE, --force   (assay-runner-spike-RUN_ID.tar.gz in $RUNNER_ARCHIVE_DIR); over any file
  --stream FILE       write only the raw stream; - is stdout, the command's goes to stderr
  --spool-dir DIR     keep what is recorded in DIR until the archive is there; --resume DIR finishes it
  --keep DIR, --policy-log, --sdk-log, --intents-log FILE, --replayable   streams; for replay
  --policy FILE       collect the policy log (for tool rules), enforce its network, file, exec rules
  --agent-shim openai-agents, --intents   collect the SDK log (default: none); what it wants done
  --run-id ID, --no-kernel, --pack NAME   name of the run; no capture; a pack for the manifest
  --user USER         run as NAME, UID or UID:GID (default: who called sudo, else the caller; they own the archive)
  --times, --no-filtered, --no-processes, --canonical-pids   layers; number processes by the fork tree
  --no-new-privs, --harden   exec gives no rights; and refuse what attacks the observer
  --drop EXPR, --noise v0|loader|none   drop lines for which the jq program gives true; what is noise
  --argv full|hash|none, --argv-key FILE   what programs are started with, as in runner-capture
  --timeout D, --grace D   TERM after D, kill after another grace; which survivors get (10s)
  --cgroup-parent DIR make the cgroup below DIR, not below the caller's own
  --ring-size, --spool-size, --probes, --redundant, --without, --file-mechanism   as there
  -v, -q              print progress; only errors and warnings (a run not whole); -h, --help; --version

Exit codes: the command's own; 128+N signal N; 127 not found; 126 cannot be run;
125 own failure. Before: 2 wrong call, 3, 5 bad policy file, 4 cannot observe

Examples:
  sudo runner-exec --policy policy.yaml --agent-shim openai-agents -- node agent.mjs
  runner-exec --stream - -- make | runner-normalize | runner-correlate | runner-pack
`

const defaultGrace = 10 * time.Second

// Options is one call of runner-exec.
type Options struct {
	RunID         string
	Named         bool              // --run-id was given
	Archive       string            // file to write unless Stream is set
	Stream        string            // "", "-" or a file for the raw stream
	Keep          string            // directory for the intermediate streams, or ""
	SpoolDir      string            // directory that keeps the recording until the archive is there, or ""
	Resume        string            // directory of such a recording to finish, or ""
	spooled       map[string]string // layer → file of its log in the SpoolDir
	Replayable    bool              // keep what a replay needs
	record        []string          // flag with the directory of records, for runner-correlate and runner-pack
	Force         bool              // replace files that are not what this writes
	AgentShim     string
	Intents       bool                  // collect the log of intents
	Policy        string                // policy file, or ""
	Network       *schemas.NetworkRules // network rules of the policy file, enforced in the kernel, or nil
	Files         *schemas.FileRules    // file and exec rules of the policy file, enforced too, or nil
	PolicyDigest  string                // of the policy file
	PolicySource  []byte                // its bytes
	LogFiles      map[string]string     // layer → file for its collected log, or ""
	Collect       map[string]bool       // layer → its log is collected
	Kernel        bool                  // start runner-capture
	CanonicalPids bool
	Times         bool          // add the layer times
	Drop          string        // gojq program for runner-normalize, or ""
	Noise         string        // table of noise rules
	NoFiltered    bool          // leave out the layer filtered
	NoProcesses   bool          // leave out the layer process
	Packs         []pack.Given  // that the manifest names
	Argv          string        // how arguments are recorded
	ArgvKey       string        // file with the key of digests, or ""
	key           arguments.Key // its content
	RingSize      uint64        // bytes
	SpoolSize     uint64        // bytes; 0 leaves runner-capture's own default
	Timeout       time.Duration // 0: none
	Grace         time.Duration
	Redundant     string              // auto, on, off
	Probes        string              // one of schemas.ProbesWords
	Without       string              // parts of the kernel that the probes must not use
	CgroupParent  string              // "" is the caller's own cgroup
	FileMechanism string              // what enforces file rules, or auto
	Confine       confine.Confinement // what the command is started without
	User          *identity.Identity  // who the command is started as; nil is our own user
	Command       []string
}

func options(env *tool.Env) (Options, error) {
	f := env.Flag
	o := Options{
		Archive: f.String("archive"), Stream: f.String("stream"), Keep: f.String("keep"),
		Kernel:        !f.Bool("no-kernel") && runtime.GOOS == schemas.PlatformLinux,
		CanonicalPids: f.Bool("canonical-pids"), Times: f.Bool("times"), Drop: f.String("drop"), NoFiltered: f.Bool("no-filtered"), NoProcesses: f.Bool("no-processes"), CgroupParent: f.String("cgroup-parent"),
		Policy: f.String("policy"), LogFiles: map[string]string{},
		Intents: f.Bool("intents"), Named: f.IsSet("run-id"), Command: env.Args, SpoolDir: f.String("spool-dir"), Resume: f.String("resume"), Force: f.Bool("force"), Replayable: f.Bool("replayable"),
	}
	names := []string{"archive", "stream", "keep", "cgroup-parent", "policy", "user", "spool-dir", "resume"}
	for _, l := range schemas.LogLayers() {
		o.LogFiles[l.Name] = f.String(l.Name + "-log")
		names = append(names, l.Name+"-log")
	}
	if err := env.NotEmpty(names...); err != nil {
		return o, err
	}
	if err := o.values(env); err != nil {
		return o, err
	}
	packs, err := pack.Apply(f.StringSlice("pack")) // the command could change a file later
	if o.Packs = packs.Packs; err != nil {
		return o, err
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if err := o.layers(); err != nil {
		return o, err
	}
	if o.Drop != "" {
		if _, err := jq.CheckDrop(o.Drop); err != nil {
			return o, tool.Usagef("--drop: %v in %s", err, schemas.Text(o.Drop))
		}
	}
	o.Confine = confine.Confinement{NoNewPrivs: f.Bool("no-new-privs"), Harden: f.Bool("harden"), Cloned: o.Kernel}
	if err := o.Confine.Check(); err != nil {
		return o, err
	}
	if o.Resume != "" {
		return o, nil // the run has a name already
	}
	if o.User, err = identity.Of(env); err != nil {
		return o, err
	}
	if o.RunID == "" {
		o.RunID = tool.NewRunID()
	}
	if err := o.nameArchive(); err != nil {
		return o, err
	}
	return o, o.checkCommand()
}

// values reads the flags whose values must have a certain form.
func (o *Options) values(env *tool.Env) (err error) {
	if o.RunID, err = env.RunID(); err != nil {
		return err
	}
	var shims []string
	for _, s := range schemas.Shims {
		shims = append(shims, s.Name)
	}
	if o.AgentShim, err = env.Word("agent-shim", shims...); err != nil {
		return err
	}
	if o.Without, err = env.Word("without", schemas.LoadWithout...); err != nil {
		return err
	}
	if o.Redundant, err = env.Word("redundant", "auto", "on", "off"); err != nil {
		return err
	}
	if o.Probes, err = env.Word("probes", schemas.ProbesWords[:]...); err != nil {
		return err
	}
	if o.FileMechanism, err = env.Word("file-mechanism", schemas.FileMechanismWords()...); err != nil {
		return err
	}
	if o.Argv, err = env.Word("argv", schemas.ArgvModes[:]...); err != nil {
		return err
	}
	o.ArgvKey = env.Flag.String("argv-key")
	if o.key, err = arguments.ReadKey(o.ArgvKey); err != nil {
		return tool.Usagef("--argv-key: %v", err)
	}
	if o.Noise, err = env.Word("noise", schemas.NoiseTables[:]...); err != nil {
		return err
	}
	if o.Timeout, err = env.Duration("timeout"); err != nil {
		return err
	}
	if o.Grace, err = env.Duration("grace"); err != nil {
		return err
	}
	if o.RingSize, err = env.RingSize("ring-size"); err != nil {
		return err
	}
	if env.Flag.IsSet("spool-size") {
		o.SpoolSize, err = env.Size("spool-size", 1, tool.MaxSize)
	}
	return err
}

// check refuses flags that exclude each other.
func (o *Options) check() error {
	switch {
	case o.Stream != "" && o.Archive != "":
		return tool.Usagef("--stream writes no archive; give either --stream or --archive")
	case o.Stream != "" && o.Keep != "":
		return tool.Usagef("--stream runs no other stages, so there is nothing for --keep")
	case o.Stream != "" && (o.CanonicalPids || o.Drop != ""):
		return tool.Usagef("--canonical-pids and --drop belong to runner-normalize when --stream is used")
	case o.Stream != "" && len(o.Packs) > 0:
		return tool.Usagef("--stream writes no archive, so there is no manifest for --pack")
	case o.Stream != "" && (o.NoFiltered || o.NoProcesses || o.Noise != schemas.NoiseV0):
		return tool.Usagef("--noise belongs to runner-normalize when --stream is used, and --no-filtered and --no-processes have nothing to do")
	case o.NoFiltered && o.Noise != schemas.NoiseV0:
		return tool.Usagef("--noise %s has the layer filtered always: its note says which rules were used", o.Noise)
	case o.Stdouts() > 1:
		return tool.Usagef("standard output is one place: give - to one flag only")
	case o.Keep == "-" || o.SpoolDir == "-" || o.Resume == "-":
		return tool.Usagef("--keep, --spool-dir and --resume take a directory; for one with this name write ./-")
	case o.SpoolDir != "" && (o.Stream != "" || o.Keep != ""):
		return tool.Usagef("--spool-dir is for an archive, without --stream and --keep")
	case o.Resume != "" && (o.Stream != "" || o.Keep != "" || o.SpoolDir != "" || len(o.Command) > 0 || o.Named):
		return tool.Fail(tool.ExitUsage, errors.New("--resume finishes a recording: it takes neither COMMAND nor --run-id, --stream, --keep, --spool-dir"),
			"runner-exec --resume "+o.Resume+" --archive run.tar.gz")
	case o.Resume != "":
	case len(o.Command) == 0:
		return tool.Missing("COMMAND", "runner-exec -- COMMAND [ARG…]")
	}
	return nil
}

// Stdouts is how many outputs are standard output.
func (o *Options) Stdouts() (n int) {
	for _, f := range o.LogFiles {
		if f == "-" {
			n++
		}
	}
	for _, f := range []string{o.Archive, o.Stream} {
		if f == "-" {
			n++
		}
	}
	return n
}

// nameArchive gives the archive its default name.
func (o *Options) nameArchive() (err error) {
	if o.Archive == "" {
		o.Archive, err = tool.DefaultArchive(o.RunID)
	}
	if err != nil {
		return tool.Fail(tool.ExitOwn, err)
	}
	return nil
}

// checkCommand refuses a command whose run_started line would not fit into a
// stream. Without it, this would only fail once the run has begun.
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

// commandText is the command as it is recorded: in text form, without secrets.
func (o *Options) commandText() []string {
	argv := make([][]byte, len(o.Command))
	for i, a := range o.Command {
		argv[i] = []byte(a)
	}
	return arguments.Redact(argv, o.key)
}

func (o *Options) runStarted() schemas.RunStarted {
	return schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: o.RunID, Seq: 0, Type: schemas.TypeRunStarted,
		AgentShim: o.AgentShim, Command: o.commandText(), EnvKeys: o.envKeys()}
}

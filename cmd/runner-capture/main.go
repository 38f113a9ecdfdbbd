// Runner-capture attaches the probes to one cgroup and writes what the kernel
// reports of it as a kernel.raw stream on standard output, until the cgroup is
// empty or SIGTERM. It is the only privileged part of the runner.
//
// The header line means that every required hook is attached and that a canary,
// a call made inside the cgroup by a separate process, came through. After the end a
// second canary proves that everything before it was read. The canaries' own events are
// counted and left out. If the next stage is slow or stopped, no events are lost: lines
// wait in memory, then in a nameless file of bounded size.
//
// If it is killed, its closer ends what is left in the cgroup of a run: the same program as a process
// of its own (closer_linux.go).
//
// With --network-rules and --file-rules it also enforces: the kernel refuses what the rules
// deny, as long as the capture lasts. If the rules cannot be enforced, nothing starts.
package main

import (
	"context"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

const usage = `
runner-capture records what the kernel sees of the processes in a cgroup.

Usage:
  runner-capture [flags] --cgroup DIR

It writes a kernel.raw stream to standard output until the cgroup is empty or
SIGTERM comes; it waits for the first process of an empty cgroup. It needs Linux with
BTF and cgroup v2, and root or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN.

Flags:
  --cgroup DIR       directory of the cgroup, on a cgroup2 mount
  --run-id ID        name of the run (default random)
  --ring-size SIZE   ring between kernel and capture, a power of two (default 16M)
  --spool-size SIZE  what may wait on disk for a slow reader (default 4G)
  --redundant auto|on|off, --without PARTS   copies of probes; load without cast, loop, objects
  --probes auto|own|shared, --load, --unload   shared ones cost others once; only attach; only remove
  --network-rules FILE, --file-rules FILE   refuse what these deny (runner.network_rules.v0,
                     runner.file_rules.v0), files by --file-mechanism auto, lsm, fanotify, landlock
  --argv full|hash|none, --argv-key FILE   arguments but secrets; names (default), digests; nothing
  --probe, --checksum crc32c   only say whether capture would work here; a cheaper seal, see STREAMS.md
  --supervised, --grace D, --make-cgroup, --remove-cgroup, --ready-fd N   for runner-exec
  -v, -q             say more; say only errors and warnings (of losses); -h, --help and --version

Exit codes:
  0  sealed stream                    2  wrong call
  4  cannot observe or enforce here   5  reading or writing failed

Examples:
  runner-capture --cgroup /sys/fs/cgroup/system.slice/x.service | runner-normalize
  runner-capture --probe && echo can capture
`

func app() tool.App {
	return tool.App{Name: "runner-capture", Usage: usage, Run: run, Build: []string{"BPF objects sha256:" + bpf.ObjectsDigest()}, Flags: []cli.Flag{
		&cli.StringFlag{Name: "cgroup"},
		&cli.StringFlag{Name: "run-id"},
		&cli.StringFlag{Name: "ring-size", Value: "16M"},
		&cli.StringFlag{Name: "spool-size", Value: "4G"},
		&cli.StringFlag{Name: "redundant", Value: "auto"},
		&cli.StringFlag{Name: "argv", Value: schemas.ArgvHash},
		&cli.StringFlag{Name: "argv-key"},
		&cli.StringFlag{Name: "without", Value: schemas.LoadNone},
		&cli.StringFlag{Name: "network-rules"},
		&cli.StringFlag{Name: "file-rules"},
		&cli.StringFlag{Name: "file-mechanism", Value: schemas.FileMechanismAuto},
		&cli.StringFlag{Name: "checksum", Value: schemas.ChecksumSHA256},
		&cli.StringFlag{Name: "probes", Value: schemas.ProbesAuto},
		&cli.BoolFlag{Name: "probe"},
		&cli.BoolFlag{Name: "load"},
		&cli.BoolFlag{Name: "unload"},
		&cli.BoolFlag{Name: "supervised"},
		&cli.DurationFlag{Name: "grace", Value: 10 * time.Second},
		&cli.BoolFlag{Name: "make-cgroup"},
		&cli.BoolFlag{Name: "remove-cgroup"},
		&cli.IntFlag{Name: "ready-fd", Value: -1},
		&cli.BoolFlag{Name: "q"},
		&cli.BoolFlag{Name: "v"},
	}}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == closerVerb {
		closerMain()
		return
	}
	tool.Main(app())
}

func run(ctx context.Context, env *tool.Env) error {
	if err := env.NoOperands(); err != nil {
		return err
	}
	if env.Flag.Bool("probe") {
		return probe(env)
	}
	switch loads, unloads := env.Flag.Bool("load"), env.Flag.Bool("unload"); {
	case loads && unloads:
		return tool.Usagef("--load and --unload: expected one of them")
	case loads:
		return load(env)
	case unloads:
		return unload(env)
	}
	opt, err := parse(env)
	if err != nil {
		return err
	}
	return capture(ctx, env, opt)
}

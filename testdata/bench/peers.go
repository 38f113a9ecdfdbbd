//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// peer is another tool that shows the calls of a command.
type peer struct {
	name, path string // "" when it is not installed
	argv       func(path, out, calls string, work []string) []string
}

// peers are the tools to compare with. What they lose is their affair: the table says what they cost.
func (b *bench) peers() []peer {
	strace := func(more ...string) func(path, out, calls string, work []string) []string {
		return func(path, out, calls string, work []string) []string {
			return append(append(append([]string{path}, more...), "-f", "-e", "trace="+calls, "-o", out), work...)
		}
	}
	list := []peer{{name: "strace", argv: strace()}, {name: "strace --seccomp-bpf", argv: strace("--seccomp-bpf")}, {name: "bpftrace", argv: bpftrace}}
	for i := range list {
		name, _, _ := strings.Cut(list[i].name, " ")
		list[i].path, _ = exec.LookPath(name)
	}
	return list
}

// bpftrace prints the process and the name of each call, as its own opensnoop does, for the command and nothing else.
func bpftrace(path, out, calls string, work []string) []string {
	var program strings.Builder
	for call := range strings.SplitSeq(calls, ",") {
		fmt.Fprintf(&program, "tracepoint:syscalls:sys_enter_%s /pid == cpid/ { printf(\"%%d %%s\\n\", pid, str(args->filename)); }\n", call)
	}
	argv := []string{path, "-q", "-o", out, "-e", program.String(), "-c", strings.Join(work, " ")}
	if _, err := os.Stat("/sys/kernel/tracing/events"); err == nil {
		return argv
	}
	// It finds tracepoints by their files. Where these are not mounted, they are for it alone.
	return append([]string{"unshare", "--mount", "sh", "-c", `mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"`, "sh"}, argv...)
}

// withPeers adds the lines of other tools on a workload. They have no target.
func (b *bench) withPeers(size string, n int, calls string, argv ...string) error {
	return b.comparePeers(size, n, calls, func() (sample, error) { return b.plain(argv...) }, argv)
}

// comparePeers is withPeers with other plain runs. A workload that takes long has some already.
func (b *bench) comparePeers(size string, n int, calls string, plain func() (sample, error), argv []string) error {
	for _, p := range b.peers() {
		what := "  " + p.name + ", " + calls
		if p.path == "" {
			b.table.add(row{what: what, note: "NOT MEASURED: it is not installed"})
			continue
		}
		if err := b.comparePeer(p, what, size, n, calls, plain, argv); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) comparePeer(other peer, what, size string, n int, calls string, plain func() (sample, error), argv []string) error {
	c := &comparison{}
	for range n {
		p, err := plain()
		if err != nil {
			return err
		}
		m, err := b.peered(other, calls, argv)
		if errors.Is(err, errTooLong) {
			b.table.add(row{what: what, plain: seconds(p.loop), measured: "> " + seconds(longestPeer.Seconds()),
				ratio: "> " + times(longestPeer.Seconds()/p.loop), note: size + ", not waited for"})
			return nil
		}
		if err != nil { // it cannot run here: that is no reason to measure nothing else
			_, why, _ := strings.Cut(err.Error(), ": exit status")
			_, why, _ = strings.Cut(why, "\n")
			why, _, _ = strings.Cut(why, "\n")
			b.table.add(row{what: what, note: "NOT MEASURED: " + cmp.Or(why, "it failed")})
			return nil
		}
		c.loop.add(p.loop, m.loop)
		c.cpu.add(p.loopCPU, m.loopCPU)
	}
	b.table.add(c.row(what, &c.loop, limit{}, size))
	return nil
}

// longestPeer is how long a run under another tool is waited for: the table says then that it takes longer.
const longestPeer = 90 * time.Second

var errTooLong = errors.New("not waited for any longer")

// peered runs a workload under another tool, which writes to a file.
func (b *bench) peered(p peer, calls string, argv []string) (sample, error) {
	out := filepath.Join(b.dir, "peer.out")
	defer os.Remove(out)
	ctx, stop := context.WithTimeout(context.Background(), longestPeer)
	defer stop()
	return b.timedIn(ctx, p.argv(p.path, out, calls, append([]string{b.self, workloadArg}, argv...)))
}

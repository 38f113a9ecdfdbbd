package main

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/gateway"
	"github.com/runner-evidence/runner/cmd/internal/netns"
	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// runCommand runs the command.
func runCommand(env *tool.Env, o Options) error {
	state, environ, err := wrap.Take(child.Environ())
	if err != nil {
		return err
	}
	if state.Record > 0 {
		o.RunID = state.RunID
	}
	if state, o.Output, err = state.Join(schemas.StageNet, o.Output); err != nil {
		return err
	}
	dir, err := record.New(o.Output)
	if err != nil {
		return err
	}
	defer dir.Discard()
	ports := o.Rules.Ports()
	if o.Replay != nil {
		ports = recorded(o.Replay)
	}
	c := gateway.Config{Mode: env.Command, Ports: ports, Rules: o.Rules, Replay: o.Replay, Upstream: o.Upstream, Roots: o.Roots, Match: o.Match, RunID: o.RunID,
		Redact: gateway.Redaction{Keep: o.Keep, Take: o.Take, Key: o.Key}}
	if dir != nil {
		c.Blobs = record.NewBlobs(int(dir.File().Fd()))
	}
	g, err := gateway.New(c)
	if err != nil {
		return err
	}
	defer g.Close()
	signals := child.WatchAll()
	signals.All()
	end, err := inside(env, o, ports, state, environ, g, signals)
	if err != nil {
		return err
	}
	if err := g.Close(); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if err := write(dir, g); err != nil {
		return err
	}
	tell(env, o, g.Counts())
	if code := end.Status(); code != 0 {
		return tool.Status(code)
	}
	return nil
}

// inside runs the command in its namespace. When it returns, nothing listens any more.
func inside(env *tool.Env, o Options, ports []uint16, state wrap.State, environ []string, g *gateway.Gateway, signals *child.Signals) (child.Ending, error) {
	if u := o.User.Credential(); u != nil {
		state.User = u
	}
	n := netns.Config{Ports: ports, Certificate: g.Certificate(), State: state, Rootless: !confine.MayAdminister(0), Command: o.Command, Env: o.User.Environment(environ)}
	files := env.Files()
	space, err := netns.Start(n, files)
	if err != nil {
		return child.Ending{}, err
	}
	defer space.Close()
	for _, l := range space.Listeners {
		go g.Serve(l)
	}
	for _, c := range space.Names {
		go g.ServeNames(c)
	}
	end, err := space.Run(signals.C)
	if err == nil {
		err = space.Drain()
	}
	return end, err
}

// recorded are the ports of a recording, and those of http and https.
func recorded(r *exchange.Recording) []uint16 {
	list := []uint16{80, 443}
	for _, e := range r.Exchanges {
		if e.Port != 0 && e.Port != 53 {
			list = append(list, e.Port)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// write writes the stream, and gives the record its name.
func write(dir *record.Dir, g *gateway.Gateway) error {
	if dir == nil {
		return nil
	}
	fd, err := unix.Openat(int(dir.File().Fd()), exchange.StreamFile, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return tool.CannotWrite(exchange.StreamFile, err)
	}
	f := os.NewFile(uintptr(fd), exchange.StreamFile)
	defer f.Close()
	w, err := stream.NewWriter(f, g.Header())
	if err == nil {
		err = errors.Join(g.Write(w), f.Sync())
	}
	if err != nil {
		return tool.CannotWrite(exchange.StreamFile, err)
	}
	return dir.Commit()
}

// tell says what was not as it should be.
func tell(env *tool.Env, o Options, n map[string]uint64) {
	if m := n[schemas.CounterNetMissed]; m > 0 {
		env.Warnf("%d requests were in no recording, and were answered with 502", m)
	}
	if m := n[schemas.CounterNetUnused]; m > 0 {
		env.Warnf("%d exchanges of the recording were not asked for", m)
	}
	if m := n[schemas.CounterNetDenied]; m > 0 && o.Rules != nil {
		env.Warnf("%d requests or connections were refused", m)
	}
	env.Infof("%d passed on, %d refused, %d answered from the recording, %d with a failure; %d names", n[schemas.CounterNetAllowed], n[schemas.CounterNetDenied], n[schemas.CounterNetReplayed], n[schemas.CounterNetFailed], n[schemas.CounterNetNames])
}

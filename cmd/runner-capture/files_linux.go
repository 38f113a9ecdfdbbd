package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// fileGuard is how file rules are enforced during one capture.
type fileGuard struct {
	rules     *schemas.FileRules
	mechanism string
	ready     schemas.Ready // what runner-exec must do
	private   *privateMounts
	listener  *listener
	errnos    []int64 // of refused calls about which the rules are asked; none if the mechanism reports itself

	staged   []schemas.RawEvent // of the listener, for the stream
	counts   map[uint32]uint64  // refused operations by rule; the listener has its own
	inserted uint64             // events that did not come through the ring
}

// chooseFiles chooses the first mechanism that works here and can enforce every rule,
// or takes the one that was asked for. noLSM is nil if LSM programs enforce them already. Without
// failed, it only looks.
func chooseFiles(opt options, noLSM error, failed func(error)) (*fileGuard, error) {
	g := &fileGuard{rules: opt.files, counts: map[uint32]uint64{}}
	regions, err := confine.Regions(opt.files, confine.Look)
	if err != nil {
		return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("cannot enforce here: %w", err))
	}
	var hints []string
	for _, m := range schemas.FileMechanisms {
		if !opt.mayUse(m) {
			continue
		}
		var err error
		switch m {
		case schemas.SourceLSM:
			err = noLSM
		case schemas.SourceFanotify:
			err = g.fanotify(opt, regions, failed)
		case schemas.SourceLandlock:
			err = g.landlock(opt, regions)
		}
		if err == nil {
			g.mechanism, g.ready.FileMechanism = m, m
			return g, nil
		}
		hints = append(hints, m+": "+err.Error())
	}
	err = errors.New("cannot enforce here: no mechanism can enforce every file rule")
	if opt.fileMechanism != schemas.FileMechanismAuto {
		err = fmt.Errorf("cannot enforce here: --file-mechanism %s cannot enforce every file rule", opt.fileMechanism)
		hints = append(hints, "leave out --file-mechanism, so that any that can does it: the kernel, the rules and the rights decide")
	}
	return nil, tool.Fail(tool.ExitCannot, err, hints...)
}

// mayUse reports whether a mechanism was asked for, or may be chosen.
func (o *options) mayUse(mechanism string) bool {
	return o.fileMechanism == schemas.FileMechanismAuto || o.fileMechanism == mechanism
}

// lookAtFiles looks whether the file rules can be enforced, before the probes are attached: that takes a
// while. noLSM says why LSM programs do not; they are asked first.
func lookAtFiles(opt options) (noLSM, err error) {
	if opt.files == nil {
		return nil, nil
	}
	if opt.mayUse(schemas.SourceLSM) {
		if noLSM = bpf.ProbeLSM(); noLSM == nil {
			return nil, nil
		}
	}
	_, err = chooseFiles(opt, noLSM, nil)
	return noLSM, err
}

// attachWithFiles attaches the probes, with LSM programs for the file rules where these
// work; why says why they do not.
func attachWithFiles(o bpf.Options, opt options, noLSM error) (ses *bpf.Session, why, err error) {
	if opt.mayUse(schemas.SourceLSM) && noLSM == nil {
		o.Files = opt.files
	}
	ses, err = bpf.Attach(o)
	if refused := new(bpf.RulesError); errors.As(err, &refused) && refused.Files {
		o.Files, noLSM = nil, refused.Err
		ses, err = bpf.Attach(o)
	}
	return ses, noLSM, err
}

// inactive says why a mechanism does nothing here; nil if it does what it is told.
func inactive(mechanism string) error {
	switch mechanism {
	case schemas.SourceLSM:
		return bpf.ProbeLSM()
	case schemas.SourceFanotify:
		if err := confine.HasDomain(); err != nil {
			return err
		}
		group, err := fanotifyGroup()
		if err == nil {
			unix.Close(group)
		}
		return err
	}
	return confine.LandlockActs()
}

// errUnsupervised: who is in the cgroup already cannot be confined any more.
var errUnsupervised = errors.New("works only for a command that runner-exec starts")

// landlock lets runner-exec start the command below an allow-list.
func (g *fileGuard) landlock(opt options, regions []*confine.Region) (err error) {
	if !opt.supervised {
		return errUnsupervised
	}
	if err := inactive(schemas.SourceLandlock); err != nil {
		return err
	}
	g.ready.Landlock, err = confine.Landlock(g.rules, regions, confine.LandlockABI())
	g.errnos = landlockErrnos
	return err
}

// fanotify gives the command mounts of its own, and asks about each open on some of them.
func (g *fileGuard) fanotify(opt options, regions []*confine.Region, failed func(error)) error {
	if !opt.supervised {
		return errUnsupervised
	}
	if !confine.MayAdminister(unix.Getppid()) { // it enters the mount namespace
		return errNoRights
	}
	if err := confine.HasDomain(); err != nil {
		return err
	}
	plan, err := confine.Mounts(g.rules, regions)
	if err != nil || failed == nil {
		return err
	}
	l, err := newListener(opt, regions, failed)
	if err != nil {
		return err
	}
	private, err := makeMounts(plan, l)
	if err != nil {
		l.close()
		return err
	}
	g.listener, g.private = l, private
	g.ready.Namespace, g.errnos = private.ready(l), mountErrnos
	return nil
}

// close ends the listener. Nobody may wait for it any more.
func (g *fileGuard) close() {
	if g == nil || g.listener == nil {
		return
	}
	g.listener.close()
	g.private.close()
}

// refused counts what was refused, by rule: kernel is the count of the LSM programs.
func (g *fileGuard) refused(kernel map[uint32]uint64) map[uint32]uint64 {
	if g == nil {
		return nil
	}
	by := maps.Clone(g.counts)
	for rule, n := range kernel {
		by[rule] += n
	}
	if g.listener != nil {
		for rule, n := range g.listener.refused() {
			by[rule] += n
		}
	}
	return by
}

// lost is how many refusals the listener had no room for. They are counted by rule.
func (g *fileGuard) lost() uint64 {
	if g == nil || g.listener == nil {
		return 0
	}
	return g.listener.lost.Load()
}

// before are the listener's events up to a time, which belong before a record of that time.
func (g *fileGuard) before(ktime uint64) (events []schemas.RawEvent) {
	if g == nil || g.listener == nil {
		return nil
	}
	if g.listener.waiting.Load() {
		g.staged = append(g.staged, g.listener.take()...)
	}
	n := 0
	for n < len(g.staged) && g.staged[n].KtimeNS <= ktime {
		n++
	}
	events, g.staged = g.staged[:n], g.staged[n:]
	return events
}

// stage is for when the ring was read to its end: what was taken before that belongs now.
// It reports whether there is more, which belongs after the ring was read once more.
func (g *fileGuard) stage() (events []schemas.RawEvent, more bool) {
	if g == nil || g.listener == nil {
		return nil, false
	}
	events, g.staged = slices.Clone(g.staged), g.listener.take()
	return events, len(g.staged) > 0
}

package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// recorded is what an archive says, with its members as files.
type recorded struct {
	dir       string
	runID     string
	identity  string
	started   *schemas.RunStarted
	finished  *schemas.RunFinished
	env       *schemas.RunEnv
	box       *schemas.Box
	net       *schemas.Net
	clock     *schemas.Clock
	health    *schemas.Health
	exchanges []*schemas.NetExchange
	names     []*schemas.NetName
	changes   []*schemas.FileChange
	ticks     []schemas.ClockTick
	programs  programs
	policies  map[string]bool  // digests of the policy files that something was decided by; "" of one that is not named
	sizes     map[string]int64 // of the members that are there
}

// unpack takes an archive apart into a directory. Member names are of a closed set, or digests.
func unpack(ctx context.Context, env *tool.Env, name, dir string) (*recorded, error) {
	e, err := evidence.OpenFile(ctx, env, name)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &recorded{dir: dir, runID: e.Report.RunID, identity: e.Report.Identity, sizes: map[string]int64{}}
	files := evidence.Files{Dir: dir}
	err = e.Read(ctx, archive.Visitor{
		Bytes:    files.Bytes,
		End:      func(m archive.Member) error { r.sizes[m.Name] = m.Size; return nil },
		Document: func(d archive.Document) error { r.document(d.Value); return nil },
		Line:     func(l *archive.Line) error { r.line(l.Event); return nil },
	})
	if failed := files.Done(); err == nil && failed != nil {
		err = tool.ScratchError(failed)
	}
	return r, err
}

func (r *recorded) path(member string) string {
	return filepath.Join(r.dir, filepath.FromSlash(member))
}

func (r *recorded) document(v any) {
	switch v := v.(type) {
	case *schemas.Box:
		r.box = v
	case *schemas.Net:
		r.net = v
	case *schemas.Clock:
		r.clock = v
	case *schemas.RunEnv:
		r.env = v
	case *schemas.Health:
		r.health = v
		for _, note := range v.Notes {
			r.notedPolicy(note)
		}
	}
}

// notedPolicy takes in the policy file that a note names.
func (r *recorded) notedPolicy(note string) {
	notes := []*schemas.Note{schemas.NoteToolPolicy}
	for i := range schemas.Enforcements {
		notes = append(notes, schemas.Enforcements[i].Note)
	}
	for _, n := range notes {
		if code, _, _ := schemas.CutNote(note); code != n.Code {
			continue
		}
		if values, err := n.Parse(note); err == nil {
			if digest, named := values.Get(schemas.KeyPolicy); named {
				r.decidedBy(digest)
			}
		}
	}
}

func (r *recorded) decidedBy(digest string) {
	if r.policies == nil {
		r.policies = map[string]bool{}
	}
	r.policies[digest] = true
}

func (r *recorded) line(v any) {
	switch v := v.(type) {
	case *schemas.RunStarted:
		r.started = v
	case *schemas.RunFinished:
		r.finished = v
	case *schemas.NetExchange:
		r.exchanges = append(r.exchanges, v)
	case *schemas.NetName:
		r.names = append(r.names, v)
	case *schemas.FileChange:
		r.changes = append(r.changes, v)
	case *schemas.ClockTick:
		r.ticks = append(r.ticks, *v)
	case *schemas.PolicyEvent:
		r.decidedBy(v.PolicyDigest)
	case *schemas.KernelEvent:
		r.programs.add(v)
	case *schemas.FilteredEvent:
		if random(v.Value) {
			r.programs.noise = v.Value
		}
	}
}

// has reports whether a member is there.
func (r *recorded) has(member string) bool {
	_, there := r.sizes[member]
	return there
}

// kernel reports whether the run was observed.
func (r *recorded) kernel() bool {
	return r.health != nil && r.health.KernelLayer != schemas.LayerAbsent
}

// kernelLayer is the state of the kernel layer.
func (r *recorded) kernelLayer() string {
	if r.health == nil {
		return notKnown
	}
	return r.health.KernelLayer
}

// wrapped reports whether a wrapper was in force.
func (r *recorded) wrapped(name string) bool {
	return r.env != nil && slices.Contains(r.env.Wrappers, name)
}

// programs are those that were executed, with what only the kernel layer shows of them.
type programs struct {
	of   map[uint32]string          // process → what it executed last
	seen map[string]map[string]bool // program → why it is not controlled
	// noise is the device for random numbers that something opened; by the rules for noise such opens are not lines.
	noise string
}

// random reports whether a file gives random numbers.
func random(path string) bool { return path == "/dev/urandom" || path == "/dev/random" }

// add takes in a kernel line.
func (p *programs) add(e *schemas.KernelEvent) {
	if p.of == nil {
		p.of, p.seen = map[uint32]string{}, map[string]map[string]bool{}
	}
	done := e.Has&schemas.KernelHasReturn != 0 && e.ReturnValue >= 0
	switch {
	case e.EventType == schemas.EventExec && done && len(e.Value) > 0:
		name := string(e.Value)
		p.of[e.PID] = name
		if p.seen[name] == nil {
			p.seen[name] = map[string]bool{}
		}
		if !shimmed(name) {
			p.seen[name]["its clock and random numbers are its own"] = true
		}
	case e.EventType == schemas.EventOpenat && done && random(string(e.Value)):
		if name := p.of[e.PID]; name != "" {
			p.seen[name]["it reads "+string(e.Value)] = true
		} else { // of a process that executed nothing itself
			p.noise = string(e.Value)
		}
	}
}

// shimmed reports whether runner-clock has a shim for a program.
func shimmed(program string) bool {
	base := filepath.Base(program)
	return base == "node" || base == "nodejs" || base == "python" || strings.HasPrefix(base, "python3") || strings.HasPrefix(base, "python2")
}

// Uncontrolled is a program whose inputs are not all given again.
type Uncontrolled struct {
	Program string   `json:"program"`
	Why     []string `json:"why"`
}

// uncontrolled lists the programs, sorted.
func (p *programs) uncontrolled() (list []Uncontrolled) {
	only := true // all have a shim
	for name := range p.seen {
		only = only && shimmed(name)
	}
	for name, why := range p.seen {
		noisy := p.noise != "" && (only || !shimmed(name))
		if len(why) == 0 && !noisy {
			continue
		}
		u := Uncontrolled{Program: name}
		if noisy {
			u.Why = append(u.Why, "it, or another program of the run, read "+p.noise)
		}
		for w := range why {
			u.Why = append(u.Why, w)
		}
		slices.Sort(u.Why)
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Uncontrolled) int { return strings.Compare(a.Program, b.Program) })
	return list
}

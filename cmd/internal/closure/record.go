package closure

import (
	"strings"

	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Record is what is known of an archive. Its methods Document, Line and End are those of a visitor.
type Record struct {
	members map[string]archive.Member
	health  *schemas.Health
	joined  *schemas.Report
	notes   map[*schemas.Note]schemas.NoteValues

	command   marks // of run_started
	started   *schemas.RunStarted
	finished  *schemas.RunFinished
	arguments marks // of the layer process
	plain     bool  // it has arguments as texts
	unsaid    bool  // it has an exec without arguments

	dependencies dependencies
	net          *schemas.Net
	clock        *schemas.Clock
	secrets      int // variables that were taken out of the environment
}

// New returns a record of which nothing is known yet.
func New() *Record {
	r := &Record{members: map[string]archive.Member{}, notes: map[*schemas.Note]schemas.NoteValues{}}
	r.dependencies.init()
	return r
}

// Document takes in a document.
func (r *Record) Document(d archive.Document) error {
	switch v := d.Value.(type) {
	case *schemas.Report:
		r.joined = v
	case *schemas.Net:
		r.net = v
	case *schemas.Clock:
		r.clock = v
	case *schemas.RunEnv:
		for _, e := range v.Env {
			if strings.Contains(e.Value, schemas.RedactionMark) {
				r.secrets++
			}
		}
	case *schemas.Health:
		r.health = v
		for _, text := range v.Notes {
			code, _, _ := schemas.CutNote(text)
			if n, known := schemas.LookupNote(code); known {
				if values, err := n.Parse(text); err == nil {
					r.notes[n] = values
				}
			}
		}
	}
	return nil
}

// Line takes in a line, and keeps nothing of its bytes.
func (r *Record) Line(l *archive.Line) error {
	switch e := l.Event.(type) {
	case *schemas.KernelEvent:
		r.dependencies.kernel(e)
	case *schemas.FilteredEvent:
		r.dependencies.opened([]byte(e.Value))
	case *schemas.RunStarted:
		r.started = e
		for _, text := range e.Command {
			r.command.add(text)
		}
	case *schemas.RunFinished:
		r.finished = e
	case *schemas.PolicyEvent:
		if e.Outcome == schemas.OutcomeCompleted {
			r.dependencies.add(schemas.DependencyTool, []byte(e.Tool))
		}
	case *schemas.ProcessEvent:
		r.process(e)
	}
	return nil
}

// process takes in what programs were started with.
func (r *Record) process(p *schemas.ProcessEvent) {
	for i := range p.States {
		s := &p.States[i]
		switch a := s.Arguments; {
		case s.By != schemas.StateExec:
		case a == nil || a.Unread > 0 || a.Argv == nil && a.Digests == nil && a.Count > 0 || uint64(len(a.Digests)) < a.Count && a.Argv == nil:
			r.unsaid = true
		default:
			r.plain = r.plain || a.Argv != nil
			for _, text := range a.Argv {
				r.arguments.add(text)
			}
			for _, digest := range a.Digests {
				r.arguments.digest(digest)
			}
		}
	}
}

// End takes in that a member was read to its end.
func (r *Record) End(m archive.Member) error {
	r.members[m.Name] = m
	return nil
}

// has reports whether the archive has a member.
func (r *Record) has(member string) bool { _, there := r.members[member]; return there }

// loss is why the kernel layer does not have all, in the words of the notes.
func (r *Record) loss() string {
	var parts []string
	for _, text := range r.health.Notes {
		code, _, _ := schemas.CutNote(text)
		if slices.Contains([]string{schemas.NoteLoss.Code, schemas.NoteDrops.Code, schemas.NoteMissed.Code, schemas.NoteEscape.Code, schemas.NoteEnd.Code, schemas.NoteContractOnly.Code}, code) {
			parts = append(parts, text)
		}
	}
	return verdict.Printable(joinOr(parts, "observation-health.json has no note about it"), 500)
}

package acts

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// maxPrograms bounds how many processes are remembered with their programs, where the lines of
// one process need not be together.
const maxPrograms = 1 << 16

// Reader makes acts of the lines of the kernel layer, in constant memory.
type Reader struct {
	// Together says that the lines of each process are together, as this runner writes them.
	// A number that comes again is then another process.
	Together bool
	Take     func(*Act) error // takes each act; it is valid during the call
	Notes    []string         // of the record: they have the ids of rules

	Processes *Processes // the layer process, if the record has it

	rules map[uint32]schemas.RuleIDs // by the event type of what they refuse

	waiting bool // act is of a first line that can have a second
	form    *form
	act     Act
	ret     int64  // that act points to
	name    string // the last one: programs often do something with one name many times

	process  Process
	programs map[uint32]Process
	calls    map[string][]string // effect → ids of the calls that it is listed for
}

// Document takes the archive's report, which says what was seen of each tool call.
func (r *Reader) Document(d archive.Document) error {
	report, ok := d.Value.(*schemas.Report)
	if !ok {
		return nil
	}
	r.calls = map[string][]string{}
	for i := range report.Bindings {
		b := &report.Bindings[i]
		for _, effect := range b.KernelEffects {
			r.calls[effect] = append(r.calls[effect], b.ToolCallID)
		}
	}
	return nil
}

// Line takes a line of the archive. Lines that are not of the kernel are nothing to it.
func (r *Reader) Line(l *archive.Line) error {
	e, ok := l.Event.(*schemas.KernelEvent)
	if !ok {
		return nil
	}
	if r.waiting && e.EventType == r.form.second && e.PID == r.act.Process.PID && e.Seq == r.act.Seq+1 && sameEnd(&r.act, e) && (r.Processes == nil || r.Processes.owns(e.Seq)) {
		r.describe(e)
		r.act.Process = r.process
		r.act.set(r.form.key2, r.text(e.Value))
		r.addCalls(e)
		return r.Flush()
	}
	if err := r.Flush(); err != nil {
		return err
	}
	if r.Processes != nil {
		if err := r.Processes.enter(e.Seq); err != nil {
			return err
		}
	}
	r.begin(l.RunID, e)
	if r.form.second != 0 && e.EventType == r.form.first {
		r.waiting = true
		return nil
	}
	return r.give()
}

// Flush gives the last act. It is called once more after the last line.
func (r *Reader) Flush() error {
	if !r.waiting {
		return nil
	}
	r.waiting = false
	return r.give()
}

func (r *Reader) give() error {
	if r.act.Group == Executed && r.act.Outcome == schemas.ActDone && r.act.EventType == schemas.EventExec {
		r.process.Executable, r.process.Script = r.act.Path, r.act.Script
		r.act.Process = r.process
		if !r.Together && (len(r.programs) < maxPrograms || r.programs[r.process.PID].PID != 0) {
			r.programs[r.process.PID] = r.process
		}
	}
	return r.Take(&r.act)
}

// begin makes an act of a line.
func (r *Reader) begin(runID string, e *schemas.KernelEvent) {
	r.enter(e.PID)
	r.describe(e)
	alone := false
	f := firsts[e.EventType]
	if f == nil {
		if f = seconds[e.EventType]; f == nil {
			f = &unknown
		} else {
			alone = true
		}
	}
	r.form = f
	r.act = Act{Schema: schemas.SchemaAct, RunID: runID, Seq: e.Seq, Op: f.op, EventType: e.EventType, Group: f.group,
		Write: f.write, Outcome: outcome(e), InDoubt: e.Doubt != "", Process: r.process, Layer: r.Processes}
	a := &r.act
	if alone {
		a.set(f.key2, r.text(e.Value))
	} else {
		a.set(f.key, r.text(e.Value))
	}
	if e.EventType == schemas.EventOpenat {
		a.open(e)
	}
	if f.key == keyEndpoint {
		a.network()
	}
	if e.Has&schemas.KernelHasReturn != 0 {
		r.ret = e.ReturnValue
		a.ReturnValue = &r.ret
		a.Error = schemas.ErrnoName(errorOf(e))
	}
	if e.Has&schemas.KernelHasRuleID != 0 {
		rule := e.RuleID
		a.Rule, a.RuleID = &rule, r.ruleIDs(e.EventType).Of(rule)
	}
	r.addCalls(e)
}

// text is a name of a line.
func (r *Reader) text(name []byte) string {
	if string(name) != r.name {
		r.name = string(name)
	}
	return r.name
}

// ruleIDs are the ids of the rules that make lines of an event type.
func (r *Reader) ruleIDs(eventType uint32) schemas.RuleIDs {
	if r.rules == nil {
		r.rules = map[uint32]schemas.RuleIDs{}
		for i := range schemas.Enforcements {
			e := &schemas.Enforcements[i]
			r.rules[e.Event] = e.IDsIn(r.Notes)
		}
	}
	return r.rules[eventType]
}

// enter finds the process of a line.
func (r *Reader) enter(pid uint32) {
	number := uint32(0)
	if r.Processes != nil && r.Processes.Now != nil {
		number = r.Processes.Now.Process
	}
	if pid == r.process.PID && number == r.process.Number && r.process.PID != 0 {
		return
	}
	r.process = Process{PID: pid, Number: number}
	if r.Together || number > 0 {
		return
	}
	if r.programs == nil {
		r.programs = map[uint32]Process{}
	}
	if p, ok := r.programs[pid]; ok {
		r.process = p
	}
}

// describe says of the process of a line what the layer process has.
func (r *Reader) describe(e *schemas.KernelEvent) {
	if r.Processes != nil && r.Processes.see(e) {
		r.Processes.describe(&r.process)
	}
}

// addCalls adds the tool calls whose effects in the report have the line's.
func (r *Reader) addCalls(e *schemas.KernelEvent) {
	if len(r.calls) == 0 {
		return
	}
	ids := r.calls[string(schemas.AppendEffect(nil, e))]
next:
	for _, id := range ids {
		for _, old := range r.act.ToolCalls {
			if old == id {
				continue next
			}
		}
		r.act.ToolCalls = append(r.act.ToolCalls, id)
	}
}

// sameEnd reports whether a second line is of the same call: it ended in the same way.
func sameEnd(a *Act, e *schemas.KernelEvent) bool {
	has := e.Has&schemas.KernelHasReturn != 0
	return outcome(e) == a.Outcome && has == (a.ReturnValue != nil) && (!has || e.ReturnValue == *a.ReturnValue)
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// run is one call of Commit or Revert.
type run struct {
	ctx     context.Context
	j       *Journal
	id      string
	t       *target
	d       Driver
	effects []Effect
	items   []item
	result  Result
	left    []string
}

// Commit does a transaction, or goes on with it where it was killed. One that was committed is left as it is: Result.Already.
// Errors: a ConflictError or another error before anything was applied; an UndoneError if it was taken back; ErrInterrupted if
// the context ended between effects: Commit goes on, Revert takes back; ErrState if it was reverted or has failed.
func (j *Journal) Commit(ctx context.Context, x *Transaction, d Driver) (*Result, error) {
	set, err := newSet(x.Transitions)
	if err == nil {
		err = checkEffects(x, d)
	}
	if err != nil {
		return nil, err
	}
	transitions, effects, err := j.keep(x, set)
	if err != nil {
		return nil, err
	}
	r := &run{ctx: ctx, j: j, id: x.ID, d: d, effects: x.Effects}
	t := j.log.txs[x.ID]
	if t != nil {
		if t.begin.Transitions != transitions || t.begin.Effects != effects {
			return nil, fmt.Errorf("%w: the journal has the id %s of another change", ErrState, shown(x.ID))
		}
	}
	if err := r.open(x.Dir); err != nil {
		return nil, err
	}
	defer r.t.close()
	switch step := t.stage(); step {
	case StepCommitted, StepReverted, StepReverting, StepFailed, StepApplying, StepApplied, StepUndoing:
		if b := t.begin.Directory; b.Dev != r.t.dev || b.Ino != r.t.ino {
			return nil, fmt.Errorf("%w: %s was begun in another directory, %s", ErrState, shown(x.ID), b.Path)
		}
		return r.again(step)
	}
	begin := Record{Tx: x.ID, Step: StepBegin, Transitions: transitions, Effects: effects, Names: len(set.list),
		Directory: &Directory{schemas.Text(r.t.path), r.t.dev, r.t.ino}}
	if err := r.prepare(begin, set, x); err != nil {
		return nil, err
	}
	if err := r.forward(false); err != nil {
		return r.done(), err
	}
	return r.commit()
}

// again goes on with a transaction that has begun to change the directory, or has ended.
func (r *run) again(step Step) (*Result, error) {
	switch step {
	case StepCommitted:
		r.result.Already = true
		return r.done(), nil
	case StepReverted, StepReverting, StepFailed:
		return nil, fmt.Errorf("%w: %s is %s, and is not committed again", ErrState, shown(r.id), step)
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	switch step {
	case StepUndoing:
		return r.undone(errors.New(r.tx().why))
	case StepApplying:
		if err := r.forward(true); err != nil {
			return r.done(), err
		}
	}
	return r.commit()
}

// stage is the step that decides how a transaction goes on.
func (t *tx) stage() Step {
	if t == nil {
		return ""
	}
	switch t.step {
	case StepCommitted, StepReverted, StepFailed, StepUndone, StepRefused, StepBegin, StepChecked, StepSaved, StepApplying:
		return t.step
	}
	if t.back != "" {
		return t.back
	}
	return StepApplied
}

func (r *run) tx() *tx { return r.j.log.txs[r.id] }

func checkEffects(x *Transaction, d Driver) error {
	if x.ID == "" {
		return errors.New("the transaction has no id")
	}
	if err := checkName(x.ID); err != nil {
		return fmt.Errorf("the id of the transaction: %w", err)
	}
	keys := map[string]bool{}
	for _, e := range x.Effects {
		switch {
		case e.Key == "":
			return errors.New("an effect has no key")
		case keys[e.Key]:
			return fmt.Errorf("two effects have the key %s", shown(e.Key))
		case d == nil:
			return errors.New("there are effects, but no driver for them")
		}
		keys[e.Key] = true
		if err := checkName(e.Key); err != nil {
			return fmt.Errorf("the key of an effect: %w", err)
		}
	}
	return nil
}

// checkName checks that a line of the journal can hold a name.
func checkName(s string) error {
	const most = 4096
	if len(s) > most || !utf8.ValidString(s) {
		return fmt.Errorf("it has %d bytes, expected valid UTF-8 and at most %d", len(s), most)
	}
	return nil
}

// keep puts the lists of what is to be done into the journal.
func (j *Journal) keep(x *Transaction, s *set) (transitions, effects string, err error) {
	transitions, err = putList(j, s.wire())
	if err == nil && len(x.Effects) > 0 {
		effects, err = putList(j, x.Effects)
	}
	return transitions, effects, err
}

// open opens the directory, which must not have the journal in it, nor be in it.
func (r *run) open(dir string) error {
	for _, id := range r.j.log.order {
		if id != r.id && r.j.log.txs[id].unfinished() {
			return fmt.Errorf("%w: %s is not finished: commit or revert it first", ErrState, shown(id))
		}
	}
	t, err := openTarget(dir)
	if err != nil {
		return err
	}
	if err := apart(t.path, r.j.dir); err != nil {
		t.close()
		return err
	}
	t.opened = map[string]uint32{}
	if x := r.tx(); x != nil {
		maps.Copy(t.opened, x.opened)
	}
	r.t = t
	return nil
}

func apart(a, b string) error {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		top, err := os.Stat(pair[0])
		if err != nil {
			return err
		}
		for dir := pair[1]; ; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && os.SameFile(info, top) {
				return fmt.Errorf("%s is in %s: the journal and the directory must be apart", shown(pair[1]), shown(pair[0]))
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

// prepare does all before the directory changes. After an error it is as it was.
func (r *run) prepare(begin Record, set *set, x *Transaction) (err error) {
	if err := r.t.shutAll(); err != nil { // of an attempt that was killed
		return err
	}
	if err := r.j.syncBlobs(); err != nil {
		return err
	}
	if err := r.j.append(begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = r.refuse(StepRefused, err)
		}
	}()
	r.t.rights = r.openUp
	p := &planner{t: r.t, set: set, temp: tempName(r.id)}
	if r.items, err = p.plan(); err != nil {
		return err
	}
	if err = r.j.append(Record{Tx: r.id, Step: StepChecked, Names: len(r.items)}); err != nil {
		return err
	}
	if err = r.save(x); err != nil {
		return err
	}
	digest, err := putList(r.j, r.items)
	if err == nil {
		err = r.j.syncBlobs()
	}
	if err == nil {
		err = r.j.append(Record{Tx: r.id, Step: StepSaved, Items: digest, Names: len(r.items)})
	}
	if err == nil {
		err = r.j.reserve()
	}
	if err == nil {
		err = r.ctx.Err()
	}
	return err
}

// refuse ends a call that changed nothing.
func (r *run) refuse(step Step, cause error) error {
	rec := Record{Tx: r.id, Step: step, Error: clip(cause.Error(), 4000)}
	var c *ConflictError
	if errors.As(cause, &c) {
		rec.Conflicts, rec.Count = c.Conflicts, c.Count
	}
	if err := r.t.shutAll(); err != nil {
		return errors.Join(cause, err) // the journal knows what is still open
	}
	// Without the line, which a full disk can prevent, the next call starts anew, too.
	if err := r.j.append(rec); err != nil && !full(err) {
		return errors.Join(cause, err)
	}
	return cause
}

// clip bounds what a line says.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// openUp gives the owner rights for a while. The journal knows of it before.
func (r *run) openUp(path string, fd int, mode uint32) error {
	if _, known := r.t.opened[path]; !known {
		if err := r.j.append(Record{Tx: r.id, Step: StepOpened, Path: schemas.Text(path), Mode: &mode}); err != nil {
			return err
		}
		r.t.opened[path] = mode
	}
	return chmodUp(fd, mode)
}

func chmodUp(fd int, mode uint32) error {
	at("open up")
	return unix.Chmod(handle(fd), mode|ownerRights)
}

// reopen gives rights again while the directory changes: to what the journal knows the mode of.
func (r *run) reopen(known map[string]int) func(path string, fd int, mode uint32) error {
	return func(path string, fd int, mode uint32) error {
		if _, open := r.t.opened[path]; !open {
			_, before := r.tx().opened[path]
			if i, ok := known[path]; !before && (!ok || r.items[i].Implied) {
				return unix.EACCES
			}
			r.t.opened[path] = mode
		}
		return chmodUp(fd, mode)
	}
}

// save puts old and new contents into the journal.
func (r *run) save(x *Transaction) error {
	saved := map[string]bool{}
	for i := range r.items {
		it := &r.items[i]
		if it.InPlace || it.Old == nil || it.Old.SHA256 == "" || saved[it.Old.SHA256] {
			continue
		}
		saved[it.Old.SHA256] = true
		if err := r.saveOld(it); err != nil {
			return fmt.Errorf("%s: %w", shown(string(it.Path)), err)
		}
	}
	for i := range r.items {
		it := &r.items[i]
		if it.InPlace || it.New == nil || it.New.SHA256 == "" || saved[it.New.SHA256] {
			continue
		}
		saved[it.New.SHA256] = true
		if err := r.saveNew(it.New, x); err != nil {
			return fmt.Errorf("%s: its new content: %w", shown(string(it.Path)), err)
		}
	}
	return r.ctx.Err()
}

func (r *run) saveOld(it *item) error {
	path := string(it.Path)
	s, err := r.t.look(path, false)
	if err == nil && (s == nil || s.Kind != tree.File || s.Size != it.Old.Size) {
		err = errChanges
	}
	if err != nil {
		return err
	}
	f, err := r.t.file(path, s)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.j.save(it.Old.SHA256, it.Old.Size, f); !errors.Is(err, errContent) {
		return err
	}
	return errChanges
}

func (r *run) saveNew(n *node, x *Transaction) error {
	if r.j.has(n.SHA256) {
		return nil
	}
	if x.Content == nil {
		return errors.New("it is not at hand")
	}
	from, err := x.Content(n.SHA256)
	if err != nil {
		return err
	}
	defer from.Close()
	return r.j.save(n.SHA256, n.Size, io.Reader(from))
}

// load reads the list of names of a transaction that was begun before.
func (r *run) load() (err error) {
	x := r.tx()
	if r.items, err = getList[item](r.j, x.items); err != nil {
		return err
	}
	if x.begin.Effects != "" && r.effects == nil {
		r.effects, err = getList[Effect](r.j, x.begin.Effects)
	}
	return err
}

// done is the result of a call.
func (r *run) done() *Result {
	if x := r.tx(); x != nil {
		r.result.Tx, r.result.Step = r.id, x.step
		r.result.Left = x.left
		r.result.NotKept = x.notKept
	}
	return &r.result
}

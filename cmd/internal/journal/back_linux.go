package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// forward changes the directory. After an error everything is taken back.
func (r *run) forward(again bool) error {
	if !again {
		if err := r.j.append(Record{Tx: r.id, Step: StepApplying, Names: len(r.items)}); err != nil {
			return r.refuse(StepRefused, err)
		}
	}
	a := newApply(r.j, r.t, r.id, r.items, false)
	a.ctx, a.again = r.ctx, again
	list, err := r.applied(a)
	var digest string
	if err == nil {
		if digest, err = putList(r.j, list); err == nil {
			err = r.j.syncBlobs()
		}
	}
	if err == nil {
		kept := bounded(slices.Sorted(maps.Keys(a.notKept)))
		err = r.j.append(Record{Tx: r.id, Step: StepApplied, After: digest, Names: len(list), NotKept: kept})
	}
	if err != nil {
		_, err = r.undo(err, nil)
		return err
	}
	r.result.Names = r.changed()
	return nil
}

// applied brings the directory to where it is to be, and looks whether it is.
func (r *run) applied(a *apply) ([]receipt, error) {
	r.t.rights = r.reopen(a.at)
	defer r.t.leave()
	if err := a.run(); err != nil {
		return nil, err
	}
	list, err := a.verify()
	return list, errors.Join(err, r.t.shutAll())
}

func (r *run) changed() (n int) {
	for i := range r.items {
		if !r.items[i].Implied {
			n++
		}
	}
	return n
}

// bounded keeps a list within a line of the journal.
func bounded(list []string) []string {
	const most = 50
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	for i := range list {
		list[i] = clip(list[i], 1000)
	}
	return list
}

// commit does the effects that are not done yet.
func (r *run) commit() (*Result, error) {
	for _, e := range r.effects {
		if _, done := r.tx().receipts[e.Key]; done {
			continue
		}
		failure, err := r.effect(e)
		if err != nil {
			return r.done(), err
		}
		if failure != nil {
			return r.undone(failure, r.unsure(e, failure)...)
		}
	}
	if err := r.j.append(Record{Tx: r.id, Step: StepCommitted}); err != nil {
		return r.done(), err
	}
	return r.done(), nil
}

// compact checks a receipt of a driver. No receipt is null.
func compact(receipt json.RawMessage) (json.RawMessage, error) {
	if receipt == nil {
		receipt = json.RawMessage("null")
	}
	if len(receipt) > MaxReceipt {
		return nil, fmt.Errorf("the receipt has %d bytes, at most %d", len(receipt), MaxReceipt)
	}
	var v any
	return receipt, schemas.Unmarshal(receipt, &v)
}

func (r *run) unsure(e Effect, err error) []string {
	if errors.Is(err, ErrUnsure) {
		return []string{fmt.Sprintf("%s: %v", shown(e.Key), ErrUnsure)}
	}
	return nil
}

// undone takes everything back and returns why.
func (r *run) undone(cause error, left ...string) (*Result, error) {
	_, err := r.undo(cause, left)
	return r.done(), err
}

// undo takes everything back: effects, the last one first, and then the directory.
func (r *run) undo(cause error, left []string) (*UndoneError, error) {
	if r.tx().back == "" {
		if err := r.j.append(Record{Tx: r.id, Step: StepUndoing, Error: clip(cause.Error(), 4000), Left: bounded(left)}); err != nil {
			return nil, errors.Join(cause, err)
		}
	}
	if r.ctx.Err() != nil { // interrupted: what was done is taken back all the same
		r.ctx = context.WithoutCancel(r.ctx)
	}
	if err := r.goBack(StepUndone); err != nil {
		return nil, fmt.Errorf("%w; it could not all be taken back yet, revert goes on with it: %w", cause, err)
	}
	u := &UndoneError{Cause: cause, Left: r.tx().left}
	return u, u
}

// goBack goes the way back from wherever a transaction is, and ends it.
func (r *run) goBack(end Step) error {
	r.left = slices.Clone(r.tx().unsure)
	if err := r.undoEffects(); err != nil {
		return err
	}
	a := newApply(r.j, r.t, r.id, r.items, true)
	a.ctx, a.again, a.lenient = r.ctx, true, true
	if _, err := r.applied(a); err != nil {
		return err
	}
	r.result.Names = r.changed()
	r.left = append(r.left, a.left...)
	if len(r.left) > 0 {
		end = StepFailed
	}
	kept := bounded(slices.Sorted(maps.Keys(a.notKept)))
	err := r.j.append(Record{Tx: r.id, Step: end, Left: bounded(r.left), NotKept: kept, Names: r.result.Names})
	return err
}

// undoEffects undoes effects that were done, the last one first.
func (r *run) undoEffects() error {
	for _, e := range slices.Backward(r.effects) {
		receipt, done := r.tx().receipts[e.Key]
		if !done {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrInterrupted, err)
		}
		if r.d == nil {
			return fmt.Errorf("%s: no driver undoes it", shown(e.Key))
		}
		why := r.d.CannotUndo(e, receipt)
		if why == "" {
			if err := r.j.append(Record{Tx: r.id, Step: StepEffectUndoing, Key: e.Key}); err != nil {
				return err
			}
			at("undo effect")
			err := r.d.Undo(r.ctx, e, receipt)
			if err != nil && r.ctx.Err() != nil {
				return fmt.Errorf("%w: %w", ErrInterrupted, err)
			}
			if err == nil {
				if err := r.j.append(Record{Tx: r.id, Step: StepEffectUndone, Key: e.Key}); err != nil {
					return err
				}
				r.result.Effects++
				continue
			}
			why = err.Error()
		}
		if err := r.j.append(Record{Tx: r.id, Step: StepEffectLeft, Key: e.Key, Error: clip(why, 4000)}); err != nil {
			return err
		}
		r.left = append(r.left, fmt.Sprintf("%s: %s", shown(e.Key), why))
	}
	return nil
}

// CannotUndo names what Revert of a transaction could not take back, with the reason: effects of which the driver says so, and
// those of which nobody knows whether they happened.
func (j *Journal) CannotUndo(id string, d Driver) (list []string, err error) {
	t := j.log.txs[id]
	if t == nil {
		return nil, fmt.Errorf("%w: the journal has no %s", ErrState, shown(id))
	}
	if t.begin.Effects == "" {
		return nil, nil
	}
	effects, err := getList[Effect](j, t.begin.Effects)
	if err != nil {
		return nil, err
	}
	for _, e := range effects {
		receipt, done := t.receipts[e.Key]
		switch {
		case t.prepared[e.Key] && d != nil && d.CannotUndo(e, nil) == "": // Revert does it again, to undo it
		case t.prepared[e.Key]:
			list = append(list, fmt.Sprintf("%s: %v", shown(e.Key), ErrUnsure))
		case done && d == nil:
			list = append(list, fmt.Sprintf("%s: no driver undoes it", shown(e.Key)))
		case done:
			if why := d.CannotUndo(e, receipt); why != "" {
				list = append(list, fmt.Sprintf("%s: %s", shown(e.Key), why))
			}
		}
	}
	return list, nil
}

// Revert takes a transaction back: one that was committed, if all is still as it left it; one that was killed or interrupted, from
// wherever it is; one that failed, once more. Effects are undone in reverse, then the directory. What could not be taken back is in
// Result.Left, and the step is then failed. One that was reverted is left as it is: Result.Already.
func (j *Journal) Revert(ctx context.Context, id string, d Driver) (*Result, error) {
	r := &run{ctx: ctx, j: j, id: id, d: d}
	t := r.tx()
	step := t.stage()
	switch step {
	case "":
		return nil, fmt.Errorf("%w: the journal has no %s", ErrState, shown(id))
	case StepReverted:
		r.result.Already = true
		return r.done(), nil
	}
	if err := r.openSame(); err != nil {
		return nil, err
	}
	defer r.t.close()
	switch step {
	case StepUndone, StepRefused, StepBegin, StepChecked, StepSaved:
		err := r.t.shutAll()
		if err == nil && step != StepUndone && step != StepRefused {
			err = r.j.append(Record{Tx: id, Step: StepRefused, Error: "taken back before anything was applied"})
		}
		return nil, errors.Join(fmt.Errorf("%w: nothing of %s is applied", ErrState, shown(id)), err)
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r.revert(step)
}

func (r *run) revert(step Step) (*Result, error) {
	end := StepReverted
	switch step {
	case StepCommitted:
		if err := r.unchanged(); err != nil {
			return nil, r.refuse(StepRevertRefused, err)
		}
		if err := r.j.append(Record{Tx: r.id, Step: StepReverting}); err != nil {
			return nil, r.refuse(StepRevertRefused, err)
		}
	case StepFailed:
		if err := r.j.append(Record{Tx: r.id, Step: StepReverting}); err != nil {
			return nil, err
		}
	case StepReverting:
	case StepUndoing:
		end = StepUndone
	default:
		end = StepUndone
		left, err := r.settle()
		if err != nil {
			return r.done(), err
		}
		if err := r.j.append(Record{Tx: r.id, Step: StepUndoing, Error: "taken back before it was committed", Left: left}); err != nil {
			return nil, err
		}
	}
	if r.tx().after != "" {
		if err := r.made(); err != nil {
			return r.done(), err
		}
	}
	err := r.goBack(end)
	return r.done(), err
}

// settle finds out what became of an effect that was begun, but has no receipt: it is done again with the same key, so that there
// is a receipt to undo it with. One that cannot be undone is not done again, and named.
func (r *run) settle() (left []string, err error) {
	for _, e := range r.effects {
		if !r.tx().prepared[e.Key] {
			continue
		}
		if r.d == nil || r.d.CannotUndo(e, nil) != "" {
			left = append(left, fmt.Sprintf("%s: %v", shown(e.Key), ErrUnsure))
			continue
		}
		failure, err := r.effect(e)
		if err != nil {
			return nil, err
		}
		if failure != nil {
			left = append(left, r.unsure(e, failure)...)
		}
	}
	return left, nil
}

// effect does one effect. failure is what its driver says; err means that the transaction stays where it is, and can go on.
func (r *run) effect(e Effect) (failure, err error) {
	if err := r.ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	if err := r.j.append(Record{Tx: r.id, Step: StepPrepare, Key: e.Key}); err != nil {
		return nil, err
	}
	at("effect")
	receipt, failure := r.d.Do(r.ctx, e)
	if failure != nil {
		if r.ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrInterrupted, failure)
		}
		return fmt.Errorf("%s: %w", shown(e.Key), failure), nil
	}
	if receipt, err = compact(receipt); err == nil {
		err = r.j.append(Record{Tx: r.id, Step: StepReceipt, Key: e.Key, Receipt: receipt})
	}
	if err != nil {
		return nil, fmt.Errorf("%s was done, but its receipt could not be kept; the next call does it again with the same key: %w", shown(e.Key), err)
	}
	r.result.Effects++
	return nil, nil
}

// openSame opens the directory that the transaction was begun in.
func (r *run) openSame() error {
	dir := r.tx().begin.Directory
	path, err := schemas.Untext(dir.Path)
	if err == nil {
		err = r.open(string(path))
	}
	if err == nil && (r.t.dev != dir.Dev || r.t.ino != dir.Ino) {
		r.t.close()
		err = fmt.Errorf("%s is another directory than the one that was changed", dir.Path)
	}
	return err
}

// made puts what was made in the place of what was to be made: the way back begins there.
func (r *run) made() error {
	list, err := getList[receipt](r.j, r.tx().after)
	if err != nil {
		return err
	}
	if len(list) != len(r.items) {
		return fmt.Errorf("the journal's list of receipts has %d names, expected %d", len(list), len(r.items))
	}
	for i := range list {
		if list[i].Path != r.items[i].Path {
			return fmt.Errorf("the journal's list of receipts has %s, expected %s", shown(string(list[i].Path)), shown(string(r.items[i].Path)))
		}
		if r.items[i].New = list[i].Now; list[i].Now != nil {
			list[i].Now.AnyTime = true // a touch is no change
		}
	}
	return nil
}

// unchanged checks that all is still as the commit left it.
func (r *run) unchanged() error {
	if err := r.made(); err != nil {
		return err
	}
	r.t.rights = r.openUp
	c := &ConflictError{}
	a := newApply(r.j, r.t, r.id, r.items, false)
	for i := range r.items {
		if r.items[i].New != nil && r.items[i].Old == nil || r.items[i].New != nil && !isDir(r.items[i].Old) {
			if isDir(r.items[i].New) {
				a.holds(i, c)
			}
		}
		if _, err := a.is(i); err != nil {
			c.add(a.path(i), err.Error())
		}
	}
	return c.orNil()
}

// holds checks that a directory that goes away has nothing but what was made in it.
func (a *apply) holds(i int, c *ConflictError) {
	names, err := a.t.names(a.path(i))
	if err != nil {
		return // it is said of the directory itself
	}
	slices.Sort(names)
	for _, name := range names {
		if n, ok := a.at[a.path(i)+"/"+name]; !ok || a.items[n].New == nil {
			c.add(a.path(i), fmt.Sprintf("it holds %s, which is no part of the change", shown(name)))
		}
	}
}

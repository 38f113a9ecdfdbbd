package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// Schema is the schema of a line of a journal.
const Schema = schemas.SchemaGateJournal

// Step is what a line of a journal says.
type Step string

// Steps.
const (
	StepBegin         Step = "begin"          // what is to be done is known to the journal
	StepOpened        Step = "opened"         // a directory or file gets rights for its owner for a while
	StepRefused       Step = "refused"        // conflicts, or an error before anything was applied; nothing was
	StepChecked       Step = "checked"        // the directory is what was expected
	StepSaved         Step = "saved"          // old and new contents are in the journal
	StepApplying      Step = "applying"       // from here on the directory changes
	StepApplied       Step = "applied"        // the directory is what was wanted
	StepPrepare       Step = "effect_prepare" // an effect is about to be done
	StepReceipt       Step = "effect_receipt" // an effect was done
	StepCommitted     Step = "committed"      // the end of Commit
	StepUndoing       Step = "undoing"        // an error: everything is taken back
	StepReverting     Step = "reverting"      // Revert: everything is taken back
	StepEffectUndoing Step = "effect_undoing" // an effect is about to be undone
	StepEffectUndone  Step = "effect_undone"  // an effect was undone
	StepEffectLeft    Step = "effect_left"    // an effect could not be undone
	StepUndone        Step = "undone"         // the directory and the effects are as before Commit, which can be tried again
	StepReverted      Step = "reverted"       // the directory is as before Commit
	StepRevertRefused Step = "revert_refused" // conflicts: Revert did nothing
	StepFailed        Step = "failed"         // some of it could not be taken back
)

// Directory says which directory a transaction changes.
type Directory struct {
	Path string `json:"path"` // in text form, without links
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// Record is one line of a journal. Which keys are there depends on the step.
type Record struct {
	Schema string `json:"schema"`
	Seq    uint64 `json:"seq"` // from 0, over all transactions
	Tx     string `json:"tx"`
	Step   Step   `json:"step"`
	Time   string `json:"time"` // RFC 3339, for people; never compared

	Directory   *Directory `json:"directory,omitempty"`   // of begin
	Transitions string     `json:"transitions,omitempty"` // of begin: digest of the list of what is to be done
	Effects     string     `json:"effects,omitempty"`     // of begin: digest of the list of effects; absent: none
	Items       string     `json:"items,omitempty"`       // of saved: digest of the list of names with both states
	After       string     `json:"after,omitempty"`       // of applied: digest of the list of receipts, one for each name of items

	Names     int             `json:"names,omitzero"`      // that the step is about
	Path      string          `json:"path,omitempty"`      // of opened, in text form
	Mode      *uint32         `json:"mode,omitempty"`      // of opened: the one before
	Key       string          `json:"key,omitempty"`       // of an effect
	Receipt   json.RawMessage `json:"receipt,omitzero"`    // of effect_receipt
	Error     string          `json:"error,omitempty"`     // why
	Conflicts []Conflict      `json:"conflicts,omitempty"` // the first ones
	Count     int             `json:"count,omitzero"`      // of all conflicts
	NotKept   []string        `json:"not_kept,omitempty"`
	Left      []string        `json:"left,omitempty"`
}

// next says which steps may follow which: a journal in which they do not was not written by this package.
var next = map[Step][]Step{
	"":                {StepBegin},
	StepBegin:         {StepBegin, StepOpened, StepRefused, StepChecked},
	StepOpened:        {StepBegin, StepOpened, StepRefused, StepChecked, StepRevertRefused, StepReverting},
	StepRefused:       {StepBegin},
	StepChecked:       {StepBegin, StepRefused, StepSaved, StepOpened},
	StepSaved:         {StepBegin, StepRefused, StepApplying},
	StepApplying:      {StepApplied, StepUndoing},
	StepApplied:       {StepPrepare, StepCommitted, StepUndoing},
	StepPrepare:       {StepPrepare, StepReceipt, StepUndoing},
	StepReceipt:       {StepPrepare, StepCommitted, StepUndoing},
	StepCommitted:     {StepReverting, StepRevertRefused, StepOpened},
	StepRevertRefused: {StepReverting, StepRevertRefused, StepOpened},
	StepUndoing:       {StepEffectUndoing, StepEffectLeft, StepUndone, StepFailed},
	StepReverting:     {StepEffectUndoing, StepEffectLeft, StepReverted, StepFailed},
	StepEffectUndoing: {StepEffectUndoing, StepEffectUndone, StepEffectLeft},
	StepEffectUndone:  {StepEffectUndoing, StepEffectLeft, StepUndone, StepReverted, StepFailed},
	StepEffectLeft:    {StepEffectUndoing, StepEffectLeft, StepUndone, StepReverted, StepFailed},
	StepUndone:        {StepBegin},
	StepReverted:      {},
	StepFailed:        {StepReverting},
}

// check checks what does not depend on other lines.
func (r *Record) check() error {
	switch _, known := next[r.Step]; {
	case r.Schema != Schema:
		return fmt.Errorf("schema is %.100q, expected %q", r.Schema, Schema)
	case r.Step == "" || !known:
		return fmt.Errorf("step %.100q is not known", string(r.Step))
	case r.Tx == "":
		return errors.New("tx is missing")
	case (r.Step == StepBegin) != (r.Directory != nil) || (r.Step == StepBegin) != (r.Transitions != ""):
		return errors.New("directory and transitions are of begin, and each has them")
	case (r.Step == StepSaved) != (r.Items != ""):
		return errors.New("items are of saved, and each has them")
	case (r.Step == StepApplied) != (r.After != ""):
		return errors.New("after is of applied, and each has it")
	case (r.Step == StepOpened) != (r.Path != "") || (r.Step == StepOpened) != (r.Mode != nil):
		return errors.New("path and mode are of opened, and each has them")
	case ofEffect(r.Step) != (r.Key != ""):
		return errors.New("key is of effects, and each has it")
	}
	for _, digest := range []string{r.Transitions, r.Effects, r.Items, r.After} {
		if digest != "" && !schemas.ValidDigest(digest) {
			return fmt.Errorf("%.100q is no digest", digest)
		}
	}
	if r.Path != "" {
		if _, err := schemas.Untext(r.Path); err != nil {
			return fmt.Errorf("path: %w", err)
		}
	}
	if r.Directory != nil {
		if _, err := schemas.Untext(r.Directory.Path); err != nil {
			return fmt.Errorf("directory.path: %w", err)
		}
	}
	return nil
}

func ofEffect(s Step) bool {
	switch s {
	case StepPrepare, StepReceipt, StepEffectUndoing, StepEffectUndone, StepEffectLeft:
		return true
	}
	return false
}

// log is all that a journal says.
type log struct {
	records []Record
	txs     map[string]*tx
	order   []string // of the first lines of the transactions
	size    int64    // bytes of whole lines
}

// tx is what a journal says of one transaction, in its last attempt.
type tx struct {
	begin    Record
	step     Step              // the last one that is not opened or revert_refused
	last     Step              // the last one
	opened   map[string]uint32 // paths and their modes before, since the last begin or end
	items    string
	after    string
	receipts map[string]json.RawMessage // by the keys of effects that were done and not undone
	prepared map[string]bool            // keys of effects that may have been done, without receipt
	back     Step                       // undoing or reverting, once one of them began
	why      string                     // of undoing
	unsure   []string                   // effects of which nobody knows whether they happened
	left     []string
	notKept  []string
}

// add takes one more record.
func (l *log) add(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Seq != uint64(len(l.records)) {
		return fmt.Errorf("seq is %d, expected %d", r.Seq, len(l.records))
	}
	t := l.txs[r.Tx]
	if t == nil {
		t = &tx{}
	}
	if !allowed(t, r.Step) {
		return fmt.Errorf("step %s cannot follow %s", r.Step, t.last)
	}
	if l.txs[r.Tx] == nil {
		l.txs[r.Tx] = t
		l.order = append(l.order, r.Tx)
	}
	t.take(r)
	l.records = append(l.records, *r)
	return nil
}

func allowed(t *tx, s Step) bool {
	for _, may := range next[t.last] {
		if may == s {
			return true
		}
	}
	return false
}

func (t *tx) take(r *Record) {
	if t.last = r.Step; r.Step != StepOpened && r.Step != StepRevertRefused {
		t.step = r.Step
	}
	switch r.Step {
	case StepBegin:
		*t = tx{begin: *r, step: r.Step, last: r.Step, opened: map[string]uint32{}, receipts: map[string]json.RawMessage{}, prepared: map[string]bool{}}
	case StepOpened:
		path, _ := schemas.Untext(r.Path)
		if _, twice := t.opened[string(path)]; !twice {
			t.opened[string(path)] = *r.Mode
		}
	case StepRefused, StepUndone, StepCommitted, StepReverted, StepFailed, StepRevertRefused:
		t.opened = map[string]uint32{}
	case StepSaved:
		t.items = r.Items
	case StepApplied:
		t.after = r.After
	case StepPrepare:
		t.prepared[r.Key] = true
	case StepReceipt:
		delete(t.prepared, r.Key)
		t.receipts[r.Key] = r.Receipt
	case StepEffectUndone:
		delete(t.receipts, r.Key)
	case StepUndoing, StepReverting:
		t.back = r.Step
		t.why = first(t.why, r.Error)
		t.unsure = append(t.unsure, r.Left...)
	}
	switch r.Step {
	case StepUndone, StepReverted, StepFailed:
		t.left, t.notKept = r.Left, r.NotKept
	case StepApplied:
		t.notKept = r.NotKept
	}
}

// read reads a journal. What follows the last LF is not part of it.
func read(r io.Reader, name string) (*log, error) {
	l := &log{txs: map[string]*tx{}}
	in := bufio.NewReaderSize(r, maxLine+1)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return l, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%s:%d: the line has more than %d bytes", name, n, maxLine)
		case err != nil:
			return nil, err
		}
		rec := new(Record)
		if err = schemas.Unmarshal(bytes.TrimSuffix(line, []byte("\n")), rec); err == nil {
			err = l.add(rec)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the line is damaged: %w", name, n, err)
		}
		l.size += int64(len(line))
	}
}

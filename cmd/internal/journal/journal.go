// Package journal applies a set of changes to a real directory exactly once, and can take them back, through a write-ahead
// journal. All names of the set are at their new state in the end, or all at their old one, also when the process is killed at
// any moment and called again. Effects outside of the directory, such as requests, can be part of the same transaction.
//
// # The journal
//
// A journal is a directory of mode 0700. journal.ndjson is append-only: each line is one Record, written whole and synced
// before the next action. A last line without its LF was never finished and is cut at the next Open; anything else that is not
// as it was written is an error. Lists (what was asked for, what was found, what was made) and saved contents are in
// blobs/sha256/HEX, so that a line stays small and each list is checked by its digest when it is used.
//
// # A transaction
//
// begin, checked, saved, applying, applied, then effect_prepare and effect_receipt of each effect, committed. An error after
// applying takes everything back: undoing, effect_undoing and effect_undone in reverse, undone; failed if something could not be
// taken back, by name. Revert of a committed transaction: reverting, then as above, reverted. A transaction that was killed goes
// on when it is called again: forward from applying on, anew before that, backward from undoing or reverting on.
//
// # What is not restored
//
// Times of access and of the last change of anything (ctime), inode numbers, and flags of chattr(1). Attributes that this user
// cannot see (trusted.* without root) or cannot set are lost where a file is replaced; those that were seen are named in
// Result.NotKept.
//
// # Others who write at the same time
//
// A directory is locked against other journals. That nothing else changes a name is checked right before each replacement; what
// another process does between this look and the rename is not seen.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// KindUnknown is the kind of Unknown.
const KindUnknown tree.Kind = "unknown"

// Unknown is the From of a name of which no evidence says what is there. Whatever is there is saved and replaced, except a
// directory, which may only stay one: then nothing of it changes.
var Unknown = &State{Kind: KindUnknown}

// State is what a name is.
type State struct {
	Kind   tree.Kind // made can be file, dir, symlink and fifo
	Mode   uint32    // permissions, setuid, setgid and sticky: 0 to 07777; that of a symlink means nothing
	UID    int       // -1: not known. A To then keeps the owner if that of From was not known either, or is the directory's
	GID    int
	Size   uint64            // of a file without Link, in bytes
	SHA256 string            // of a file without Link: "sha256:" and 64 hexadecimal digits
	Link   string            // of a file: the first path, in byte order, of the same file; "" if this is it
	Target string            // of a symlink, its bytes
	Xattrs map[string]string // nil: not compared; a To then keeps those of the file that it replaces
	// ModifiedNS is the time of the last change of the content that a To gets, in ns since 1970. 0: it is not set. It is not compared.
	ModifiedNS int64
	Unread     string // why it is not known in full, or cannot be made (a mount): an error by name; "" otherwise
}

// Transition is what becomes of one name.
type Transition struct {
	Path string // bytes, below the directory and without a slash at either end; "." is the directory itself
	From *State // nil: the name must not be there
	To   *State // nil: the name is removed
}

// Effect is something outside of the directory that is done once. Its driver does it.
type Effect struct {
	Key  string          `json:"key"`           // the same key is never done twice; the driver and its server see to that
	Data json.RawMessage `json:"data,omitzero"` // all that a driver needs to do it and to undo it; kept in the journal
}

// Driver does effects. Its errors are final: it retries by itself.
type Driver interface {
	// Do does an effect and returns a receipt. After a crash it may be called again with the same key. If it cannot tell
	// whether the effect happened, its error wraps ErrUnsure.
	Do(ctx context.Context, e Effect) (receipt json.RawMessage, err error)
	// Undo takes back what Do did. After a crash it may be called again with the same key.
	Undo(ctx context.Context, e Effect, receipt json.RawMessage) error
	// CannotUndo says why an effect cannot be undone, "" if it can. The receipt is nil if there is none yet.
	CannotUndo(e Effect, receipt json.RawMessage) string
}

// Transaction is what Commit does.
type Transaction struct {
	ID          string // digest of the plan
	Dir         string // the target directory
	Transitions []Transition
	// Content opens the bytes of a new file by their digest. It is called once for each.
	Content func(sha256 string) (io.ReadCloser, error)
	Effects []Effect
}

// Result is how a call ended.
type Result struct {
	Tx      string
	Step    Step     // the last one of the transaction
	Already bool     // it was so before: nothing was done
	Names   int      // of the directory that were changed or taken back
	Effects int      // that were done or undone
	NotKept []string // attributes that could not be set, "PATH: NAME: why", sorted
	Left    []string // what could not be taken back, by name
}

// Status is where a transaction is.
type Status struct {
	Tx         string
	Step       Step   // the last one
	Directory  string // in text form
	Names      int    // that are to be changed
	Done       []string
	Left       []string // what could not be taken back
	Why        string   // it was or is taken back
	Unfinished bool     // it was killed, or stopped in the middle: Commit goes on, or Revert takes it back
}

// Bounds.
const (
	MaxConflicts = 100       // that are kept; all are counted
	MaxReceipt   = 256 << 10 // bytes of a receipt
	maxLine      = 1 << 20   // bytes of a line of the journal
)

// Errors that callers tell apart.
var (
	ErrBusy        = errors.New("another process works on it")
	ErrUnsupported = errors.New("changes can be applied on Linux only")
	ErrUnsure      = errors.New("it is not known whether it happened") // of a Driver
	ErrState       = errors.New("the transaction cannot go there")     // wrong step: reverted, failed, not known
	ErrInterrupted = errors.New("interrupted")                         // effects are not all done; the same call goes on
)

// Conflict is a name that is not what the transaction expects.
type Conflict struct {
	Path string `json:"path"` // in text form
	Why  string `json:"why"`
}

// ConflictError says that nothing was applied because the directory is not what the transaction expects.
type ConflictError struct {
	Conflicts []Conflict // at most MaxConflicts, in the order of the paths
	Count     int        // of all
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	if e.Count == 1 {
		return fmt.Sprintf("%s: %s", first.Path, first.Why)
	}
	return fmt.Sprintf("%s: %s (and %d more conflicts)", first.Path, first.Why, e.Count-1)
}

func (e *ConflictError) add(path, why string) {
	if e.Count++; len(e.Conflicts) < MaxConflicts {
		e.Conflicts = append(e.Conflicts, Conflict{shown(path), why})
	}
}

func (e *ConflictError) orNil() error {
	if e.Count == 0 {
		return nil
	}
	return e
}

// UndoneError says why a transaction was taken back.
type UndoneError struct {
	Cause error
	Left  []string // what could not be taken back, by name; empty: all is as it was
}

func (e *UndoneError) Error() string {
	if len(e.Left) == 0 {
		return fmt.Sprintf("%v; all that was done before is taken back", e.Cause)
	}
	return fmt.Sprintf("%v; taken back, except %s", e.Cause, join(e.Left))
}

func (e *UndoneError) Unwrap() error { return e.Cause }

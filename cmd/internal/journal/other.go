//go:build !linux

package journal

import "context"

// Journal is not there.
type Journal struct{}

// Open fails.
func Open(string) (*Journal, error) { return nil, ErrUnsupported }

func (j *Journal) Close() error { return ErrUnsupported }

// Commit fails.
func (j *Journal) Commit(context.Context, *Transaction, Driver) (*Result, error) {
	return nil, ErrUnsupported
}

// Revert fails.
func (j *Journal) Revert(context.Context, string, Driver) (*Result, error) {
	return nil, ErrUnsupported
}

// CannotUndo fails.
func (j *Journal) CannotUndo(string, Driver) ([]string, error) { return nil, ErrUnsupported }

// Status is empty.
func (j *Journal) Status() []Status { return nil }

// Log is empty.
func (j *Journal) Log() []Record { return nil }

// Package apply makes transitions of a directory of what runner-box recorded.
package apply

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// Transitions are the changes of a workspace, to be made in another directory.
func Transitions(changes []*schemas.FileChange) ([]journal.Transition, error) {
	list := make([]journal.Transition, 0, len(changes))
	for _, c := range changes {
		x, err := transition(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
		list = append(list, x)
	}
	return list, nil
}

func transition(c *schemas.FileChange) (x journal.Transition, err error) {
	if x.Path, err = untext(c.Path); err == nil {
		x.From, err = State(c.Before)
	}
	if err == nil {
		x.To, err = State(c.After)
	}
	return x, err
}

// State is a recorded state. The owner of what belonged to the program is that of the directory: -1.
func State(s *schemas.FileState) (*journal.State, error) {
	if s == nil {
		return nil, nil
	}
	out := &journal.State{Kind: tree.Kind(s.Kind), Mode: s.Mode, UID: -1, GID: -1, SHA256: s.SHA256, Unread: s.Unread}
	if s.UID != nil {
		out.UID, out.GID = int(*s.UID), int(*s.GID)
	}
	if s.Size != nil && s.Link == "" {
		out.Size = *s.Size
	}
	if s.Mount {
		out.Unread = "another file system is mounted there"
	}
	var err error
	if out.Link, err = untext(s.Link); err == nil {
		out.Target, err = untext(s.Target)
	}
	return out, err
}

func untext(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	b, err := schemas.Untext(s)
	return string(b), err
}

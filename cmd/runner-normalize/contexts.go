package main

import (
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// identity is who and where a process is, as the kernel reported it.
type identity struct {
	uid, gid, ns uint32
	root         string // schemas.UnknownRoot if it could not be read
}

// Bounds of the dictionary of contexts.
const (
	maxContexts     = 1 << 14
	maxContextBytes = 4 << 20
)

// contexts is a dictionary: most processes of a run have the same context. Number 0 is one that is not known,
// because nobody reported it or because there was no more room.
type contexts struct {
	numbers map[identity]uint32
	list    []identity
	bytes   int

	run       identity          // of the run itself
	hasRun    bool              // it is known
	spaces    map[uint32]uint32 // numbers of mount namespaces, in the order in which they were written
	maxSpaces uint32
}

func newContexts() contexts {
	return contexts{numbers: map[identity]uint32{}, list: make([]identity, 1), spaces: map[uint32]uint32{}, maxSpaces: schemas.MaxNamespaces}
}

// number is that of the context which an event reports.
func (c *contexts) number(e *schemas.RawEvent) uint32 {
	if e.Has&schemas.HasContext == 0 {
		return 0
	}
	key := identity{e.UID, e.GID, e.MountNS, schemas.UnknownRoot}
	if e.Root != nil {
		key.root = string(e.Root)
	}
	if !c.hasRun && e.Op == schemas.OpExec {
		c.run, c.hasRun = key, true
	}
	no, ok := c.numbers[key]
	if !ok {
		if len(c.list) == maxContexts || c.bytes+len(key.root) > maxContextBytes {
			return 0
		}
		no = uint32(len(c.list))
		c.numbers[key] = no
		c.list = append(c.list, key)
		c.bytes += len(key.root)
	}
	return no
}

// settleRun decides which context is that of the run: of a command that runner-exec started, that of its first
// program; of a cgroup that was there before, that of runner-capture.
func (c *contexts) settleRun(h *schemas.StageHealth) error {
	if h.Facts[schemas.FactSupervisor] == schemas.SupervisorExec {
		return nil
	}
	fact, there := h.Facts[schemas.FactMountNS]
	if !there {
		return nil
	}
	ns, err := strconv.ParseUint(fact, 10, 32)
	if err != nil {
		return tool.Failf(tool.ExitInput, "%s reports %s=%.100q, expected a number", h.Stage, schemas.FactMountNS, fact)
	}
	c.run, c.hasRun = identity{ns: uint32(ns), root: "/"}, true
	return nil
}

// describe adds a context to a state.
func (c *contexts) describe(s *schemas.ProcessState, number uint32) {
	if number == 0 {
		return
	}
	x := &c.list[number]
	s.UID, s.GID = &x.uid, &x.gid
	usual := c.run.root
	if x.ns != c.run.ns {
		s.MountNamespace = c.space(x.ns)
		usual = "/"
	}
	if x.root != usual {
		s.Root = x.root
	}
}

// space is the number of a mount namespace other than the run's. The last one stands for all that come later.
func (c *contexts) space(ns uint32) uint32 {
	no, there := c.spaces[ns]
	if !there {
		no = min(uint32(len(c.spaces))+1, c.maxSpaces)
		if no < c.maxSpaces {
			c.spaces[ns] = no
		}
	}
	return no
}

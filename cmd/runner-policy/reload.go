package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// ruling is what a session decides by: a policy and the digest of its file.
type ruling struct {
	engine engine
	digest string
}

// rulings is what the sessions of a process decide by: the last reading of the policy file.
type rulings = atomic.Pointer[ruling]

func newRulings(by ruling) *rulings {
	r := new(rulings)
	r.Store(&by)
	return r
}

// hold returns what the session decides by. Until release, which can be called twice, no other
// decision of the session is made: the log has them in the order of the readings. The first
// decision after a new reading has that in the log before it. Nothing may be written to the client or
// the server before release, because that can take any time.
func (s *session) hold() (by ruling, release func()) {
	s.deciding.Lock()
	if last := s.rules.Load(); last != s.by {
		s.by = last
		denies, cut := last.engine.Denies()
		s.log.Reloaded(schemas.PolicyReloaded{KtimeNS: now(), PolicyDigest: last.digest, Denies: denies, DeniesCut: cut})
	}
	return *s.by, sync.OnceFunc(s.deciding.Unlock)
}

var errMoved = errors.New("relative_to is not what it was when the server was started")

// reloader reads the policy file again.
type reloader struct {
	env  *tool.Env
	file string
	held string // relative_to of the first reading: where the server was started
}

// on returns what handles a signal: it reports whether the signal only asks for the file to be
// read again. At a terminal a hangup ends the session.
func (r reloader) on(to *rulings) func(os.Signal) bool {
	ends := tool.IsTerminal(r.env.Stdin)
	return func(sig os.Signal) bool {
		if ends || !child.IsHangup(sig) {
			return false
		}
		r.read(to)
		return true
	}
}

// read reads the file. If it cannot be used, people are told, and what decides stays as it is.
func (r reloader) read(to *rulings) {
	p, err := policy.Open(r.file)
	if err == nil && p.RelativeTo != r.held {
		err = fmt.Errorf("%s: %w", r.file, errMoved)
	}
	if err != nil {
		r.env.Warnf("the policy stays as it was: %s", schemas.Text(err.Error()))
		return
	}
	_, network := p.Network()
	_, files := p.Files()
	if (network || files) && os.Getenv(schemas.EnvRunID) != "" {
		r.env.Warnf("only rules for tools were read again: network, file and exec rules stay as they were when the run started")
	}
	to.Store(&ruling{p, p.Digest}) // before it is said: who reads that can count on it
	r.env.Sayf("deciding by %s from now on, %s", schemas.Text(r.file), p.Digest)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// defaultListen is a free port that only this machine reaches.
const defaultListen = "127.0.0.1:0"

// server is what serve does over HTTP. It has no state but its files: the archives, plans and approvals below dir, and the journal. What
// it keeps in memory is what it read there.
type server struct {
	env     *tool.Env
	ctx     context.Context // ends when the server is told to stop
	dir     string
	lock    *os.File
	key     *attestation.PrivateKey
	own     *attestation.PublicKey
	extra   []*attestation.PublicKey
	to      string
	real    string // the same without links
	journal string
	sender  *sender
	partial bool
	auth    *auth
	uploads chan struct{}

	mu     sync.Mutex // held while files of dir are read or written
	pol    loaded
	doing  *doing            // a commit or a revert that is being done; nil: none
	briefs map[string]*brief // by the id of an archive
}

// serve answers until it is stopped.
func serve(ctx context.Context, env *tool.Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, terminate)
	defer stop()
	s, err := newServer(ctx, env)
	if err != nil {
		return err
	}
	defer s.close()
	listener, err := listen(env, env.Flag.String("listen"))
	if err != nil {
		return err
	}
	bound := listener.Addr().String()
	if s.auth, err = newAuth(env.Flag.String("listen"), bound); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if _, err := fmt.Fprintf(env.Stdout, "http://%s/#token=%s\n", s.auth.host(), s.auth.token); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return tool.Fail(tool.ExitIO, err)
	case <-ctx.Done():
	}
	// A change that is under way stops where it can go on.
	closing, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := web.Shutdown(closing); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return nil
}

func newServer(ctx context.Context, env *tool.Env) (s *server, err error) {
	f := env.Flag
	if err := errors.Join(env.NotEmpty("dir", "to", "journal", "key", "listen", "policy", "policy-wasm", "policy-exec", "data", "entrypoint", "actor"), env.NoOperands()); err != nil {
		return nil, err
	}
	for _, name := range []string{"dir", "key", "to", "journal"} {
		if f.String(name) == "" {
			return nil, tool.Missing("--"+name, "runner-gate serve --dir state --policy gate.yaml --key me.pem --to DIR --journal JDIR")
		}
	}
	s = &server{env: env, ctx: ctx, dir: f.String("dir"), to: f.String("to"), journal: f.String("journal"), partial: f.Bool("accept-partial"), uploads: make(chan struct{}, maxUploads), briefs: map[string]*brief{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.key, err = attestation.ReadPrivate(env, f.String("key")); err != nil {
		return s, err
	}
	if s.own, err = s.key.Public(); err != nil {
		return s, tool.Fail(tool.ExitIO, err)
	}
	if s.extra, err = attestation.ReadPublic(f.StringSlice("public-key")); err != nil {
		return s, err
	}
	if s.sender, err = newSender(env); err != nil {
		return s, err
	}
	if err := s.openDirs(); err != nil {
		return s, err
	}
	s.pol = s.load("")
	return s, s.pol.err
}

// openDirs takes the directory of the state for this process alone, and checks the one that is changed.
func (s *server) openDirs() error {
	if info, err := os.Stat(s.to); err != nil {
		return tool.CannotRead(s.to, err)
	} else if !info.IsDir() {
		return tool.BadValue("to", s.to, "a directory")
	}
	if err := cmp.Or(outside("dir", s.dir, s.to), outside("journal", s.journal, s.to)); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return tool.CannotWrite(s.dir, err)
	}
	info, err := os.Stat(s.dir)
	if err == nil {
		err = private(info)
	}
	if err != nil {
		return tool.Fail(tool.ExitIO, fmt.Errorf("--dir %s: %w", schemas.Text(s.dir), err), "chmod 700 it, or take another one")
	}
	if s.real, err = filepath.EvalSymlinks(s.to); err == nil {
		s.real, err = filepath.Abs(s.real)
	}
	if err != nil {
		return tool.CannotRead(s.to, err)
	}
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return tool.CannotWrite(s.dir, err)
	}
	if !lockWhole(s.lock) {
		return tool.Failf(tool.ExitIO, "another runner-gate serves %s", schemas.Text(s.dir))
	}
	left, err := filepath.Glob(filepath.Join(s.dir, uploadPrefix+"*"))
	for _, name := range left { // of a server that was killed
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return tool.CannotWrite(s.dir, err)
	}
	return nil
}

func (s *server) close() {
	if s.pol.policies != nil {
		s.pol.close()
	}
	if s.lock != nil {
		s.lock.Close()
	}
}

// listen opens the port. What other machines reach is said: there is no encryption.
func listen(env *tool.Env, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, tool.BadValue("listen", address, "HOST:PORT, such as "+defaultListen)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, fmt.Errorf("--listen %s: %w", schemas.Text(address), err))
	}
	if at, err := netip.ParseAddrPort(l.Addr().String()); err != nil || !at.Addr().IsLoopback() {
		env.Warnf("%s is reached from other machines, and what goes there is not encrypted", l.Addr())
	}
	return l, nil
}

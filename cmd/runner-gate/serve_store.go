package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Files of an archive below the server's directory.
const (
	fileArchive   = "archive.tar.gz"
	filePlan      = "plan.json"
	fileApprovals = "approvals.jsonl"
	uploadPrefix  = ".upload-"
)

// brief is a plan without its items, as it was read from its file.
type brief struct {
	file    os.FileInfo
	plan    gate.Plan
	digest  string
	refused []string
	summary summary
}

// quiet is the environment of a request: what tools print is not for the terminal of the server.
func (s *server) quiet(to *bytes.Buffer) *tool.Env {
	env := *s.env
	env.Stdout, env.Stderr, env.Args = to, to, nil
	return &env
}

// spoken is an error with its text: of some errors that was printed.
func spoken(err error, said *bytes.Buffer) error {
	var t *tool.Error
	if errors.As(err, &t) && t.Err == nil {
		return tool.Failf(t.Code, "%s", strings.TrimSpace(said.String()))
	}
	return err
}

// place is the directory of an archive.
func (s *server) place(id string) string { return filepath.Join(s.dir, id) }

// bundle finds an archive by its id. Nothing else of a request becomes part of a name of a file.
func (s *server) bundle(id string) (string, error) {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 32 || id != hex.EncodeToString(b) {
		return "", because(codeBundle, "an id is the identity of an archive: 64 hexadecimal digits")
	}
	if _, err := os.Stat(filepath.Join(s.place(id), filePlan)); err != nil {
		return "", because(codeBundle, "there is no such archive")
	}
	return s.place(id), nil
}

// brief reads a plan, if it is not known as it is now.
func (s *server) brief(id string) (*brief, error) {
	dir, err := s.bundle(id)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, filePlan))
	if err != nil {
		return nil, tool.CannotRead(dir, err)
	}
	if b := s.briefs[id]; b != nil && os.SameFile(b.file, info) && b.file.ModTime().Equal(info.ModTime()) && b.file.Size() == info.Size() {
		return b, nil
	}
	p, _, digest, err := readPlan(filepath.Join(dir, filePlan))
	if err != nil {
		return nil, err
	}
	b := &brief{file: info, plan: *p, digest: digest, refused: p.Refused(), summary: summary{ID: id, RunID: p.RunID, Files: len(p.Files), Intents: len(p.Intents)}}
	b.plan.Files, b.plan.Intents, b.plan.Network, b.plan.Calls, b.plan.Decision = nil, nil, nil, nil, gate.Decision{}
	s.briefs[id] = b
	return b, nil
}

// list is all archives.
func (s *server) list() (any, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, tool.CannotRead(s.dir, err)
	}
	at, err := s.steps("")
	if err != nil {
		return nil, err
	}
	list := []summary{}
	for _, e := range entries {
		if _, err := s.bundle(e.Name()); err != nil {
			continue
		}
		b, err := s.brief(e.Name())
		if err != nil {
			list = append(list, summary{ID: e.Name(), Status: statusUnread})
			continue
		}
		approvals, _, err := s.approvals(b)
		if err != nil {
			list = append(list, summary{ID: e.Name(), RunID: b.summary.RunID, Status: statusUnread})
			continue
		}
		list = append(list, s.summed(b, approvals, at))
	}
	return list, nil
}

// take plans an archive that was sent, and keeps both.
func (s *server) take(ctx context.Context, file string) (any, error) {
	var said bytes.Buffer
	r, err := open(ctx, s.quiet(&said), file)
	if err != nil {
		return nil, &problem{code: codeArchive, err: errors.New(strings.ReplaceAll(spoken(err, &said).Error(), schemas.Text(file), "the archive"))}
	}
	defer r.close()
	id := strings.TrimPrefix(r.identity, "sha256:")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.bundle(id); err == nil { // it is here, with its approvals
		return s.view(id)
	}
	b, err := s.planOf(ctx, r)
	if err != nil {
		return nil, err
	}
	dir := s.place(id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, tool.CannotWrite(dir, err)
	}
	if err := os.Rename(file, filepath.Join(dir, fileArchive)); err != nil {
		return nil, tool.CannotWrite(dir, err)
	}
	if err := tool.WriteFile(filepath.Join(dir, filePlan), tool.Bytes(b)); err != nil { // the last file: without it there is no archive
		return nil, err
	}
	return s.view(id)
}

// planOf makes the plan of an archive by the policies that are in force.
func (s *server) planOf(ctx context.Context, r *recorded) ([]byte, error) {
	if s.doing != nil { // the policies are asked by one at a time
		return nil, because(codeBusy, s.doing.says())
	}
	pol := s.fresh()
	if pol.err != nil {
		return nil, &problem{code: codePolicy, err: pol.err}
	}
	_, b, err := planned(ctx, r, pol.policies, s.partial)
	if err != nil {
		var p *tool.Error
		if errors.As(err, &p) && p.Code == tool.ExitInput {
			return nil, &problem{code: codeArchive, err: err}
		}
		return nil, &problem{code: codePolicy, err: err}
	}
	return b, nil
}

// again makes the plan of an archive anew, when policies have changed. Approvals of the old plan do not count for the new one.
func (s *server) again(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	dir, err := s.bundle(id)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	archive, err := open(r.Context(), s.quiet(&said), filepath.Join(dir, fileArchive))
	if err != nil {
		return nil, spoken(err, &said)
	}
	defer archive.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.view(id)
	switch {
	case err != nil:
		return nil, err
	case v.Status == statusCommitted || v.Status == statusUnder:
		return nil, because(codeStatus, "the archive is "+v.Status+": revert it first")
	}
	b, err := s.planOf(r.Context(), archive)
	if err != nil {
		return nil, err
	}
	if schemas.DigestOf(b) != v.Digest {
		if err := tool.WriteFile(filepath.Join(dir, filePlan), tool.Bytes(b)); err != nil {
			return nil, err
		}
	}
	return s.view(id)
}

// download is the plan as a file, for those who approve elsewhere.
func (s *server) download(_ http.ResponseWriter, r *http.Request) (any, error) {
	dir, err := s.bundle(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	b, err := tool.ReadFile(filepath.Join(dir, filePlan), gate.MaxPlan)
	return file{"application/json", b}, err
}

// approvals are those that count for a plan, the last one of each key, and why others do not.
func (s *server) approvals(b *brief) (list []*gate.Approval, not []string, err error) {
	list, not = []*gate.Approval{}, []string{}
	envelopes, err := readEnvelopes(filepath.Join(s.place(b.summary.ID), fileApprovals))
	if err != nil {
		return nil, nil, err
	}
	now, keys := time.Now(), s.fresh().keys
	for _, e := range envelopes {
		a, err := gate.ReadApproval(e, &b.plan, b.digest, keys, now)
		if err != nil {
			not = append(not, strings.TrimPrefix(err.Error(), gate.ErrStale.Error()+": "))
			continue
		}
		list = slices.DeleteFunc(list, func(o *gate.Approval) bool { return o.Key == a.Key && o.Verdict == a.Verdict })
		list = append(list, a)
	}
	slices.Sort(not)
	return list, slices.Compact(not), nil
}

// readEnvelopes reads the approvals of a plan. There may be none.
func readEnvelopes(file string) ([]*attestation.Envelope, error) {
	b, err := tool.ReadFile(file, attestation.MaxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := attestation.Parse(b)
	if err != nil {
		return nil, tool.Failf(tool.ExitInput, "%s: %w", schemas.Text(file), err)
	}
	return list, nil
}

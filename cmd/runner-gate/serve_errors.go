package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Codes of errors that serve answers, which stay as they are. Those of the gate itself are the texts of its errors.
const (
	codeHost      = "host"
	codeOrigin    = "origin"
	codeToken     = "token"
	codeSession   = "session"
	codeCSRF      = "csrf"
	codeAddress   = "address"
	codeBundle    = "bundle"
	codeBody      = "body"
	codeTooLong   = "too_long"
	codeArchive   = "archive"
	codeStatus    = "status"
	codeKey       = "key"
	codeBusy      = "busy"
	codePolicy    = "policy"
	codeUndone    = "undone"
	codeCut       = "interrupted"
	codeInvalid   = "invalid"
	codeCannot    = "cannot"
	codeFailed    = "failed"
	detailsAtMost = 100 // of one error
)

// httpError is a code with its HTTP status, and what it means.
type httpError struct {
	code   string
	status int
	means  string
}

// httpErrors are all codes. GATE.md has the same table.
var httpErrors = []httpError{
	{codeHost, http.StatusForbidden, "the request names another host than the one that is served"},
	{codeOrigin, http.StatusForbidden, "a browser says that another page made the request"},
	{codeToken, http.StatusUnauthorized, "the token is not the one that was printed, or was used before"},
	{codeSession, http.StatusUnauthorized, "there is no session, or it has ended"},
	{codeCSRF, http.StatusForbidden, "the cookie came without the other half of the session"},
	{codeAddress, http.StatusNotFound, "there is no such address with this method"},
	{codeBundle, http.StatusNotFound, "there is no such archive"},
	{codeBody, http.StatusBadRequest, "the body is not what is expected, or did not come in time"},
	{codeTooLong, http.StatusRequestEntityTooLarge, "the body is longer than is allowed"},
	{codeArchive, http.StatusUnprocessableEntity, "runner-verify does not call the archive valid, or no plan can be made from it"},
	{codeKey, http.StatusForbidden, "the key of this server is not one that may approve"},
	{codeStatus, http.StatusConflict, "the archive has a status in which this cannot be done"},
	{codeBusy, http.StatusConflict, "a commit, a revert or another program works on it: ask again"},
	{codePolicy, http.StatusServiceUnavailable, "the policy cannot be read, or cannot be asked"},
	{gate.ErrDenied.Error(), http.StatusForbidden, "the policy, or a person, denies it"},
	{gate.ErrMissing.Error(), http.StatusForbidden, "too few people approved it"},
	{gate.ErrStale.Error(), http.StatusConflict, "the request, or an approval, is about something else than what is here now"},
	{gate.ErrConflict.Error(), http.StatusConflict, "the directory is not as the plan has it; nothing was changed"},
	{codeUndone, http.StatusBadGateway, "the commit failed, and was taken back; `details` has what could not be"},
	{codeCut, http.StatusServiceUnavailable, "the server was told to stop in the middle: the same request goes on, once it runs again"},
	{codeInvalid, http.StatusInternalServerError, "a file of the server is not valid"},
	{codeCannot, http.StatusNotImplemented, "this system cannot do it"},
	{codeFailed, http.StatusInternalServerError, "reading or writing failed"},
}

// problem is an error with its code, and more of it, line by line.
type problem struct {
	code    string
	err     error
	details []string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func because(code, text string) error { return &problem{code: code, err: errors.New(text)} }

// problemOf finds the code of an error.
func problemOf(err error) *problem {
	var p *problem
	var t *tool.Error
	var conflict *journal.ConflictError
	var undone *journal.UndoneError
	errors.As(err, &t)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &conflict):
		p = &problem{code: gate.ErrConflict.Error(), err: errors.New("nothing was changed: the directory is not as the plan has it")}
		for _, c := range conflict.Conflicts {
			p.details = append(p.details, c.Path+": "+c.Why)
		}
		return p
	case errors.As(err, &undone):
		return &problem{code: codeUndone, err: err, details: undone.Left}
	case errors.Is(err, journal.ErrBusy):
		return &problem{code: codeBusy, err: err}
	case errors.Is(err, journal.ErrInterrupted), errors.Is(err, context.Canceled):
		return &problem{code: codeCut, err: err}
	case errors.Is(err, journal.ErrState):
		return &problem{code: codeStatus, err: err}
	case t != nil && t.Code == tool.ExitInput:
		return &problem{code: codeInvalid, err: err}
	case t != nil && t.Code == tool.ExitCannot:
		return &problem{code: codeCannot, err: err}
	}
	for _, e := range []error{gate.ErrDenied, gate.ErrMissing, gate.ErrStale, gate.ErrConflict} {
		if errors.Is(err, e) {
			return &problem{code: e.Error(), err: err}
		}
	}
	return &problem{code: codeFailed, err: err}
}

// Times of an answer.
const (
	readTime   = 30 * time.Second // in which a body has to come
	uploadTime = 15 * time.Minute // an archive
	writeTime  = 2 * time.Minute  // in which an answer has to be taken
)

// respond writes an answer.
func respond(w http.ResponseWriter, status int, v any) {
	b, err := schemas.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"`+codeFailed+`","message":"the answer has no form"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}

// refuse answers that something is not done, and why.
func refuse(w http.ResponseWriter, code, message string, details ...string) {
	status := http.StatusInternalServerError
	for _, e := range httpErrors {
		if e.code == code {
			status = e.status
		}
	}
	type body struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Details []string `json:"details,omitempty"`
	}
	message = strings.TrimPrefix(message, code+": ")
	details = details[:min(len(details), detailsAtMost)]
	for i := range details {
		details[i] = strings.ToValidUTF8(details[i], "\uFFFD")
	}
	respond(w, status, map[string]body{"error": {code, strings.ToValidUTF8(message, "\uFFFD"), details}})
}

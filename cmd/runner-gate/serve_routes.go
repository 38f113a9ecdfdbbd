package main

import (
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of bodies, in bytes.
const (
	maxUpload  = 1 << 30   // an archive
	maxEncoded = 64 << 20  // one in base64, which is kept in memory
	maxBody    = 256 << 10 // any other
	maxUploads = 2         // archives that come at the same time
)

//go:embed page
var pages embed.FS

// pageFiles are the addresses of the page: its file, and what it is.
var pageFiles = map[string][2]string{
	"/": {"gate.html", "text/html"}, "/gate.css": {"gate.css", "text/css"}, "/gate.js": {"gate.js", "text/javascript"}, "/draw.js": {"draw.js", "text/javascript"},
}

// route is an address for data.
type route struct {
	method, path string
	do           func(http.ResponseWriter, *http.Request) (any, error)
}

// routes are all of them. GATE.md has the same list.
func (s *server) routes() []route {
	return []route{
		{"POST", "/session", s.auth.enter},
		{"GET", "/bundles", s.locked(func(http.ResponseWriter, *http.Request) (any, error) { return s.list() })},
		{"POST", "/bundles", s.add},
		{"GET", "/bundles/{id}/plan", s.locked(func(_ http.ResponseWriter, r *http.Request) (any, error) { return s.view(r.PathValue("id")) })},
		{"GET", "/bundles/{id}/plan.json", s.locked(s.download)},
		{"POST", "/bundles/{id}/plan", s.again},
		{"POST", "/bundles/{id}/approve", s.locked(s.approve)},
		{"POST", "/bundles/{id}/commit", s.commit},
		{"POST", "/bundles/{id}/revert", s.revert},
	}
}

// handler is all that is served.
func (s *server) handler() http.Handler {
	open, inside := http.NewServeMux(), http.NewServeMux()
	for _, r := range s.routes() {
		to := inside
		if !strings.HasPrefix(r.path, "/bundles") {
			to = open
		}
		to.HandleFunc(r.method+" "+r.path, answering(r.do))
	}
	for path, file := range pageFiles {
		if path == "/" {
			path = "/{$}"
		}
		open.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			b, err := pages.ReadFile("page/" + file[0])
			if err != nil {
				refuse(w, codeFailed, err.Error())
				return
			}
			w.Header().Set("Content-Type", file[1]+"; charset=utf-8")
			w.Write(b)
		})
	}
	for _, mux := range []*http.ServeMux{open, inside} {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, codeAddress, "there is no such address with this method")
		})
	}
	guarded := s.auth.guard(open, inside)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)) // until there is an answer: not the one of the request before
		guarded.ServeHTTP(w, r)
	})
}

// file is an answer that is no document.
type file struct {
	kind string
	b    []byte
}

// answering writes what a request gives, or why it gives nothing.
func answering(do func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(w, r)
		if err != nil {
			p := problemOf(err)
			refuse(w, p.code, p.Error(), p.details...)
			return
		}
		if f, is := v.(file); is {
			w.Header().Set("Content-Type", f.kind)
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
			w.Write(f.b)
			return
		}
		respond(w, http.StatusOK, v)
	}
}

// locked lets one request at a time look at the files, or write them.
func (s *server) locked(do func(http.ResponseWriter, *http.Request) (any, error)) func(http.ResponseWriter, *http.Request) (any, error) {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		// The body comes first: who is slow keeps nobody waiting.
		b, err := body(w, r, maxBody, readTime)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		s.mu.Lock()
		defer s.mu.Unlock()
		return do(w, r)
	}
}

// body reads a body that has a bound, and has to come in time.
func body(w http.ResponseWriter, r *http.Request, most int64, within time.Duration) ([]byte, error) {
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(within))
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	return b, came(w, err)
}

// came says why a body did not come. The rest of it is not waited for.
func came(w http.ResponseWriter, err error) error {
	var long *http.MaxBytesError
	if err == nil {
		http.NewResponseController(w).SetReadDeadline(time.Time{})
		return nil
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.As(err, &long):
		return because(codeTooLong, fmt.Sprintf("the body is longer than %d bytes", long.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return because(codeBody, "the body did not come in time")
	}
	return &problem{code: codeBody, err: err}
}

// asked reads the body of a request: one object with these keys.
func asked(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := body(w, r, maxBody, readTime)
	if err != nil {
		return err
	}
	if err := schemas.Unmarshal(b, v); err != nil {
		return &problem{code: codeBody, err: err}
	}
	return nil
}

// add takes an archive: its bytes, or {"bundle": base64}.
func (s *server) add(w http.ResponseWriter, r *http.Request) (any, error) {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return nil, because(codeBusy, "other archives are coming just now")
	}
	tmp, err := os.CreateTemp(s.dir, uploadPrefix)
	if err != nil {
		return nil, tool.CannotWrite(s.dir, err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := receive(w, r, tmp); err != nil {
		return nil, err
	}
	return s.take(r.Context(), tmp.Name())
}

// receive writes the archive of a request to a file.
func receive(w http.ResponseWriter, r *http.Request, to io.Writer) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		c := http.NewResponseController(w)
		c.SetReadDeadline(time.Now().Add(uploadTime))
		from := &reading{from: http.MaxBytesReader(w, r.Body, maxUpload)}
		_, err := io.Copy(to, from)
		if err != nil && from.err == nil {
			return tool.CannotWrite("the archive", err)
		}
		return came(w, err)
	}
	b, err := body(w, r, maxEncoded, uploadTime)
	if err != nil {
		return err
	}
	var o struct {
		Bundle string `json:"bundle"`
	}
	if err := schemas.Unmarshal(b, &o); err != nil {
		return &problem{code: codeBody, err: err}
	}
	if b, err = base64.StdEncoding.DecodeString(o.Bundle); err != nil {
		return &problem{code: codeBody, err: err}
	}
	if _, err := to.Write(b); err != nil {
		return tool.CannotWrite("the archive", err)
	}
	return nil
}

// reading keeps the error of a reader, so that it is not taken for one of the writer.
type reading struct {
	from io.Reader
	err  error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

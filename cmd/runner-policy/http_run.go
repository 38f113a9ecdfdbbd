package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// runHTTP serves clients until a signal ends it.
func runHTTP(ctx context.Context, env *tool.Env, o Options, rules *rulings, again reloader, dir string, to decisions.File) error {
	signals := child.WatchEnding()
	defer signals.Stop()
	hide()
	l, err := net.Listen("tcp", o.HTTP.Listen)
	if err != nil {
		return tool.Fail(tool.ExitOwn, err)
	}
	host, _, _ := net.SplitHostPort(o.HTTP.Listen)
	if !loopback(host) {
		env.Warnf("%s can be reached from other machines: everyone who can connect uses the server", l.Addr())
	}
	p := newHTTPProxy(o, host, l.Addr(), func() *session {
		return newSession(o, rules, dir, to)
	})
	env.Sayf("listening on http://%s%s for %s", l.Addr(), p.upstream.Path, schemas.Text(p.upstream.String()))
	srv := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaderBytes}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	for again := again.on(rules); ; {
		select {
		case sig := <-signals.C:
			if again(sig) {
				continue
			}
		case <-ctx.Done():
		case err = <-done:
		}
		break
	}
	p.stop()
	last, cancel := context.WithTimeout(context.Background(), o.Grace)
	defer cancel()
	if srv.Shutdown(last) != nil {
		srv.Close()
	}
	p.endAll()
	if why := p.logError(); why != nil {
		return tool.Failf(tool.ExitOwn, "%s: writing the decision log: %w", o.Log.Name, why)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return tool.Fail(tool.ExitOwn, err)
	}
	return nil
}

// upstreamClient speaks with the upstream only: it follows no redirect, and no variable of
// the environment leads it elsewhere.
func upstreamClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        30 * time.Second,
		},
	}
}

// endpointURL is where an older server wants messages; nil if that is not on its origin.
func endpointURL(base *url.URL, data []byte) *url.URL {
	u, err := base.Parse(string(data))
	if err != nil || len(data) > 4096 || u.User != nil || !sameOrigin(u, base) {
		return nil
	}
	return u
}

package main

import (
	"encoding/base64"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	sessionQuery   = "runner_session"
	maxSessionID   = 1024
	eventStream    = "text/event-stream"
	jsonBody       = "application/json"
	maxHeaderBytes = 64 << 10
)

// forwarded are the headers of the client that the upstream gets.
var forwarded = []string{"Accept", "Authorization", "Last-Event-ID", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version",
	sessionHeader, "Traceparent", "Tracestate"}

// returned are the headers of the upstream that the client gets.
var returned = []string{"Mcp-Protocol-Version", sessionHeader, "Retry-After", "Www-Authenticate"}

// guard returns the status with which a request is refused before anything reads it, or 0.
// A page of a browser can send requests to this machine under a name of its own (DNS
// rebinding), or as a form. So the Host must be ours, a request of a page must be of our own
// origin, and a message must have the content type that no form has.
func (p *httpProxy) guard(r *http.Request) (status int, why string) {
	if !p.ownHost(r.Host) {
		return http.StatusForbidden, "the Host is not this proxy"
	}
	for _, origin := range r.Header.Values("Origin") {
		if host, ok := strings.CutPrefix(origin, "http://"); !ok || !p.ownHost(host) {
			return http.StatusForbidden, "a page of another origin"
		}
	}
	for _, name := range append([]string{"Content-Type", "Origin"}, forwarded...) {
		if name != "Accept" && len(r.Header.Values(name)) > 1 {
			return http.StatusBadRequest, "the header " + name + " is there twice"
		}
	}
	if id := r.Header.Get(sessionHeader); id != "" && !validSession(id) {
		return http.StatusBadRequest, "not a session id"
	}
	if r.URL.Path != p.upstream.Path {
		return http.StatusNotFound, "the path is " + p.upstream.Path
	}
	switch r.Method {
	case http.MethodPost:
		kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		charset := strings.ToLower(params["charset"])
		if err != nil || kind != jsonBody || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" {
			return http.StatusUnsupportedMediaType, "a message is " + jsonBody
		}
	case http.MethodGet, http.MethodDelete:
	default:
		return http.StatusMethodNotAllowed, "POST, GET or DELETE"
	}
	return 0, ""
}

// ownHost reports whether a Host is ours. Where the proxy listens on all addresses, it is
// any address, but no name.
func (p *httpProxy) ownHost(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port != p.port {
		return false
	}
	switch ip := net.ParseIP(host); {
	case loopback(p.host):
		return loopback(host)
	case p.host == "" || net.ParseIP(p.host).IsUnspecified():
		return ip != nil || host == "localhost"
	default:
		return strings.EqualFold(host, p.host)
	}
}

func validSession(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return len(id) <= maxSessionID
}

// headersAgree reports whether the headers that repeat parts of a message (modern protocol)
// say what the message says: something before the server could go by them.
func headersAgree(h http.Header, sc *jsonrpc.Scanner, m jsonrpc.Message) bool {
	if method := h.Get("Mcp-Method"); method != "" && method != m.Method {
		return false
	}
	name := h.Get("Mcp-Name")
	if name == "" {
		return true
	}
	if coded, ok := strings.CutPrefix(name, "=?base64?"); ok {
		text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(coded, "?="))
		if err != nil {
			return false
		}
		name = string(text)
	}
	v := sc.Value(jsonrpc.FieldName)
	return m.Method != jsonrpc.MethodCall || v.Kind == '"' && string(v.Text) == name
}

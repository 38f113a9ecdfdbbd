package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// httpOptions are those of a proxy for servers over HTTP.
type httpOptions struct {
	Listen   string
	Upstream *url.URL
}

// readHTTP reads --http, --upstream and --http-any. The result says whether they are there.
func (o *Options) readHTTP(env *tool.Env) (bool, error) {
	f := env.Flag
	listen, upstream := f.String("http"), f.String("upstream")
	if !f.IsSet("http") && !f.IsSet("upstream") && !f.IsSet("http-any") {
		return false, nil
	}
	const call = "runner-policy --policy FILE --http 127.0.0.1:8931 --upstream http://127.0.0.1:3000/mcp"
	switch {
	case !f.IsSet("http"):
		return true, tool.Missing("--http LISTEN", call)
	case !f.IsSet("upstream"):
		return true, tool.Missing("--upstream URL", call)
	case len(env.Args) > 0:
		return true, tool.Fail(tool.ExitUsage, fmt.Errorf("--http has an --upstream, so it starts no server"), call)
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return true, tool.BadValue("http", listen, "HOST:PORT, as 127.0.0.1:8931; port 0 takes a free one")
	}
	if !loopback(host) && !f.Bool("http-any") {
		return true, tool.Fail(tool.ExitUsage, fmt.Errorf("--http %s: not an address of this machine alone", listen),
			"127.0.0.1:PORT, or add --http-any: everyone who reaches that address can use the server then")
	}
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return true, tool.BadValue("upstream", upstream, "http://HOST[:PORT]/PATH or https://…, without a user")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	o.HTTP = &httpOptions{Listen: listen, Upstream: u}
	if o.Name == "" {
		o.Name = nameOf(strings.ReplaceAll(u.Host, ":", "_"))
	}
	return true, nil
}

// loopback reports whether a host is this machine, for programs of this machine only.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether two URLs have one scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

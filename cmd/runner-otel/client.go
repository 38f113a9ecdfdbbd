package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// maxSecret is the size of a file with a header's value or with certificates.
const maxSecret = 1 << 20

// client makes the client of --endpoint, or nil.
func client(env *tool.Env) (*otlp.Client, error) {
	endpoint := env.Flag.String("endpoint")
	if endpoint == "" {
		for _, f := range []string{"header", "ca", "state", "timeout", "retry-for"} {
			if env.Flag.IsSet(f) {
				return nil, tool.Usagef("--%s without --endpoint: nothing is sent", f)
			}
		}
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, tool.BadValue("endpoint", endpoint, "http://HOST:PORT or https://HOST, without a user or a query")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		env.Warnf("%s is not encrypted: others on the way can read the record", endpoint)
	}
	c := &otlp.Client{URL: endpoint, Header: http.Header{"User-Agent": {"runner-otel/" + tool.Version()}}}
	timeout, err := duration(env, "timeout")
	if err != nil {
		return nil, err
	}
	if c.RetryFor, err = duration(env, "retry-for"); err != nil {
		return nil, err
	}
	if err := headers(env, c.Header); err != nil {
		return nil, err
	}
	roots, err := authorities(env)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	c.HTTP = &http.Client{Timeout: timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a record goes nowhere else
	return c, nil
}

func duration(env *tool.Env, flag string) (time.Duration, error) {
	d, err := time.ParseDuration(env.Flag.String(flag))
	if err != nil || d <= 0 || d > 24*time.Hour {
		return 0, tool.BadValue(flag, env.Flag.String(flag), "a duration such as 10s or 5m")
	}
	return d, nil
}

// headers takes those of --header. Their values are secrets: no message has one.
func headers(env *tool.Env, h http.Header) error {
	for _, s := range env.Flag.StringSlice("header") {
		key, value, found := strings.Cut(s, "=")
		if !found || !headerName(key) {
			return tool.Usagef("--header: expected KEY=VALUE or KEY=@FILE, with a name of a header as the key")
		}
		if file, ok := strings.CutPrefix(value, "@"); ok {
			b, err := tool.ReadFile(file, maxSecret)
			if err != nil {
				return err
			}
			value = strings.TrimRight(string(bytes.TrimSpace(b)), "\r\n")
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return tool.Usagef("--header %s: its value has a character that no header can have", key)
		}
		h.Set(key, value)
	}
	return nil
}

// authorities are the certificates of --ca; nil are those of the system.
func authorities(env *tool.Env) (*x509.CertPool, error) {
	name := env.Flag.String("ca")
	if name == "" {
		return nil, nil
	}
	b, err := tool.ReadFile(name, maxSecret)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, tool.Failf(tool.ExitInput, "--ca %s: no certificate in PEM in it", name)
	}
	return pool, nil
}

// headerName reports whether a text is a token of HTTP.
func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

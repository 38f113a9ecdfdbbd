package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestServeDoor: nobody gets in but with the token that was printed, once, and from this server's own page.
func TestServeDoor(t *testing.T) {
	ts := newTestServer(t)
	ts.expect("no session", ts.send("GET", "/bundles", ""), codeSession)
	ts.expect("a guess", ts.send("POST", "/session", `{"token":"`+strings.Repeat("0", 64)+`"}`), codeToken)
	ts.expect("no token", ts.send("POST", "/session", `{"token":""}`), codeToken)
	ts.expect("a session before the token was used", ts.send("GET", "/bundles", "", "Authorization: Bearer "+ts.auth.session), codeSession)
	ts.expect("the token in the address", ts.send("GET", "/bundles?token="+ts.token, ""), codeSession)
	r := ts.expect("the token", ts.send("POST", "/session", `{"token":"`+ts.token+`"}`), "")
	ts.expect("the token again", ts.send("POST", "/session", `{"token":"`+ts.token+`"}`), codeToken)
	ts.expect("the token again, by a program", ts.send("POST", "/session", `{"token":"`+ts.token+`","program":true}`), codeToken)

	set := r.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie %q has no %s", set, want)
		}
	}
	if strings.Contains(r.body, ts.auth.session) {
		t.Error("scripts of the page see the cookie")
	}
	cookie := "Cookie: " + strings.Split(set, ";")[0]
	csrf := "X-CSRF-Token: " + ts.auth.csrf
	ts.expect("both halves", ts.send("GET", "/bundles", "", cookie, csrf), "")
	ts.expect("both halves, and a cookie that another port set", ts.send("GET", "/bundles", "", "Cookie: "+ts.auth.cookie+"=x", cookie, csrf), "")
	ts.expect("localhost", ts.send("GET", "/bundles", "", cookie, csrf, "Host: localhost:"+ts.auth.port), "")
	for what, x := range map[string]struct {
		code    string
		headers []string
	}{
		"only the cookie":               {codeCSRF, []string{cookie}},
		"another header":                {codeCSRF, []string{cookie, "X-CSRF-Token: " + ts.auth.session}},
		"only the header":               {codeSession, []string{csrf}},
		"another cookie":                {codeSession, []string{"Cookie: " + ts.auth.cookie + "=" + ts.auth.csrf, csrf}},
		"the cookie of another port":    {codeSession, []string{"Cookie: runner_gate_1=" + ts.auth.session, csrf}},
		"the header as the bearer":      {codeSession, []string{"Authorization: Bearer " + ts.auth.csrf}},
		"the token as the bearer":       {codeSession, []string{"Authorization: Bearer " + ts.token}},
		"an empty bearer":               {codeSession, []string{"Authorization: Bearer "}},
		"a name that means this server": {codeHost, []string{cookie, csrf, "Host: evil.example:" + ts.auth.port}},
		"a name that begins like it":    {codeHost, []string{cookie, csrf, "Host: 127.0.0.1.evil.example:" + ts.auth.port}},
		"another port":                  {codeHost, []string{cookie, csrf, "Host: 127.0.0.1:1"}},
		"another address":               {codeHost, []string{cookie, csrf, "Host: 127.0.0.2:" + ts.auth.port}},
		"no port":                       {codeHost, []string{cookie, csrf, "Host: 127.0.0.1"}},
		"another origin":                {codeOrigin, []string{cookie, csrf, "Origin: http://evil.example"}},
		"another port as origin":        {codeOrigin, []string{cookie, csrf, "Origin: http://127.0.0.1:1"}},
		"this machine by another name":  {codeOrigin, []string{cookie, csrf, "Origin: http://localhost:" + ts.auth.port}},
		"a sandboxed page":              {codeOrigin, []string{cookie, csrf, "Origin: null"}},
		"https":                         {codeOrigin, []string{cookie, csrf, "Origin: https://127.0.0.1:" + ts.auth.port}},
		"another site":                  {codeOrigin, []string{cookie, csrf, "Sec-Fetch-Site: cross-site"}},
		"another port of this site":     {codeOrigin, []string{cookie, csrf, "Sec-Fetch-Site: same-site"}},
		"a link to the data":            {codeOrigin, []string{cookie, csrf, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}},
	} {
		for _, m := range []string{"GET /bundles", "POST /bundles", "GET /bundles/" + ts.id + "/plan", "POST /bundles/" + ts.id + "/approve", "POST /bundles/" + ts.id + "/commit", "POST /bundles/" + ts.id + "/revert"} {
			method, path, _ := strings.Cut(m, " ")
			ts.expect(what+": "+m, ts.send(method, path, `{}`, x.headers...), x.code)
		}
	}
	ts.expect("a link to the page", ts.send("GET", "/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), "")
	ts.expect("the page in a frame", ts.send("GET", "/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), codeOrigin)
	ts.expect("a script of the page, elsewhere", ts.send("GET", "/gate.js", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"), codeOrigin)
	ts.expect("a session from another page", ts.send("POST", "/session", `{}`, "Origin: http://evil.example"), codeOrigin)

	ts.auth.now = func() time.Time { return time.Now().Add(sessionTime) }
	ts.expect("the day after", ts.send("GET", "/bundles", "", cookie, csrf), codeSession)
}

// TestServeProgram: a program has one word in place of both halves.
func TestServeProgram(t *testing.T) {
	ts := newTestServer(t)
	r := ts.expect("as a program", ts.ask("GET", "/bundles", ""), "")
	if r.header.Get("Set-Cookie") != "" {
		t.Error("a program got a cookie")
	}
	ts.expect("a program in a page", ts.send("GET", "/bundles", "", ts.session(), "Origin: http://evil.example"), codeOrigin)
	ts.expect("a page with the token later", ts.send("POST", "/session", `{"token":"`+ts.token+`"}`), codeToken)
}

// TestServeHosts: which names a request may have, by what was asked for and what was bound.
func TestServeHosts(t *testing.T) {
	for _, x := range []struct {
		asked, bound, host string
		good, bad          []string
	}{
		{"127.0.0.1:0", "127.0.0.1:90", "127.0.0.1:90", []string{"127.0.0.1:90", "localhost:90", "LOCALHOST:90"}, []string{"127.0.0.1:91", "[::1]:90", "10.0.0.1:90", "evil:90", "", "localhost"}},
		{"[::1]:0", "[::1]:90", "[::1]:90", []string{"[::1]:90", "localhost:90"}, []string{"127.0.0.1:90", "::1:90"}},
		{"localhost:80", "127.0.0.1:80", "localhost:80", []string{"localhost", "127.0.0.1", "localhost:80"}, []string{"evil", "evil:80", "[::1]"}},
		{":90", "[::]:90", "127.0.0.1:90", []string{"127.0.0.1:90", "[fe80::1]:90", "10.0.0.1:90", "localhost:90"}, []string{"evil.example:90", ":90", "10.0.0.1.evil:90"}},
		{"0.0.0.0:90", "0.0.0.0:90", "127.0.0.1:90", []string{"10.0.0.1:90"}, []string{"evil.example:90"}},
		{"build.example:90", "10.0.0.1:90", "build.example:90", []string{"build.example:90", "10.0.0.1:90"}, []string{"localhost:90", "example:90", "x.build.example:90"}},
	} {
		a, err := newAuth(x.asked, x.bound)
		testkit.Must(t, err)
		if a.host() != x.host {
			t.Errorf("%s is called %s", x.asked, a.host())
		}
		for _, h := range x.good {
			if !a.known(h) {
				t.Errorf("%s: %q is refused", x.asked, h)
			}
		}
		for _, h := range x.bad {
			if a.known(h) {
				t.Errorf("%s: %q is taken", x.asked, h)
			}
		}
	}
}

// TestServePage: the page has no secrets, loads its own files only, and nothing in it is a script but those.
func TestServePage(t *testing.T) {
	ts := newTestServer(t)
	for path := range pageFiles {
		r := ts.expect(path, ts.send("GET", path, ""), "")
		for name, want := range headers {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		for _, secret := range []string{ts.token, ts.auth.session, ts.auth.csrf} {
			if strings.Contains(r.body, secret) {
				t.Errorf("%s has a secret", path)
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "javascript:", "//cdn", "https://", "http://", "<style", "style="} {
			if strings.Contains(r.body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
	for _, bad := range []string{"unsafe", "*", "data:", "http"} {
		if strings.Contains(policyOfPage, bad) {
			t.Errorf("the policy of the page has %s", bad)
		}
	}
	page := ts.send("GET", "/", "")
	if n := strings.Count(page.body, "<script"); n != strings.Count(page.body, `<script src="/`) || n == 0 {
		t.Error("the page has a script in itself")
	}
	if r := ts.send("POST", "/", ""); r.status != http.StatusNotFound || r.code != codeAddress {
		t.Error(r)
	}
}

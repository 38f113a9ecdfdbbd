package policy

import (
	"math/rand/v2"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// Where texts lead; an empty answer means that it is not clear.
func TestParseDest(t *testing.T) {
	for text, want := range map[string]string{
		"http://example.com":                  "example.com:80",
		"HTTPS://Example.COM./x?y#z":          "example.com:443",
		"ws://a_b.c":                          "a_b.c:80",
		"wss://a:1":                           "a:1",
		"ssh://a":                             "a",
		"git+ssh://a:22/x":                    "a:22",
		"https://example.com/@user/x":         "example.com:443",
		"https://example.com/a?b=http://evil": "example.com:443",
		"http://example.com/\u00e9":           "example.com:80",
		"example.com":                         "example.com",
		"example.com:8080":                    "example.com:8080",
		"10.0.0.1:1":                          "10.0.0.1:1",
		"http://[::1]:8080/":                  "[::1]:8080",
		"http://[::ffff:10.0.0.1]/":           "10.0.0.1:80",
		"[fe80::1]":                           "fe80::1",
		"xn--bcher-kva.example:80":            "xn--bcher-kva.example:80",
		"0x.com":                              "0x.com",
		"a.0x7g":                              "a.0x7g",
		"localhost":                           "localhost",

		"":                            "",
		"/etc/passwd":                 "",
		"http://":                     "",
		"http:///evil":                "",
		"http:/evil":                  "",
		"http:evil":                   "",
		"http:443":                    "",
		"FTP:443":                     "",
		"https:443":                   "",
		`http:\\evil`:                 "",
		"//evil":                      "",
		"http://good@evil/":           "",
		"http://good:pw@evil/":        "",
		"http://good%40evil/":         "",
		"http://good#@evil/":          "",
		"http://good?@evil/":          "",
		`http://good\@evil/`:          "",
		`http://good\.evil/`:          "",
		"http://good evil/":           "",
		" http://good":                "",
		"http://good\t.evil":          "",
		"http://good\n":               "",
		"http://go\u00ad.od":          "",
		"http://g\u00f6\u00f6d":       "",
		"http://good\u3002evil":       "",
		"http://\uff45vil":            "",
		"http://good%2eevil":          "",
		"http://good%00.evil":         "",
		"http://2130706433/":          "",
		"http://0x7f000001/":          "",
		"http://0x7f.1/":              "",
		"http://0x/":                  "",
		"http://127.1/":               "",
		"http://0177.0.0.1/":          "",
		"http://127.0.0.1./":          "",
		"http://127.0.0.256/":         "",
		"http://1.2.3.4.5/":           "",
		"http://a.1/":                 "",
		"http://::1/":                 "",
		"fe80::1":                     "",
		"http://[fe80::1%25eth0]/":    "",
		"http://[::1]evil/":           "",
		"http://[::1/":                "",
		"http://[10.0.0.1]/":          "",
		"http://a:":                   "",
		"http://a:0":                  "",
		"http://a:080":                "",
		"http://a:+80":                "",
		"http://a:65536":              "",
		"http://a:80:90":              "",
		"http://a..b":                 "",
		"http://.a":                   "",
		"http://a..":                  "",
		"file://localhost/etc/passwd": "",
		"FILE://a/b":                  "",
		"jar:http://a/":               "",
		"javascript://a/%0aalert(1)":  "",
		"1http://a":                   "",
		"http ://a":                   "",
		"mailto:a@b":                  "",
		"http://user:pass@[::1]:80/":  "",
		"http://a,b":                  "",
		"http://a;b":                  "",
		"http://a/b\u0000":            "",
		"http://" + string(make([]byte, maxDest)): "",
	} {
		d, err := parseDest(text)
		have := ""
		if err == nil {
			e, ok := d.endpoint()
			if have = e; !ok {
				if have = d.name; have == "" {
					have = d.addr.String()
				}
			}
		}
		if have != want {
			t.Errorf("%.60q leads to %q (%v), want %q", text, have, err, want)
		}
	}
}

func TestTo(t *testing.T) {
	for _, x := range []struct{ to, arg, allow, deny string }{
		{"example.com", "http://example.com:81", "yes", "yes"},
		{"example.com:80", "http://example.com", "yes", "yes"},
		{"example.com:80", "https://example.com", "no", "no"},
		{"example.com:80", "example.com", "error", "error"},
		{"example.com", "example.com", "yes", "yes"},
		{"example.com", "notexample.com", "no", "no"},
		{"example.com", "example.com.evil", "no", "no"},
		{"Example.COM.", "http://eXample.com./", "yes", "yes"},
		{"'*.example.com'", "http://a.b.example.com", "yes", "yes"},
		{"'*.example.com'", "http://example.com", "no", "no"},
		{"'*.example.com'", "http://evilexample.com", "no", "no"},
		{"10.0.0.0/8", "http://10.255.0.1", "yes", "yes"},
		{"10.0.0.0/8", "http://[::ffff:10.0.0.1]", "yes", "yes"},
		{"10.0.0.0/8", "http://[64:ff9b::10.0.0.1]", "no", "yes"},
		{"10.0.0.0/8", "http://11.0.0.1", "no", "no"},
		{"10.0.0.0/8", "http://ten.example", "no", "no"},
		{"10.0.0.1:80", "http://10.0.0.1", "yes", "yes"},
		{"10.0.0.1:80", "http://10.0.0.1:81", "no", "no"},
		{"127.0.0.0/8", "http://localhost", "no", "yes"},
		{"'::1'", "http://x.localhost", "no", "yes"},
		{"localhost", "http://localhost", "yes", "yes"},
		{"127.0.0.0/8", "http://0.0.0.0", "error", "error"},
		{"'::/0'", "http://[::]", "error", "error"},
		{"'[::1]:80'", "http://[0:0::1]", "yes", "yes"},
		{"'::/0'", "http://10.0.0.1", "no", "no"},
		{"good", "http://good@evil/", "error", "error"},
		{"evil", "http://good@evil/", "error", "error"},
		{"127.0.0.1", "http://2130706433", "error", "error"},
		{"127.0.0.1", "http://0x7f.1", "error", "error"},
		{"[a, 'b:80']", "b", "error", "error"},
		{"[a, 'b:80']", "a", "yes", "yes"},
	} {
		for verb, want := range map[string]string{"allow": x.allow, "deny": x.deny} {
			other := map[string]string{"allow": "deny", "deny": "allow"}[verb]
			p := rules(t, "default: "+other+"\nrules: [{id: r, "+verb+": x, args: [{at: $.a, to: "+x.to+"}]}]")
			d := decide(t, p, "x", `{"a":"`+x.arg+`"}`, "/")
			have := map[string]string{schemas.ReasonAllowRule: "yes", schemas.ReasonDenyRule: "yes", schemas.ReasonEvalError: "error",
				schemas.ReasonAllowDefault: "no", schemas.ReasonDenyDefault: "no"}[d.Reason]
			if have != want {
				t.Errorf("%s to %s of %s: %s (%s), want %s", verb, x.to, x.arg, have, d.Say, want)
			}
		}
	}
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, to: a}]}]")
	for _, arg := range []string{`7`, `null`, `["a"]`, `{"a":"a"}`} {
		if d := decide(t, p, "x", `{"a":`+arg+`}`, "/"); d.Reason != schemas.ReasonEvalError {
			t.Errorf("%s: %+v", arg, d)
		}
	}
}

// What is taken as clear, a general parser of URLs reads in the same way.
func TestDestAgreesWithURL(t *testing.T) {
	pieces := []string{"http", "https", "://", ":", "/", "@", "#", "?", "[", "]", "::1", "10.0.0.1", "a", "B.c", ".", "-", "%2e", "\\", "80", "0", "x",
		"0x7f", "evil", "good", "_", "*", " ", "\u3002", "ssh", "1.2"}
	r := rand.New(rand.NewPCG(3, 4))
	clear := 0
	for range 300_000 {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteString("http://")
		}
		for range 1 + r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		d, err := parseDest(s)
		if err != nil || !strings.Contains(s, "://") {
			continue
		}
		clear++
		u, err := url.Parse(s)
		if err != nil {
			continue // clear to us, and nothing to those that cannot read it
		}
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		if a, err := netip.ParseAddr(host); err == nil {
			host = a.Unmap().String()
		}
		have := d.name
		if have == "" {
			have = d.addr.String()
		}
		port := u.Port()
		if port == "" {
			port = strconv.Itoa(int(defaultPorts[u.Scheme]))
		}
		if have != host || port != strconv.Itoa(int(d.port)) {
			t.Fatalf("%q: %s port %d here, %s port %s elsewhere", s, have, d.port, host, port)
		}
	}
	if clear < 1000 {
		t.Errorf("%d texts were clear", clear)
	}
}

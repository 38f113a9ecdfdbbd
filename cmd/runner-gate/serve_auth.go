package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// sessionTime is how long a session is good: a page that is left open somewhere does not approve for ever.
const sessionTime = 12 * time.Hour

// auth lets in who has the token that was printed. It is good once: who sends it first gets the session, and it opens nothing after that.
//
// A session of a browser has two halves, and each request for data needs both. The cookie is kept from scripts, but a browser sends it to
// every port of this machine. The header X-CSRF-Token is kept from other ports, but is known to the scripts of the page.
type auth struct {
	port   string
	name   string     // that was given to --listen; "" for an address
	only   netip.Addr // that is served; invalid if all addresses of this machine are
	local  bool       // localhost is this server
	now    func() time.Time
	cookie string // its name: browsers do not tell ports of one machine apart

	mu      sync.Mutex
	token   string // "" after its use
	session string
	csrf    string
	until   time.Time // of the session
}

// newAuth is for the server that was told to listen at asked and does so at bound, both HOST:PORT.
func newAuth(asked, bound string) (*auth, error) {
	host, _, err := net.SplitHostPort(asked)
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(bound)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(bound)
	a := &auth{port: port, local: at.Addr().IsLoopback() || at.Addr().IsUnspecified(), cookie: "runner_gate_" + port, now: time.Now}
	if !at.Addr().IsUnspecified() {
		a.only = at.Addr().Unmap()
	}
	if _, err := netip.ParseAddr(host); err != nil {
		a.name = host
	}
	for _, to := range []*string{&a.token, &a.session, &a.csrf} {
		b := make([]byte, 32)
		if _, err := rand.Read(b); err != nil {
			return nil, err
		}
		*to = hex.EncodeToString(b)
	}
	return a, nil
}

// host is how the address of the page names this server.
func (a *auth) host() string {
	switch {
	case a.name != "":
		return net.JoinHostPort(a.name, a.port)
	case a.only.IsValid():
		return net.JoinHostPort(a.only.String(), a.port)
	}
	return net.JoinHostPort("127.0.0.1", a.port)
}

// policyOfPage is the content security policy: the page loads nothing but its own files, and nobody frames it.
const policyOfPage = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// headers of all answers.
var headers = map[string]string{
	"Content-Security-Policy": policyOfPage, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}

// guard checks each request before anything else looks at it. What has no secrets needs no session.
func (a *auth) guard(open http.Handler, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !a.known(r.Host):
			refuse(w, codeHost, "the request names another host than the one that is served")
		case !a.sameOrigin(r):
			refuse(w, codeOrigin, "the request comes from another page")
		case !strings.HasPrefix(r.URL.Path, "/bundles"):
			open.ServeHTTP(w, r)
		case a.bearer(r):
			next.ServeHTTP(w, r)
		case !a.hasCookie(r):
			refuse(w, codeSession, "there is no session: open the address that runner-gate printed. It is good once, and its session for "+sessionTime.String()+"; start runner-gate again for another one")
		case !same(r.Header.Get("X-CSRF-Token"), a.csrf):
			refuse(w, codeCSRF, "the header X-CSRF-Token is not that of the session")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// known reports whether a request names this server. An address cannot be made to mean another machine, a name can: only the one that
// was asked for is taken.
func (a *auth) known(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil && a.port == "80" { // browsers leave it out
		host, port = strings.Trim(hostPort, "[]"), "80"
	}
	if port != a.port {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return !a.only.IsValid() || ip.Unmap() == a.only
	}
	return a.local && strings.EqualFold(host, "localhost") || a.name != "" && strings.EqualFold(host, a.name)
}

// sameOrigin refuses what a browser says to come from elsewhere. A link to the page may be anywhere: it has no secrets. Programs that are
// no browser say nothing of all this.
func (a *auth) sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// enter takes the token for a session: both halves of one for a browser, or one word for a program.
func (a *auth) enter(w http.ResponseWriter, r *http.Request) (any, error) {
	var o struct {
		Token   string `json:"token"`
		Program bool   `json:"program"`
	}
	if err := asked(w, r, &o); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == "" || !same(o.Token, a.token) {
		return nil, because(codeToken, "the token is not the one that was printed, or was used before")
	}
	a.token, a.until = "", a.now().Add(sessionTime)
	if o.Program {
		return map[string]string{"session": a.session}, nil
	}
	http.SetCookie(w, &http.Cookie{Name: a.cookie, Value: a.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return map[string]string{"csrf": a.csrf}, nil
}

func (a *auth) bearer(r *http.Request) bool {
	s, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && a.good(s)
}

func (a *auth) hasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(a.cookie), func(c *http.Cookie) bool { return a.good(c.Value) }) // others may set one, too
}

// good reports whether this is the session. Before the token was used there is none.
func (a *auth) good(session string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return same(session, a.session) && a.now().Before(a.until)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

//go:build linux

package cmd_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/exchange"

	"github.com/runner-evidence/runner/schemas/testkit"
)

var netWorks = sync.OnceValue(func() error {
	out, err := exec.Command(tool("runner-net"), "record", "--probe").CombinedOutput()
	if err != nil {
		return fmt.Errorf("runner-net record --probe: %w: %s", err, out)
	}
	return nil
})

// services are real servers on this machine, and the flags with which runner-net finds them.
type services struct {
	flags []string
	calls atomic.Int64
	dir   string
}

// serve starts a server over HTTP and one over TLS, as plain.test, secure.test and bytes.test (port 7000, an echo).
func serve(t *testing.T, c caller) *services {
	t.Helper()
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	s := &services{dir: c.dir(t)}
	mux := http.NewServeMux()
	count := func(f http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { s.calls.Add(1); f(w, r) }
	}
	mux.HandleFunc("/count", count(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "call %d\n", s.calls.Load()) }))
	mux.HandleFunc("/echo", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=verysecret")
		io.Copy(w, r.Body)
	}))
	mux.HandleFunc("/gzip", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(bytes.Repeat([]byte("squeezed "), 10_000))
		z.Close()
	}))
	mux.HandleFunc("/big", count(func(w http.ResponseWriter, r *http.Request) {
		for i := range 8 {
			w.Write(bytes.Repeat([]byte{byte(i)}, 1<<20))
		}
	}))
	mux.HandleFunc("/events", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"n\":%d}\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}))
	mux.HandleFunc("/cut", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte("only this"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	mux.HandleFunc("/early", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	mux.HandleFunc("/v1/chat/completions", count(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"message":{"content":"hello"}}]}`)
	}))
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(mux)
	secure.EnableHTTP2 = true
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{authorize(t, filepath.Join(s.dir, "ca.pem"), "secure.test")}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	rules := "schema: runner.net_allow.v0\nrules:\n- {id: plain, host: plain.test}\n- {id: secure, host: secure.test}\n- {id: bytes, host: bytes.test, port: 7000, tcp: true}\n- {id: gone, host: gone.test}\n- {id: stranger, host: stranger.test}\n"
	testkit.Must(t, os.WriteFile(filepath.Join(s.dir, "allow.yaml"), []byte(rules), 0o644))
	testkit.Must(t, os.Chmod(filepath.Join(s.dir, "ca.pem"), 0o644))
	s.flags = []string{"--allow", filepath.Join(s.dir, "allow.yaml"), "--live-ca", filepath.Join(s.dir, "ca.pem"), "--upstream", "plain.test:80=" + plain.Listener.Addr().String(),
		"--upstream", "secure.test:443=" + secure.Listener.Addr().String(), "--upstream", "bytes.test:7000=" + l.Addr().String(), "--upstream", "gone.test:80=127.0.0.1:1",
		"--upstream", "stranger.test:443=" + secure.Listener.Addr().String()}
	return s
}

// authorize makes an authority, writes its certificate, and returns that of a server.
func authorize(t *testing.T, file, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// net is a call of runner-net by c.
func (c caller) net(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, "runner-net", args...)
	cmd.Env = append(cmd.Env, "HTTP_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "HOME=/nonexistent")
	if !c.own {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	}
	return cmd
}

// exchanges are those of a record as text.
func exchanges(t *testing.T, dir string) (list []string) {
	t.Helper()
	r, err := exchange.Read(dir)
	testkit.Must(t, err)
	testkit.Must(t, r.Check())
	for _, e := range r.Exchanges {
		if err := e.Plausible(); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
		s := strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s", e.Decision, e.Method, exchange.URL(e), e.Status, e.Failure))
		list = append(list, s)
	}
	return list
}

// TestNetClients: each client, without any proxy variable, gets in the recorded run what it gets without runner-net from the same
// server, and in the replay what it got in the recorded run, with no server.
func TestNetClients(t *testing.T) {
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/fetch"))
	clients := map[string]string{
		"curl":            `curl -sS --compressed $S/gzip | sha256sum; curl -sS $S/big | sha256sum; curl -sS -d hello $P/echo; curl -sS $P/count; curl -sS $P/count; curl -sS -N $S/events`,
		"curl --http1.1":  `curl --http1.1 -sS $S/big | sha256sum; curl --http1.1 -sS -d hello $S/echo`,
		"Node fetch":      `node -e 'const get = async u => { const r = await fetch(u); console.log(r.status, (await r.text()).length) }; (async () => { for (const u of process.argv.slice(1)) await get(u) })()' $S/gzip $S/big $P/count $P/count $S/events`,
		"Python urllib":   `python3 -c 'import sys, urllib.request as u; [print(len(u.urlopen(x).read())) for x in sys.argv[1:]]' $S/big $P/count $S/events`,
		"Python requests": `python3 -c 'import sys, requests as r; [print(len(r.get(x).content)) for x in sys.argv[1:]]' $S/big $S/gzip $P/count`,
		"static Go":       tool("fetch") + ` $S/big $S/gzip $P/count $P/count $S/events $S/count`,
	}
	for _, c := range callers(t) {
		for name, script := range clients {
			t.Run(c.name+" "+name, func(t *testing.T) {
				program := strings.Fields(script)[0]
				testkit.Programs(t, name, program)
				if name == "Python requests" && call(t, c.net(t, "deny", "--", "python3", "-c", "import requests")).code != 0 {
					testkit.Skip(t, name, "the module is not installed")
				}
				s := serve(t, c)
				out := c.dir(t)
				script = "S=https://secure.test; P=http://plain.test; " + script
				recorded := call(t, c.net(t, slices.Concat([]string{"record", "--run-id", "r", "-o", out + "/a"}, s.flags, []string{"--", "sh", "-c", script})...))
				if recorded.code != 0 || strings.Contains(recorded.stdout, "runner-net") || recorded.stdout == "" {
					t.Fatal(recorded)
				}
				calls := s.calls.Load()
				for i := range 2 {
					again := call(t, c.net(t, "replay", "--run-id", "r", "-o", fmt.Sprintf("%s/b%d", out, i), out+"/a", "--", "sh", "-c", script))
					if again.code != 0 || again.stdout != recorded.stdout || again.stderr != "" {
						t.Errorf("%v\nexpected %v", again, recorded)
					}
				}
				if s.calls.Load() != calls {
					t.Error("a replay asked the server")
				}
				if a, b := exchanges(t, out+"/a"), exchanges(t, out+"/b0"); strings.ReplaceAll(strings.Join(a, "\n"), "allow", "replay") != strings.Join(b, "\n") {
					t.Errorf("%q\n%q", a, b)
				}
				if calls != int64(len(exchanges(t, out+"/a"))) {
					t.Errorf("the server had %d requests: %q", calls, exchanges(t, out+"/a"))
				}
				same(t, out+"/b0/net.ndjson", out+"/b1/net.ndjson")
			})
		}
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	testkit.Must(t, err)
	y, err := os.ReadFile(b)
	testkit.Must(t, err)
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// TestNetTells: what is refused, fails or is not HTTP is in the record by its name, and secrets are not.
func TestNetTells(t *testing.T) {
	testkit.Programs(t, "requests that are refused", "curl", "bash", "getent")
	for _, c := range callers(t) {
		s := serve(t, c)
		out := c.dir(t)
		script := `
			for u in http://other.test/x https://other.test/y http://198.51.100.7/ 'http://[2001:db8::1]/' http://plain.test:81/ http://gone.test/ https://stranger.test/; do curl -g -s -o /dev/null -w '%{http_code},' "$u"; done; echo
			curl -s -H 'Authorization: Bearer verysecret' -H 'X-Secret: verysecret' -d body "http://plain.test/echo?api_key=verysecret" >/dev/null
			curl -s http://plain.test/cut; echo " $?"
			curl -s --cacert /dev/null https://secure.test/; echo " $?"
			curl -s -o /dev/null -w '%{http_code}\n' -H 'Connection: Upgrade' -H 'Upgrade: websocket' http://plain.test/
			bash -c 'exec 3<>/dev/tcp/bytes.test/7000; echo through >&3; head -c 8 <&3; exec 3>&-; exec 3<>/dev/tcp/secure.test/443; printf "\001" >&3; head -c 1 <&3 2>/dev/null; echo x >/dev/tcp/127.0.0.1/80; echo x >/dev/udp/192.0.2.1/9' 2>/dev/null
			getent ahostsv4 some.name.test | head -1; getent hosts localhost >/dev/null; true`
		o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out + "/a"}, s.flags, []string{"--", "bash", "-c", script})...))
		if o.code != 0 || !strings.HasPrefix(o.stdout, "403,403,403,403,000,502,502,\nonly this 18\n 77\n501\nthrough\n") {
			t.Fatal(o)
		}
		want := []string{
			"deny  tcp://127.0.0.1:80 0 nobody", "deny GET http://198.51.100.7/ 403", "deny GET http://[2001:db8::1]/ 403", "allow  tcp://bytes.test:7000 0", "allow GET http://gone.test/ 502 unreachable",
			"deny GET http://other.test/x 403", "deny GET https://other.test/y 403", "deny GET http://plain.test/ 501 upgrade", "allow GET http://plain.test/cut 200 server_cut",
			"allow POST http://plain.test/echo?api_key=[redacted variable] 200", "deny  https://secure.test 0 client_tls", "deny  tcp://secure.test:443 0 not_http", "allow GET https://stranger.test/ 502 untrusted",
		}
		if got := exchanges(t, out+"/a"); !slices.Equal(got, want) {
			t.Errorf("%s: %s\nexpected\n%s", c.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		grep := exec.Command("grep", "-rl", "verysecret", out+"/a")
		if found, err := grep.Output(); err == nil {
			t.Errorf("%s: the secret is in %s", c.name, found)
		}
		har := call(t, command(t, "runner-net", "har", out+"/a"))
		var h struct {
			Log struct{ Entries []json.RawMessage }
		}
		testkit.Must(t, json.Unmarshal([]byte(har.stdout), &h))
		if har.code != 0 || len(h.Log.Entries) != 9 {
			t.Errorf("%d entries: %v", len(h.Log.Entries), har)
		}
	}
}

// TestNetReplayTells: a request that was not recorded never gets an answer of another one, and what was not asked for is told.
func TestNetReplayTells(t *testing.T) {
	testkit.Programs(t, "requests that were not recorded", "curl")
	c := callers(t)[0]
	s := serve(t, c)
	out := c.dir(t)
	script := "for i in 1 2 3; do curl -s http://plain.test/count; done; curl -s -d one http://plain.test/echo; curl -s -d '{\"model\":\"m\"}' http://plain.test/v1/chat/completions"
	if o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out + "/a"}, s.flags, []string{"--", "sh", "-c", script})...)); o.code != 0 {
		t.Fatal(o)
	}
	for script, want := range map[string]string{
		"for i in 1 2 3 4; do curl -s http://plain.test/count; done":                "call 1\ncall 2\ncall 3\nrunner-net: no recording answers GET http://plain.test/count once more: all of them were used\n",
		"curl -s -d two http://plain.test/echo":                                     "runner-net: no recording answers POST http://plain.test/echo; the nearest is POST http://plain.test/echo, with a body of 3 bytes instead of 3, which are others\n",
		"curl -s http://plain.test/count?x=1":                                       "runner-net: no recording answers GET http://plain.test/count?x=1; the nearest is GET http://plain.test/count\n",
		"curl -s -o /dev/null -w '%{http_code} %header{x-runner-net}' plain.test/n": "502 miss",
	} {
		o := call(t, c.net(t, "replay", out+"/a", "--", "sh", "-c", script))
		if o.code != 0 || o.stdout != want || !strings.Contains(o.stderr, "not asked for") || !strings.Contains(o.stderr, "no recording") {
			t.Errorf("%s: %v\nexpected %s", script, o, want)
		}
	}
	prompts := call(t, command(t, "runner-net", "prompts", out+"/a"))
	if want := `{"exchange":4,"provider":"openai.chat","host":"plain.test","decision":"allow","model":"m","request":{"model":"m"},"status":200,"response":{"choices":[{"message":{"content":"hello"}}]}}` + "\n"; prompts.stdout != want {
		t.Errorf("%v\nexpected %s", prompts, want)
	}
	// One byte of the record changed: it is refused, and nothing is run.
	body, err := filepath.Glob(out + "/a/blobs/sha256/*")
	testkit.Must(t, err)
	for _, file := range append(body, out+"/a/net.ndjson") {
		b, err := os.ReadFile(file)
		testkit.Must(t, err)
		b[len(b)/2] ^= 1
		testkit.Must(t, os.WriteFile(file, b, 0o644))
		if o := call(t, c.net(t, "replay", out+"/a", "--", "echo", "ran")); o.code != 125 || o.stdout != "" {
			t.Errorf("%s: %v", file, o)
		}
		b[len(b)/2] ^= 1
		testkit.Must(t, os.WriteFile(file, b, 0o644))
	}
	if o := call(t, c.net(t, "replay", out+"/a", "--", "echo", "ran")); o.code != 0 || o.stdout != "ran\n" {
		t.Error(o)
	}
}

// TestNetStatus: exit codes as env(1) has them; nothing is left of a run that failed.
func TestNetStatus(t *testing.T) {
	for _, c := range callers(t) {
		if err := netWorks(); err != nil {
			testkit.Missing(t, "networks of commands", err)
		}
		dir := c.dir(t)
		testkit.Must(t, os.WriteFile(dir+"/bad.yaml", []byte("schema: runner.net_allow.v0\nrules: [{hosts: x}]\n"), 0o644))
		for _, x := range []struct {
			want int
			args []string
		}{
			{0, []string{"deny", "--", "true"}}, {7, []string{"deny", "--", "sh", "-c", "exit 7"}}, {128 + 9, []string{"deny", "--", "sh", "-c", "kill -9 $$"}},
			{127, []string{"deny", "--", "/none"}}, {126, []string{"deny", "--", "/etc"}}, {125, []string{"deny", "--"}}, {125, []string{"record", "--allow", dir + "/none", "--", "true"}},
			{125, []string{"record", "--allow", dir + "/bad.yaml", "--", "true"}}, {125, []string{"replay", "--", "true"}}, {125, []string{"replay", dir, "--", "true"}},
			{125, []string{"record", "--upstream", "x=y", "--", "true"}}, {125, []string{"deny", "--allow", dir + "/bad.yaml", "--", "true"}}, {125, []string{"nothing"}}, {125, []string{"deny", "-o", "/etc", "--", "true"}},
			{2, []string{"har"}}, {3, []string{"har", dir}}, {5, []string{"har", dir + "/none"}}, {2, []string{"prompts", "--nonsense", dir}},
		} {
			if o := call(t, c.net(t, x.args...)); o.code != x.want || (x.want == 125 || x.want < 7 && x.want > 0) && o.stderr == "" {
				t.Errorf("%s: %q: %v, expected %d", c.name, x.args, o, x.want)
			}
		}
		o := call(t, c.net(t, "record", "--allow", dir+"/bad.yaml", "--", "true"))
		if !strings.Contains(o.stderr, "bad.yaml:2:10") || !strings.Contains(o.stderr, "host") {
			t.Error(o)
		}
		cmd := c.net(t, "deny", "-o", dir+"/record", "--", "sh", "-c", "trap 'echo got; exit 3' TERM; echo; while :; do sleep 0.01; done")
		r, err := cmd.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		b := make([]byte, 10)
		_, err = r.Read(b[:1])
		testkit.Must(t, err)
		testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		n, _ := r.Read(b)
		cmd.Wait()
		if cmd.ProcessState.ExitCode() != 3 || string(b[:n]) != "got\n" || !testkit.Exists(dir+"/record/net.ndjson") {
			t.Errorf("%s: %v %q", c.name, cmd.ProcessState, b[:n])
		}
	}
}

// TestNetGit: git over https, from a real server of git's own.
func TestNetGit(t *testing.T) {
	testkit.Programs(t, "git", "git")
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	for _, c := range callers(t) {
		out := c.dir(t)
		c.sh(t, out, "git init -q --bare repo.git && git init -q w && cd w && git config user.email a@b && git config user.name n && echo content >f && git add f && git commit -qm one && git push -q ../repo.git HEAD:master && cd ../repo.git && git update-server-info && git symbolic-ref HEAD refs/heads/master")
		files := httptest.NewTLSServer(http.FileServer(http.Dir(out)))
		defer files.Close()
		testkit.Must(t, os.WriteFile(out+"/allow.yaml", []byte("schema: runner.net_allow.v0\nrules: [{host: example.com}]\n"), 0o644))
		testkit.Must(t, os.WriteFile(out+"/ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: files.Certificate().Raw}), 0o644))
		script := "cd $(mktemp -d) && git clone -q https://example.com/repo.git x && cat x/f && git -C x log --format=%H"
		a := call(t, c.net(t, "record", "--allow", out+"/allow.yaml", "--live-ca", out+"/ca.pem", "--upstream", "example.com:443="+files.Listener.Addr().String(), "-o", out+"/a", "--", "sh", "-c", script))
		if a.code != 0 || !strings.HasPrefix(a.stdout, "content\n") {
			t.Fatal(a)
		}
		files.Close()
		if b := call(t, c.net(t, "replay", "-o", out+"/b", out+"/a", "--", "sh", "-c", script)); b.code != 0 || b.stdout != a.stdout || b.stderr != "" {
			t.Errorf("%v\nexpected %v", b, a)
		}
	}
}

// TestNetNoBundle: where the system has no file with authorities, the program is told of one all the same.
func TestNetNoBundle(t *testing.T) {
	c := callers(t)[0]
	if c.uid != 0 {
		testkit.Missing(t, "a system without authorities", "needs root")
	}
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/fetch"))
	s := serve(t, c)
	args := slices.Concat([]string{"--mount", "sh", "-c", `for d in /etc/ssl /etc/pki /mnt; do [ ! -d $d ] || mount -t tmpfs none $d; done; exec "$@"`, "sh", tool("runner-net"), "record"}, s.flags,
		[]string{"--", tool("fetch"), "https://secure.test/count", "https://x.test/"})
	if o := call(t, command(t, "unshare", args...)); o.code != 0 || !strings.Contains(o.stdout, "HTTP/2.0 200") || !strings.Contains(o.stdout, "HTTP/2.0 403") {
		t.Error(o)
	}
}

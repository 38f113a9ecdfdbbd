//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// testRules deny by address, by default and by unix name.
func testRules(def string) *schemas.NetworkRules {
	out, in := []string{"connect", "send"}, []string{"bind"}
	rule := func(number uint32, action, family, address string, on []string) schemas.NetworkRule {
		r := schemas.NetworkRule{Number: number, ID: fmt.Sprint("r", number), Action: action, Family: family, Prefix: address, On: on,
			Ports: [][2]uint16{}, Protocols: []string{}}
		if family == "unix" {
			r.Prefix, r.Path = "", address
		}
		return r
	}
	return &schemas.NetworkRules{Schema: schemas.SchemaNetworkRules, PolicyDigest: "sha256:" + strings.Repeat("5a", 32), Default: def,
		Rules: []schemas.NetworkRule{
			rule(1, "deny", "inet", "203.0.113.0/24", out), rule(1, "deny", "inet6", "2001:db8::/32", out),
			rule(2, "deny", "unix", "@runner-test", out), rule(3, "deny", "inet", "127.0.0.5/32", in), rule(4, "allow", "inet", "127.0.0.0/8", out),
		}}
}

func rulesFile(t *testing.T, rules *schemas.NetworkRules) string {
	t.Helper()
	b, err := schemas.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// refused tries what testRules denies, each n times, and fails if one of them works.
func refused(arg string) {
	n := 0
	fmt.Sscan(arg, &n)
	must := func(want, err error) {
		if err != want {
			fmt.Fprintf(os.Stderr, "got %v, expected %v\n", err, want)
			os.Exit(1)
		}
	}
	four, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(nil, err)
	six, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	must(nil, err)
	local, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(nil, err)
	inet := func(a, b, c, d byte, port int) unix.Sockaddr {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{a, b, c, d}}
	}
	for range n {
		must(unix.EPERM, unix.Connect(four, inet(203, 0, 113, 9, 443)))
		must(unix.EPERM, unix.Sendto(four, []byte("x"), 0, inet(203, 0, 113, 9, 53)))
		must(unix.EPERM, unix.Connect(six, &unix.SockaddrInet6{Port: 443, Addr: [16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: 1}}))
		must(unix.EPERM, unix.Connect(six, &unix.SockaddrInet6{Port: 80, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 203, 14: 113, 15: 1}}))
		must(unix.EPERM, unix.Connect(local, &unix.SockaddrUnix{Name: "@runner-test"}))
		must(unix.EPERM, unix.Bind(four, inet(127, 0, 0, 5, 0)))
		_, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP)
		must(unix.EPERM, err)
	}
	must(nil, unix.Connect(four, inet(127, 0, 0, 1, 9)))
}

// wantRefused are the refusals that are recorded, each once.
var wantRefused = []string{
	"1 connect 203.0.113.9:443", "1 connect [2001:db8::1]:443", "1 connect [::ffff:203.0.113.1]:80", "1 send 203.0.113.9:53",
	"1 socket ", "2 connect unix:@runner-test", "3 bind 127.0.0.5:0",
}

func TestRulesAreEnforced(t *testing.T) {
	dir := needKernel(t)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.NewReader(""), "--cgroup", dir, "--network-rules", rulesFile(t, testRules("allow")))
	got, failed := map[string]int{}, 0
	s.each = func(e record) {
		switch {
		case e.Op == "connect_blocked":
			got[fmt.Sprintf("%d %s %s", *e.Rule, e.Hook, e.Addr)]++
			if e.Source != "cgroup" || e.Cgroup != st.Ino || e.PID == 0 || e.Ret != nil {
				t.Errorf("%+v", e)
			}
		case e.Source == "syscall" && e.Ret != nil && *e.Ret == -int64(unix.EPERM):
			failed++ // the calls keep their own records
		}
	}
	s.ready(func() {
		cmd := inCgroup(t, dir, "refused", fmt.Sprint(prime))
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	})
	_, h, status := s.result()
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, wantRefused) {
		t.Errorf("refused\n%s\nexpected\n%s", strings.Join(keys, "\n"), strings.Join(wantRefused, "\n"))
	}
	for k, n := range got {
		if n != prime {
			t.Errorf("%s: %d times, expected %d", k, n, prime)
		}
	}
	if failed != 6*prime {
		t.Errorf("%d failed calls, expected %d", failed, 6*prime)
	}
	for k, want := range map[string]uint64{"blocked": 7 * prime, "blocked.rule.1": 5 * prime, "blocked.rule.2": prime, "blocked.rule.3": prime, "network_rules": 4} {
		if h.Counters[k] != want {
			t.Errorf("%s is %d, expected %d", k, h.Counters[k], want)
		}
	}
	if h.Facts["network_rules"] != "enforced" || h.Facts["network_policy"] != testRules("").PolicyDigest || status != schemas.StatusComplete {
		t.Errorf("%v, %s", h.Facts, status)
	}
}

// What a full ring loses is nevertheless refused and counted.
func TestRulesFullRing(t *testing.T) {
	dir := needKernel(t)
	s := start(t, strings.NewReader(""), "--cgroup", dir, "--network-rules", rulesFile(t, testRules("deny")), "--ring-size", "4K")
	lines := uint64(0)
	s.each = func(e record) {
		if e.Op == "connect_blocked" {
			lines++
		}
	}
	const n = 3001
	s.ready(func() {
		cmd := inCgroup(t, dir, "refused", fmt.Sprint(n))
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	})
	_, h, status := s.result()
	if h.Counters["blocked"] != 7*n || h.Counters["blocked.rule.1"] != 5*n || h.Counters["blocked.rule.3"] != n {
		t.Errorf("%v", h.Counters)
	}
	if d := h.Counters["dropped.connect_blocked"]; d == 0 || lines+d != 7*n {
		t.Errorf("%d lines and %d dropped of %d", lines, d, 7*n)
	}
	if status != schemas.StatusPartial {
		t.Errorf("status %s", status)
	}
}

// Without rules nothing is said of them, but that they are off.
func TestRulesOff(t *testing.T) {
	dir := needKernel(t)
	s := start(t, strings.NewReader(""), "--cgroup", dir)
	s.ready(func() {
		if err := inCgroup(t, dir, "opens", "x").Run(); err != nil {
			t.Fatal(err)
		}
	})
	_, h, _ := s.result()
	for k := range h.Counters {
		if strings.HasPrefix(k, "blocked") || k == "network_rules" {
			t.Errorf("counter %s", k)
		}
	}
	if _, ok := h.Facts["network_policy"]; ok || h.Facts["network_rules"] != "off" {
		t.Errorf("%v", h.Facts)
	}
}

// Rules can come through a pipe, which they end.
func TestRulesFromDescriptor(t *testing.T) {
	dir := needKernel(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := schemas.Marshal(testRules("allow"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		w.Write(b)
		w.Close()
	}()
	s := start(t, strings.NewReader(""), "--cgroup", dir, "--network-rules", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	s.ready(func() {
		if err := inCgroup(t, dir, "refused", "1").Run(); err != nil {
			t.Fatal(err)
		}
	})
	if _, h, _ := s.result(); h.Counters["blocked"] != 7 {
		t.Errorf("%v", h.Counters)
	}
}

// What cannot be enforced starts nothing: no cgroup is made, no header written.
func TestRulesRefuseToStart(t *testing.T) {
	edited := func(f func(*schemas.NetworkRules)) string {
		r := testRules("allow")
		f(r)
		return rulesFile(t, r)
	}
	rule := func(f func(*schemas.NetworkRule)) string {
		return edited(func(r *schemas.NetworkRules) { f(&r.Rules[0]) })
	}
	text := func(s string) string {
		name := filepath.Join(t.TempDir(), "rules.json")
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, c := range map[string]struct {
		file string
		code int
		say  string
	}{
		"no file":              {filepath.Join(t.TempDir(), "none"), 5, "cannot read "},
		"no rules":             {text(`{}`), 4, ""},
		"no JSON":              {text(`nothing`), 4, ""},
		"text after the rules": {text(`{} {}`), 4, ""},
		"endless":              {"/dev/zero", 4, "at most 1048576"},
		"protocol":             {rule(func(r *schemas.NetworkRule) { r.Protocols = []string{"sctp"} }), 4, "sctp"},
		"hook":                 {rule(func(r *schemas.NetworkRule) { r.On = []string{"listen"} }), 4, "listen"},
		"family":               {rule(func(r *schemas.NetworkRule) { r.Family = "vsock" }), 4, "vsock"},
		"unix bind": {rule(func(r *schemas.NetworkRule) { *r = testRules("").Rules[2]; r.Number, r.On = 1, []string{"bind"} }), 4,
			"no hook for it"},
		"unix ports": {rule(func(r *schemas.NetworkRule) { *r = testRules("").Rules[2]; r.Number, r.Ports = 1, [][2]uint16{{1, 2}} }), 4,
			"takes neither prefix, ports nor protocols"},
		"too many ports": {rule(func(r *schemas.NetworkRule) { r.Ports = make([][2]uint16, 33) }), 4, "33 port ranges, at most 32"},
		"too many rules": {edited(func(r *schemas.NetworkRules) {
			for range 256 {
				r.Rules = append(r.Rules, r.Rules[4])
			}
		}), 4, "at most 256"},
		"no plain path": {rule(func(r *schemas.NetworkRule) { *r = testRules("").Rules[2]; r.Number, r.Path = 1, "/run/../x" }), 4, "/run/../x"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			cgroup := filepath.Join(t.TempDir(), "made")
			code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--cgroup", cgroup, "--make-cgroup", "--network-rules", c.file})
			if code != c.code || out.Len() > 0 || !strings.Contains(errs.String(), c.say) || c.code == 4 && !strings.Contains(errs.String(), "cannot enforce here: "+c.file) {
				t.Errorf("exit %d, output %q, %s", code, out.String(), errs.String())
			}
			if _, err := os.Stat(cgroup); err == nil {
				t.Error("the cgroup was made")
			}
		})
	}
}

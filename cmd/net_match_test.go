//go:build linux

package cmd_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestNetMatches: the order of a query makes no difference, a header makes one where it is asked for, and secrets are compared by
// commitments, which only who has the key can make.
func TestNetMatches(t *testing.T) {
	testkit.Programs(t, "requests with headers", "curl")
	for _, c := range callers(t) {
		s := serve(t, c)
		out := c.dir(t)
		key := out + "/key"
		secret := []byte("sixteen bytes or")
		testkit.Must(t, os.WriteFile(key, []byte(hex.EncodeToString(secret)), 0o644))
		script := `curl -s "http://plain.test/count?b=2&a=1"; curl -s -H "X-Mode: one" http://plain.test/count; curl -s -H "Authorization: Bearer verysecret" http://plain.test/count`
		if o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out + "/a", "--redact-key", key}, s.flags, []string{"--", "sh", "-c", script})...)); o.code != 0 || o.stdout != "call 1\ncall 2\ncall 3\n" {
			t.Fatal(o)
		}
		text := string(testkit.Read(t, out+"/a/net.ndjson"))
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte("Bearer verysecret"))
		if !strings.Contains(text, hex.EncodeToString(mac.Sum(nil))) || strings.Contains(text, "verysecret") {
			t.Errorf("%s: no commitment, or the secret itself: %s", c.name, text)
		}
		if found, err := exec.Command("grep", "-rlE", "PRIVATE KEY|verysecret", out+"/a").Output(); err == nil {
			t.Errorf("%s: a secret is in %s", c.name, found)
		}
		for _, x := range []struct {
			flags        []string
			script, want string
		}{
			{nil, `curl -s "http://plain.test/count?a=1&b=2"`, "call 1\n"},
			{[]string{"--match-header", "X-Mode", "--redact-key", key}, `curl -s -H "X-Mode: one" http://plain.test/count`, "call 2\n"},
			{[]string{"--match-header", "X-Mode", "--redact-key", key}, `curl -s -o /dev/null -w '%{http_code}\n' -H "X-Mode: two" http://plain.test/count`, "502\n"},
			{[]string{"--match-header", "Authorization", "--redact-key", key}, `curl -s -H "Authorization: Bearer verysecret" http://plain.test/count`, "call 3\n"},
			{[]string{"--match-header", "Authorization", "--redact-key", key}, `curl -s -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer other" http://plain.test/count`, "502\n"},
		} {
			if o := call(t, c.net(t, slices.Concat([]string{"replay"}, x.flags, []string{out + "/a", "--", "sh", "-c", x.script})...)); o.code != 0 || o.stdout != x.want {
				t.Errorf("%s: %q %s: %v, expected %q", c.name, x.flags, x.script, o, x.want)
			}
		}
	}
}

// TestNetStreams: an answer that comes in parts is passed on as it comes, not when it is whole.
func TestNetStreams(t *testing.T) {
	testkit.Programs(t, "an answer that comes in parts", "python3")
	c := callers(t)[0]
	s := serve(t, c)
	script := `
import sys, time, urllib.request
r = urllib.request.urlopen(sys.argv[1]); first = r.readline(); a = time.monotonic(); rest = r.read(); b = time.monotonic()
print(first, b - a > 0.1, len(rest))`
	for _, url := range []string{"http://plain.test/events", "https://secure.test/events"} {
		if o := call(t, c.net(t, slices.Concat([]string{"record"}, s.flags, []string{"--", "python3", "-c", script, url})...)); o.code != 0 || !strings.HasPrefix(o.stdout, `b'data: {"n":0}\n' True `) {
			t.Errorf("%s: %v", url, o)
		}
	}
}

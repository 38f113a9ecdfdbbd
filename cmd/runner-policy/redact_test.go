//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestRedactedLog: the log has nothing of a redacted value but its place and what openssl makes of it with the key,
// whatever is decided, and the server gets the value.
func TestRedactedLog(t *testing.T) {
	const key = "000102030405060708090a0b0c0d0e0f"
	const policy = "schema: runner.policy.v0\nredact: [$.token, $.path]\nrules:\n" +
		"  - {id: reads, allow: read_*, args: [{at: $.path, under: /srv}], also: [$.token]}\n  - {id: bad, allow: query, when: '.arguments.token > error'}\n"
	file := filepath.Join(t.TempDir(), "key")
	testkit.Must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	for name, flags := range map[string][]string{"with a key": {"--redact-key", file}, "without": nil, "audited": {"--redact-key", file, "--audit"}} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, policy, withFlags(flags...))
			exchange(p,
				callLine("1", "read_x", `{"path":"/srv/hidden/a","token":"hidden \u00e9 <&> \u2028"}`),
				callLine("2", "read_x", `{"path":"/etc/hidden","token":{"n":[1.50,1e3,"hidden"]}}`),
				callLine("3", "query", `{"token":"hidden"}`),
				callLine("4", "write_x", `{"token":7}`),
			)
			p.end()
			if strings.Contains(p.log(), "hidden") {
				t.Errorf("the log has it:\n%s", p.log())
			}
			if !strings.Contains(p.seen(), `"/srv/hidden/a","token":"hidden \u00e9 <&> \u2028"`) {
				t.Errorf("the server got %s", p.seen())
			}
			canonical := [][]string{{"\"hidden é <&> \u2028\"", `"/srv/hidden/a"`}, {`{"n":[1.5,1000,"hidden"]}`, `"/etc/hidden"`}, {`"hidden"`}, {`7`}}
			for line := range strings.Lines(p.log()) {
				d, err := schemas.ParseDecisionLine([]byte(line))
				testkit.Must(t, err)
				if d.Decision == nil {
					continue
				}
				want := canonical[d.Decision.Call]
				if len(d.Decision.Redacted) != len(want) || d.Decision.ArgumentsDigest != "" {
					t.Fatalf("%+v", d.Decision)
				}
				for i, r := range d.Decision.Redacted {
					if expected := commitmentByOpenSSL(t, key, want[i]); r.Commitment != expected && flags != nil || r.Commitment != "" && flags == nil {
						t.Errorf("%+v of %s, openssl says %s", r, want[i], expected)
					}
				}
			}
		})
	}
}

// commitmentByOpenSSL is the commitment to a value as another program makes it.
func commitmentByOpenSSL(t *testing.T, key, text string) string {
	c := exec.Command("openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:"+key)
	c.Stdin = strings.NewReader(text)
	out, err := c.Output()
	testkit.Must(t, err)
	f := strings.Fields(string(out))
	return "hmac-sha256:" + f[len(f)-1]
}

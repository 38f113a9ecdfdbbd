//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// again gives the policy file new contents, sends a hangup, and waits for what people are told.
func (p *proxy) again(policy, told string) {
	p.t.Helper()
	testkit.Must(p.t, os.WriteFile(filepath.Join(p.dir, "policy.yaml"), []byte(policy), 0o600))
	before := strings.Count(p.stderr.String(), told)
	p.cmd.Process.Signal(syscall.SIGHUP)
	for n := 0; strings.Count(p.stderr.String(), told) == before; n++ {
		if time.Sleep(time.Millisecond); n > 20000 {
			p.t.Fatalf("not told %q", told)
		}
	}
}

// TestReload: after a hangup calls are decided by what the file says then, and the log has the new digest
// before the first of these decisions. A file that cannot be used changes nothing.
func TestReload(t *testing.T) {
	const (
		denies = "schema: runner.policy.v0\ndefault: allow\nrules:\n  - {id: no, deny: [write_*], args: [{at: $.path, under: /nowhere}]}\n"
		now    = "from now on"
		stays  = "the policy stays as it was"
	)
	p := startProxy(t, readOnly)
	denied := func(id string) bool {
		p.send(callLine(id, "write_x", `{"path":"/nowhere/x"}`))
		return strings.Contains(p.receive(), "P_DENY_")
	}
	if !denied("1") {
		t.Error("the first policy does not decide")
	}
	p.again("schema: runner.policy.v0\nrules: [", stays)
	p.again("schema: runner.policy.v0\ndefault: allow\nrelative_to: "+p.dir+"\n", stays)
	if !denied("2") {
		t.Error("a file that cannot be used decides")
	}
	p.again(allowAll, now)
	if denied("3") {
		t.Error("the second policy does not decide")
	}
	p.again(denies, now)
	p.again(readOnly, now) // no decision was made by the one before
	p.again(denies, now)
	if !denied("4") {
		t.Error("the last policy does not decide")
	}
	p.end()
	var got []string
	for line := range strings.Lines(p.log()) {
		d, err := schemas.ParseDecisionLine([]byte(line))
		testkit.Must(t, err)
		switch {
		case d.Started != nil:
			got = append(got, d.Started.PolicyDigest)
		case d.Decision != nil:
			got = append(got, d.Decision.Decision+" "+d.Decision.PolicyDigest)
		case d.Reloaded != nil:
			got = append(got, "reloaded "+d.Reloaded.PolicyDigest+strings.Join(d.Reloaded.Denies, " "))
		}
	}
	one, two, last := schemas.DigestOf([]byte(readOnly)), schemas.DigestOf([]byte(allowAll)), schemas.DigestOf([]byte(denies))
	want := []string{one, "deny " + one, "deny " + one, "reloaded " + two, "allow " + two, "reloaded " + last + "/nowhere", "deny " + last}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

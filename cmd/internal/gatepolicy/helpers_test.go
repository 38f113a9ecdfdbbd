package gatepolicy

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMain is also a process for a jq program: package jq starts this executable.
func TestMain(m *testing.M) {
	testkit.Heed()
	os.Exit(m.Run())
}

const head = "schema: runner.gate_policy.v0\n"

// parse reads a policy, and ends its programs with the test.
func parse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// decide asks a policy, and checks what is true of each decision.
func decide(t testing.TB, e interface {
	Decide(context.Context, *gate.Input) (*gate.Decision, []gate.Requirement, error)
}, in *gate.Input) (*gate.Decision, []gate.Requirement) {
	t.Helper()
	d, needs, err := e.Decide(t.Context(), in)
	testkit.Must(t, err)
	if _, err := schemas.Marshal(d); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(d.Bundle.Reasons) || d.Bundle.Allowed != (len(d.Bundle.Reasons) == 0) || len(d.Files) != len(in.Files) ||
		len(d.Intents) != len(in.Intents) || len(d.Network) != len(in.Network) || len(d.Calls) != len(in.Calls) {
		t.Errorf("%+v", d)
	}
	return d, needs
}

func number(n uint64) *uint64 { return &n }

// file is a change of a name, whose state has a kind and a size.
func file(index int, op, path, kind string, size uint64) gate.File {
	s := &schemas.FileState{Kind: kind, Mode: 0o644}
	if kind == schemas.KindFile {
		s.Size, s.SHA256 = number(size), schemas.DigestOf("")
	}
	f := gate.File{Index: index, Op: op, Path: path, After: s}
	if op == schemas.ChangeDelete {
		f.Before, f.After = s, nil
	}
	return f
}

func intent(index int, kind, payload string, labels ...string) gate.Intent {
	return gate.Intent{Index: index, ID: "intent-0", Type: kind, Payload: []byte(payload), Labels: labels, Rollback: gate.Rollback{IDSources: []string{}}}
}

func request(index int, method, url string) gate.Intent {
	return intent(index, intentHTTP, `{"method":"`+method+`","url":"`+url+`"}`)
}

func exchange(index int, decision, method, host, path string) gate.Exchange {
	return gate.Exchange{Index: index, Decision: decision, Scheme: "https", Host: host, Port: 443, Method: method, Path: path, URL: "https://" + host + path, Sent: 10, Status: 200}
}

func call(index int, name, decision string) gate.Call {
	return gate.Call{Index: index, ID: "c", Tool: name, Decision: decision}
}

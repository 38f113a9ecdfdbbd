package rego

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// decided is the decision of the sample policy of the gate.
type decided struct {
	PolicyVersion string
	Bundle        struct {
		Allowed, RequiresApproval bool
		Reasons                   []string
	}
	Intents []struct {
		Index                     int
		Type                      *string
		Allowed, RequiresApproval bool
		Reasons, ApprovalReasons  []string
	}
	Network []struct {
		URL, Method any
		Allowed     bool
		Reasons     []string
	}
}

func decide(t *testing.T, p *Policy, stage, intents, network string) (d decided) {
	t.Helper()
	text := eval(t, p, fmt.Sprintf(`{"context": %s, "intents": [%s], "network": [%s]}`, stage, intents, network))
	testkit.Must(t, json.Unmarshal([]byte(text), &d))
	return d
}

const plan = `{"stage": "plan"}`

// TestGateRequests: a request is allowed by a rule that has its host, method and path.
func TestGateRequests(t *testing.T) {
	p := all[0].load(t)
	for request, allowed := range map[string]bool{
		`{"url": "https://api.example.com/v1/x?y", "method": "GET"}`:       true,
		`{"url": "https://API.example.COM:8443/v1/", "method": "post"}`:    true,
		`{"url": "https://api.example.com/health", "method": "GET"}`:       true,
		`{"url": "https://api.example.com/healthy", "method": "GET"}`:      false,
		`{"url": "https://api.example.com/v1/x", "method": "DELETE"}`:      false,
		`{"url": "https://api.example.com/v1/../admin", "method": "GET"}`:  false,
		`{"url": "https://api.example.com/v1/%2e%2E/a", "method": "GET"}`:  false,
		`{"url": "https://api.example.com/v1/..%2Fa", "method": "GET"}`:    false,
		`{"url": "https://api.example.com.evil/v1/", "method": "GET"}`:     false,
		`{"url": "https://api.example.com@evil.org/v1/", "method": "GET"}`: false,
		`{"url": "https://mail.example.com/send", "method": "GET"}`:        false,
		`{"url": "https://mail.example.com/send", "method": "POST"}`:       true,
		`{"url": "https://api.example.com", "method": "GET"}`:              false,
		`{"url": "", "method": "GET"}`:                                     false,
		`{"url": "::", "method": "GET"}`:                                   false,
		`{"url": 7, "method": "GET"}`:                                      false,
		`{"url": "https://api.example.com/v1/x"}`:                          false,
		`{"method": "GET"}`: false,
		`{}`:                false,
	} {
		d := decide(t, p, plan, "", request)
		if len(d.Network) != 1 || d.Network[0].Allowed != allowed || d.Bundle.Allowed != allowed || (len(d.Network[0].Reasons) == 0) != allowed {
			t.Errorf("%s: %+v", request, d)
		}
	}
}

// TestGateIntents: amounts, addresses and labels of intents.
func TestGateIntents(t *testing.T) {
	p := all[0].load(t)
	for intent, want := range map[string][2][]string{
		`{"type": "files.write", "payload": {"path": "x"}}`:         {{}, {}},
		`{"type": "email.send", "payload": {"amount": 100.5}}`:      {{}, {"the label external_email needs an approval"}},
		`{"type": "pay", "payload": {"amount": 100.51}}`:            {{"the amount is over the cap of 100.5"}, {}},
		`{"type": "pay", "payload": {"amount": "9"}}`:               {{"the amount is over the cap of 100.5"}, {}},
		`{"type": "pay", "payload": {"amount": null}}`:              {{"the amount is not a number"}, {}},
		`{"type": "pay", "metadata": {"labels": ["payment", "x"]}}`: {{}, {"the label payment needs an approval"}},
		`{"type": "calendar.event"}`:                                {{}, {}},
		`{}`:                                                        {{}, {}},
		`{"type": "http.request", "payload": {"url": "https://evil.org/", "amount": 101}}`: {
			{"POST https://evil.org/ is not in the allow rules", "the amount is over the cap of 100.5"}, {}},
		`{"type": "http.request", "payload": {"url": false}}`: {{"the address cannot be read"}, {}},
	} {
		d := decide(t, p, plan, intent, "")
		if len(d.Intents) != 1 {
			t.Fatalf("%s: %+v", intent, d)
		}
		i := d.Intents[0]
		if !slices.Equal(i.Reasons, want[0]) || !slices.Equal(i.ApprovalReasons, want[1]) || i.Allowed != (len(want[0]) == 0) ||
			i.RequiresApproval != (len(want[1]) > 0) || d.Bundle.Allowed != i.Allowed || d.Bundle.RequiresApproval != i.RequiresApproval {
			t.Errorf("%s: %+v", intent, d)
		}
	}
	d := decide(t, p, plan, `{"type": "a"}, {"type": "pay", "payload": {"amount": 1000}}, {"type": "email.send"}`, "")
	if d.PolicyVersion != "2025-01" || len(d.Intents) != 3 || d.Intents[1].Index != 1 || *d.Intents[2].Type != "email.send" ||
		d.Intents[0].RequiresApproval || d.Bundle.Allowed || !d.Bundle.RequiresApproval {
		t.Errorf("%+v", d)
	}
}

// TestGateTime: a commit is allowed in the hours of the policy; a plan always.
func TestGateTime(t *testing.T) {
	p := all[0].load(t)
	for context, allowed := range map[string]bool{
		plan: true, `{"stage": "plan", "currentMinutes": 0}`: true, `{"stage": "commit"}`: false, `{"stage": "commit", "currentMinutes": false}`: false,
		`{"stage": "commit", "currentMinutes": 509}`: false, `{"stage": "commit", "currentMinutes": 510}`: true,
		`{"stage": "commit", "currentMinutes": 1019}`: true, `{"stage": "commit", "currentMinutes": 1020}`: false,
	} {
		if d := decide(t, p, context, "", ""); d.Bundle.Allowed != allowed || (len(d.Bundle.Reasons) == 0) != allowed {
			t.Errorf("%s: %+v", context, d)
		}
	}
	// Over midnight, and a window that is not one.
	for window, minutes := range map[string]map[int]bool{
		`{"start": "22:00", "end": "06:30"}`: {1319: false, 1320: true, 0: true, 389: true, 390: false},
		`{"start": "00:00", "end": "00:05"}`: {0: true, 4: true, 5: false},
		`{"start": "9:00", "end": "25:00"}`:  {600: false},
	} {
		p := loadGate(t, `{"config": {"version": "1", "timeWindow": `+window+`}}`)
		for now, allowed := range minutes {
			if d := decide(t, p, fmt.Sprintf(`{"stage": "commit", "currentMinutes": %d}`, now), "", ""); d.Bundle.Allowed != allowed {
				t.Errorf("%s at %d: %+v", window, now, d)
			}
		}
	}
}

// TestGateBare: without allow rules all addresses are allowed, without a cap all amounts.
func TestGateBare(t *testing.T) {
	for _, data := range []string{`{"config": {"version": "1"}}`, `{"config": {"version": "1", "allow": []}}`} {
		d := decide(t, loadGate(t, data), plan, `{"type": "pay", "payload": {"amount": 1e9, "url": "x"}}`, `{"url": "https://evil.org/", "method": "GET"}`)
		if !d.Bundle.Allowed || d.Bundle.RequiresApproval || !d.Network[0].Allowed || !d.Intents[0].Allowed {
			t.Errorf("%s: %+v", data, d)
		}
	}
}

func loadGate(t *testing.T, data string) *Policy {
	t.Helper()
	p, err := Load(t.Context(), testkit.Read(t, all[0].path(".wasm")), []byte(data), Options{})
	testkit.Must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

package gate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func sha(c string) string { return "sha256:" + strings.Repeat(c, 64) }

// sample is a plan with one item of each class.
func sample() *Plan {
	zero, size, amount := 0, uint64(4), uint64(42)
	state := &schemas.FileState{Kind: schemas.KindFile, Mode: 0o644, Size: &size, SHA256: sha("a")}
	item := ItemDecision{Type: "add", Allowed: true, RequiresApproval: true, Reasons: []string{}, ApprovalReasons: []string{"approval_by_rule:all"}, Rule: "all"}
	return &Plan{Schema: schemas.SchemaGatePlan, RunID: "run_01", Archive: sha("b"), Policies: []PolicyRef{{Kind: PolicyYAML, Digest: sha("c")}},
		Evidence: Evidence{Complete: true, Doubts: []string{}, Origin: schemas.OriginRunner, KernelLayer: schemas.LayerComplete, Correlation: schemas.CorrelationClean, Command: []string{"sh"}, ExitCode: &zero},
		Base:     &Base{Digest: sha("d"), Listed: true},
		Files:    []File{{Op: schemas.ChangeAdd, Path: "a", After: state, Diff: &TextDiff{Text: "@@ -0,0 +1 @@\n+new\n"}}},
		Intents: []Intent{{ID: "intent-0", Type: schemas.IntentHTTPRequest, Payload: jsontext.Value(`{"method":"POST","url":"http://x.example/"}`), IdempotencyKey: "k", Labels: []string{}, Amount: &amount,
			Rollback: Rollback{Available: true, Rule: "r", Method: "DELETE", PathTemplate: "/{id}", RequiresID: true, IDSources: []string{"header:location"}}}},
		Network: []Exchange{{Decision: schemas.NetAllow, Scheme: schemas.NetHTTP, Host: "m.example", Port: 80, Method: "GET", Path: "/", URL: "http://m.example/", Status: 200}},
		Calls:   []Call{{ID: "c", Tool: "t", Decision: schemas.DecisionAllow}}, Blocked: []string{},
		Decision: Decision{PolicyVersion: "1", Bundle: BundleDecision{Allowed: true, RequiresApproval: true, Reasons: []string{}}, Files: []ItemDecision{item}, Intents: []ItemDecision{item},
			Network: []NetworkDecision{{URL: "http://m.example/", Method: "GET", Allowed: true, Reasons: []string{}}}, Calls: []ItemDecision{item}},
		Approvals: []Requirement{{Why: "rule all", Count: 1, Keys: []string{}}}}
}

// A plan has one byte form: no byte of it can be changed, left out or added so that it is the same plan, and each prefix is refused.
func TestPlanForm(t *testing.T) {
	b, err := sample().Bytes()
	testkit.Must(t, err)
	_, digest, err := ParsePlan(b)
	testkit.Must(t, err)
	for i := range b {
		if _, _, err := ParsePlan(b[:i]); err == nil {
			t.Fatalf("the first %d bytes are a plan", i)
		}
		for _, edit := range [][]byte{append(append(bytes.Clone(b[:i]), b[i]^1), b[i+1:]...), append(append(bytes.Clone(b[:i]), ' '), b[i:]...)} {
			if _, other, err := ParsePlan(edit); err == nil && other == digest {
				t.Fatalf("byte %d can be edited", i)
			}
		}
	}
	for name, edit := range map[string]string{"no LF": strings.TrimSuffix(string(b), "\n"), "two LF": string(b) + "\n", "spaces": strings.Replace(string(b), ",", ", ", 1), "another schema": strings.Replace(string(b), "plan.v0", "plan.v1", 1),
		"an unknown key": strings.Replace(string(b), `"run_id"`, `"x":1,"run_id"`, 1), "a key twice": strings.Replace(string(b), `"run_id"`, `"run_id":"a","run_id"`, 1), "an escape": strings.Replace(string(b), `"add"`, "\"\\u0061dd\"", 1)} {
		if _, _, err := ParsePlan([]byte(edit)); err == nil {
			t.Errorf("%s: it is a plan", name)
		}
	}
}

// A plan whose lists do not fit each other is none: nobody could show it.
func TestPlanLists(t *testing.T) {
	for name, edit := range map[string]func(*Plan){
		"no decision":    func(p *Plan) { p.Decision.Files = []ItemDecision{} },
		"another place":  func(p *Plan) { p.Decision.Calls[0].Index = 1 },
		"no state":       func(p *Plan) { p.Files[0].After = nil },
		"payload":        func(p *Plan) { p.Intents[0].Payload = jsontext.Value(`[]`) },
		"nobody":         func(p *Plan) { p.Approvals[0].Count = 0 },
		"exchange":       func(p *Plan) { p.Network[0].Index = 7 },
		"a call too few": func(p *Plan) { p.Calls = []Call{} },
	} {
		p := sample()
		edit(p)
		b, err := p.Bytes()
		testkit.Must(t, err)
		if _, _, err := ParsePlan(b); err == nil {
			t.Errorf("%s: it is a plan", name)
		}
	}
}

// What refuses a plan: doubts that were not accepted, the decision, and what cannot be done.
func TestRefused(t *testing.T) {
	if list := sample().Refused(); len(list) > 0 {
		t.Error(list)
	}
	for name, edit := range map[string]func(*Plan){
		"doubts":   func(p *Plan) { p.Evidence.Complete, p.Evidence.Doubts = false, []string{"a doubt"} },
		"decision": func(p *Plan) { p.Decision.Bundle = BundleDecision{Reasons: []string{"denied_by_default"}} },
		"no reason": func(p *Plan) {
			p.Decision.Bundle = BundleDecision{Reasons: []string{}}
		},
		"an item": func(p *Plan) { p.Decision.Calls[0].Allowed = false },
		"blocked": func(p *Plan) { p.Blocked = []string{"a socket"} },
	} {
		p := sample()
		edit(p)
		if len(p.Refused()) == 0 {
			t.Errorf("%s: it is not refused", name)
		}
		if name != "doubts" {
			continue
		}
		if p.AcceptPartial = true; len(p.Refused()) > 0 {
			t.Error("accepted doubts refuse it")
		}
	}
}

type person struct {
	private *attestation.PrivateKey
	public  *attestation.PublicKey
}

func newPerson(t testing.TB, algorithm string) person {
	t.Helper()
	k, err := attestation.Generate(algorithm)
	testkit.Must(t, err)
	p, err := k.Public()
	testkit.Must(t, err)
	return person{k, p}
}

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// An approval holds for its plan, its archive and its policies, while it is in force, by the key that signed it.
func TestApproval(t *testing.T) {
	p := sample()
	b, err := p.Bytes()
	testkit.Must(t, err)
	digest := schemas.DigestOf(b)
	for _, algorithm := range []string{attestation.Ed25519, attestation.P256} {
		alice, eve := newPerson(t, algorithm), newPerson(t, algorithm)
		keys := []*attestation.PublicKey{alice.public}
		for name, c := range map[string]struct {
			by   person
			edit func(*Approval)
			ok   bool
			say  string
		}{
			"good":             {by: alice, ok: true},
			"with words":       {by: alice, edit: func(a *Approval) { a.Actor, a.Comment = "Alice", "fine" }, ok: true},
			"another key":      {by: eve, say: "no key with this fingerprint"},
			"in her name":      {by: eve, edit: func(a *Approval) { a.Key = alice.public.String() }, say: "no key with this fingerprint"},
			"in another name":  {by: alice, edit: func(a *Approval) { a.Key = eve.public.String() }, say: "no key with this fingerprint"},
			"another archive":  {by: alice, edit: func(a *Approval) { a.Archive = sha("0") }, say: "is about the archive"},
			"another run":      {by: alice, edit: func(a *Approval) { a.RunID = "run_02" }, say: "is about the archive"},
			"another plan":     {by: alice, edit: func(a *Approval) { a.Plan = sha("0") }, say: "is about the plan"},
			"another policy":   {by: alice, edit: func(a *Approval) { a.Policies = []PolicyRef{{Kind: PolicyYAML, Digest: sha("0")}} }, say: "was a policy edited?"},
			"other doubts":     {by: alice, edit: func(a *Approval) { a.Accepted = []string{"drops"} }, say: "doubts"},
			"another verdict":  {by: alice, edit: func(a *Approval) { a.Verdict = "maybe" }, say: "verdict"},
			"expired":          {by: alice, edit: func(a *Approval) { a.Expires = now.Format(time.RFC3339) }, say: "has expired"},
			"no end":           {by: alice, edit: func(a *Approval) { a.Expires = "" }, say: "has no times"},
			"of the future":    {by: alice, edit: func(a *Approval) { a.Made = now.Add(time.Hour).Format(time.RFC3339) }, say: "in the future"},
			"of another shape": {by: alice, edit: func(a *Approval) { a.Schema = "x" }, say: "schema is"},
		} {
			a := NewApproval(p, digest, Approve, c.by.public, now.Add(-time.Minute), now.Add(time.Minute))
			if c.edit != nil {
				c.edit(a)
			}
			e, err := a.Sign(c.by.private)
			testkit.Must(t, err)
			line, err := e.Line(false)
			testkit.Must(t, err)
			list, err := attestation.Parse(line)
			testkit.Must(t, err)
			_, err = ReadApproval(list[0], p, digest, keys, now)
			if (err == nil) != c.ok || err != nil && (!errors.Is(err, ErrStale) || !strings.Contains(err.Error(), c.say)) {
				t.Errorf("%s %s: %v", algorithm, name, err)
			}
		}
	}
}

// An attestation of an archive is no approval.
func TestOtherPredicate(t *testing.T) {
	alice := newPerson(t, attestation.Ed25519)
	s := attestation.Statement{Type: attestation.StatementType, PredicateType: attestation.MeasuredRun, Predicate: jsontext.Value(`{}`)}
	b, err := schemas.Marshal(&s)
	testkit.Must(t, err)
	e := attestation.Seal(b)
	testkit.Must(t, e.Sign(alice.private))
	if _, err := ReadApproval(e, sample(), sha("0"), []*attestation.PublicKey{alice.public}, now); !errors.Is(err, ErrStale) {
		t.Error(err)
	}
}

// Each key counts once, a key that a requirement does not name does not count for it, and one denial stops everything.
func TestEnough(t *testing.T) {
	people := []person{newPerson(t, attestation.Ed25519), newPerson(t, attestation.Ed25519), newPerson(t, attestation.P256)}
	var all []*attestation.PublicKey
	var names []string
	for _, p := range people {
		all, names = append(all, p.public), append(names, p.public.String())
	}
	says := func(verdict string, who ...int) (list []*Approval) {
		for _, i := range who {
			list = append(list, &Approval{Verdict: verdict, Key: names[i]})
		}
		return list
	}
	for name, c := range map[string]struct {
		need []Requirement
		said []*Approval
		want error
	}{
		"nothing to approve": {},
		"nobody":             {[]Requirement{{Why: "x", Count: 1}}, nil, ErrMissing},
		"anybody":            {[]Requirement{{Why: "x", Count: 1}}, says(Approve, 2), nil},
		"one of two":         {[]Requirement{{Why: "x", Count: 2}}, says(Approve, 1), ErrMissing},
		"one of two, twice":  {[]Requirement{{Why: "x", Count: 2}}, says(Approve, 1, 1), ErrMissing},
		"two":                {[]Requirement{{Why: "x", Count: 2}}, says(Approve, 0, 1), nil},
		"a key named twice":  {[]Requirement{{Why: "x", Count: 2, Keys: []string{names[0], names[0]}}}, says(Approve, 0), ErrMissing},
		"not the one":        {[]Requirement{{Why: "x", Count: 1, Keys: names[:1]}}, says(Approve, 1, 2), ErrMissing},
		"one of two rules":   {[]Requirement{{Why: "x", Count: 1, Keys: names[:1]}, {Why: "y", Count: 1, Keys: names[1:2]}}, says(Approve, 0), ErrMissing},
		"two rules":          {[]Requirement{{Why: "x", Count: 1, Keys: names[:1]}, {Why: "y", Count: 1, Keys: names[1:2]}}, says(Approve, 0, 1), nil},
		"a denial":           {[]Requirement{{Why: "x", Count: 1}}, append(says(Approve, 0, 1), says(Deny, 2)...), ErrDenied},
		"a denial of a plan that nobody has to approve": {nil, says(Deny, 2), ErrDenied},
	} {
		if err := Enough(c.need, c.said, all); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
	}
}

// FuzzPlan: whatever is taken for a plan is written in the same bytes again.
func FuzzPlan(f *testing.F) {
	b, err := sample().Bytes()
	testkit.Must(f, err)
	f.Add(b)
	f.Add([]byte(`{"schema":"runner.gate_plan.v0"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, digest, err := ParsePlan(b)
		if err != nil {
			return
		}
		own, err := p.Bytes()
		if err != nil || !bytes.Equal(own, b) || digest != schemas.DigestOf(b) {
			t.Errorf("%v\n%q\n%q", err, b, own)
		}
		p.Refused()
	})
}

// FuzzApproval: nothing that is not signed by the key is an approval, whatever it looks like.
func FuzzApproval(f *testing.F) {
	alice, eve := newPerson(f, attestation.Ed25519), newPerson(f, attestation.Ed25519)
	p := sample()
	a := NewApproval(p, sha("0"), Approve, alice.public, now, now.Add(time.Hour))
	e, err := a.Sign(eve.private)
	testkit.Must(f, err)
	line, err := e.Line(false)
	testkit.Must(f, err)
	f.Add(line)
	line, err = e.Line(true)
	testkit.Must(f, err)
	f.Add(line)
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := attestation.Parse(b)
		if err != nil {
			return
		}
		for _, e := range list {
			if _, err := ReadApproval(e, p, sha("0"), []*attestation.PublicKey{alice.public}, now); err == nil {
				t.Errorf("%q is an approval", b)
			}
		}
	})
}

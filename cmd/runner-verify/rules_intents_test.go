package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// intentLine is one line of the layer.
func intentLine(seq int, kind, payload, rest string) string {
	return lineOf("intent", seq, fmt.Sprintf(`"intent_type":%q,"payload":%s%s`, kind, payload, rest))
}

// intended is an archive of the command's intents too.
func intended() content {
	a := layered()
	a[schemas.MemberIntents] = intentLine(0, schemas.IntentFilesWrite, `{"path":"a/b","text":"x"}`, `,"idempotency_key":"k1"`) +
		intentLine(1, schemas.IntentHTTPRequest, `{"json":{"b":1.50},"method":"POST","url":"https://a.test/"}`, `,"idempotency_key":"k2","labels":["x"],"amount":7`) +
		intentLine(2, "mail.send", `{}`, "")
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `agent=4"]`, `agent=4","s6_intents: intents=3 self-reported"]`, 1)
	a[bundle.EventsName] = strings.Replace(a[bundle.EventsName], `"env_keys":[`, `"env_keys":["`+schemas.EnvIntentLog+`","`+schemas.EnvIntentSchema+`",`, 1)
	return a
}

// TestIntents: intents are valid, they make a claim that says whose they are, and what is wrong with them has its rule.
func TestIntents(t *testing.T) {
	if code, r := check(t, intended().digest(t).tar(t)); code != 0 || !slices.Contains(r.Claims, "the command itself reported 3 intents: what it wants to have done, of which the run did nothing") {
		t.Fatalf("exit %d: %v %q", code, r.Findings, r.Claims)
	}
	none := intended()
	delete(none, schemas.MemberIntents)
	none[bundle.HealthName] = layered()[bundle.HealthName]
	if code, r := check(t, none.digest(t).tar(t)); code != 0 {
		t.Errorf("a run that wants nothing: %v", r.Findings)
	}
	a := intended()
	for name, c := range map[string]struct{ member, old, new, rule string }{
		"key twice":         {schemas.MemberIntents, `"k2"`, `"k1"`, ruleIntentsKeys},
		"keys not in order": {schemas.MemberIntents, `"json":{"b":1.50},"method":"POST"`, `"method":"POST","json":{"b":1.50}`, ruleLineForm},
		"payload is wrong":  {schemas.MemberIntents, `"a/b"`, `"../b"`, archive.RuleLineSchema},
		"secret header":     {schemas.MemberIntents, `{"json"`, `{"headers":{"cookie":"a=b"},"json"`, archive.RuleLineSchema},
		"a gap":             {schemas.MemberIntents, `"seq":2`, `"seq":3`, archive.RuleSeq},
		"another run":       {schemas.MemberIntents, `"run_id":"` + runID + `","seq":2`, `"run_id":"other","seq":2`, archive.RuleRunID},
		"too deep":          {schemas.MemberIntents, `{}`, strings.Repeat(`{"a":`, schemas.MaxIntentDepth) + "1" + strings.Repeat("}", schemas.MaxIntentDepth), ""},
		"one too deep":      {schemas.MemberIntents, `{}`, strings.Repeat(`{"a":`, archive.MaxDepth) + "1" + strings.Repeat("}", archive.MaxDepth), archive.RuleLimit},
		"other count":       {bundle.HealthName, "intents=3", "intents=2", ruleHealthNote},
		"not self-reported": {bundle.HealthName, "intents=3 self-reported", "intents=3", ruleHealthNote},
		"no note":           {bundle.HealthName, `,"s6_intents: intents=3 self-reported"`, "", ruleHealthNote},
		"no line":           {schemas.MemberIntents, a[schemas.MemberIntents], "", ruleHealthNote},
		"variable alone":    {bundle.EventsName, `"` + schemas.EnvIntentSchema + `",`, "", ruleEventsEnv},
	} {
		t.Run(name, func(t *testing.T) {
			b := intended()
			if b[c.member] = strings.Replace(b[c.member], c.old, c.new, 1); b[c.member] == a[c.member] {
				t.Fatal("nothing was changed")
			}
			code, r := check(t, b.digest(t).tar(t))
			if want := min(1, len(c.rule)); code != want || c.rule != "" && !slices.Contains(rules(r), c.rule) {
				t.Errorf("exit %d, expected %q: %v", code, c.rule, r.Findings)
			}
		})
	}
	if len(verdict.Remarkable([]string{"s6_intents: intents=3 self-reported"})) > 0 {
		t.Error("intents are remarkable")
	}
}

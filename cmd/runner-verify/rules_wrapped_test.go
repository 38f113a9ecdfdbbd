package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// wrappedHead is the beginning of a line or document.
func wrappedHead(name string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.%s.v0","run_id":%q`, name, runID)
}

func lineOf(name string, seq int, rest string) string {
	return fmt.Sprintf("%s,\"seq\":%d,%s}\n", wrappedHead(name), seq, rest)
}

const (
	wrappedBody, wrappedFile, wrappedBase, wrappedInput, wrappedPolicy = "a body", "a new file", "a file of the base", "typed in", "a policy"
	wrappedTree                                                        = `{"schema":"runner.base_entry.v0","path":".","kind":"dir","mode":493,"modified_ns":7}` + "\n"
)

// wrappedRun is layered with all that wrappers can add.
func wrappedRun(t testing.TB) content {
	t.Helper()
	a := layered()
	for member, text := range a { // decided by a policy file that is there, and connected to where an exchange is
		a[member] = strings.NewReplacer(testDigest, schemas.DigestOf([]byte(wrappedPolicy)), "127.0.0.1:80", "198.18.0.1:80").Replace(text)
	}
	a.reaching(2, "127.0.0.53:53", `"return_value":0,"status":"success"`)
	blob := func(text string) string {
		digest := schemas.DigestOf([]byte(text))
		a[schemas.BlobMember(digest)] = text
		return digest
	}
	file := fmt.Sprintf(`{"schema":"runner.base_entry.v0","path":"a","kind":"file","mode":420,"size":%d,"sha256":"%s"`, len(wrappedBase), blob(wrappedBase))
	others := ""
	for _, entry := range []string{`"path":"c","kind":"fifo","mode":420`, `"path":"d","kind":"dir","mode":493`, `"path":"d/e","kind":"fifo","mode":420`} {
		others += `{"schema":"runner.base_entry.v0",` + entry + "}\n"
	}
	list := blob(wrappedTree + file + ",\"modified_ns\":9}\n" + others)
	base := schemas.DigestOf([]byte(strings.Replace(wrappedTree, `,"modified_ns":7`, "", 1) + file + "}\n" + others))
	after := fmt.Sprintf(`"after":{"kind":"file","mode":420,"size":%d,"sha256":"%s"}`, len(wrappedFile), blob(wrappedFile))
	a[schemas.MemberChanges] = lineOf("file_change", 0, `"op":"add","path":"b",`+after) + lineOf("file_change", 1, `"op":"delete","path":"c","before":{"kind":"fifo","mode":420}`)
	a[schemas.MemberRunBox] = wrappedHead("box") + fmt.Sprintf(`,"workdir":"/workspace","workspace":"overlay","base":{"kind":"dir","digest":"%s","entries":5,"bytes":%d,"list":"%s"},"rootless":false,"namespaces":["mount","pid","ipc","uts"],"fresh":["/tmp"],"confined":[],"changes":{"add":1,"delete":1},"unread":0,"survivors_killed":0,"inherited_fds":0,"base_changed":0}`,
		base, len(wrappedBase), list)
	message := fmt.Sprintf(`{"bytes":%d,"sha256":"%s"}`, len(wrappedBody), blob(wrappedBody))
	exchange := func(seq int, path string) string {
		return lineOf("network_exchange", seq, `"decision":"allow","rule":"r","scheme":"http","host":"a.test","port":80,"address":"198.18.0.1","method":"POST","path":"`+path+`","request":`+message+`,"status":200,"response":{"bytes":0}`)
	}
	a[schemas.MemberExchanges] = exchange(0, "/a") + exchange(1, "/b")
	a[schemas.MemberNames] = lineOf("dns_name", 0, `"name":"a.test","type":"A","answer":"198.18.0.1"`) + lineOf("dns_name", 1, `"name":"a.test","type":"AAAA"`)
	a[schemas.MemberRunNet] = wrappedHead("net") + `,"mode":"record","ports":[80,443],"rules":"` + testDigest + `","match_headers":["accept","etag"],"exchanges":2,"names":2,"names_lost":0,"redacted":0,"unused":0}`
	tick := func(seq int, n int, op string) string {
		return lineOf("clock_tick", seq, fmt.Sprintf(`"process":"node:0123456789abcdef.0","tick":%d,"op":"%s","at_ns":[%d]`, n, op, n))
	}
	a[schemas.MemberClock] = tick(0, 0, "read") + tick(1, 1, "end")
	a[schemas.MemberRunClock] = wrappedHead("clock") + `,"seed":"1","start":"2026-01-01T00:00:00Z","runtimes":["node"],"crypto":"seed","bad_lines":0,"lost":0,"unended":0}`
	a[schemas.MemberStdout], a[schemas.MemberStderr] = "said", ""
	bytes := func(text string) string {
		return fmt.Sprintf(`{"bytes":%d,"sha256":"%s"}`, len(text), schemas.DigestOf([]byte(text)))
	}
	blob(wrappedInput)
	blob(wrappedPolicy)
	a[schemas.MemberRunEnv] = wrappedHead("env") + `,"wrappers":["runner-net","runner-box","runner-clock"],"command":["true","x"],"uid":0,"gid":0,"cwd":"/","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"stdin":` + bytes(wrappedInput) + `,"stdout":` + bytes("said") + `,"stderr":` + bytes("") + `,"policy":` + bytes(wrappedPolicy) + `}`
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `agent=5"]`,
		`agent=5","s8_box: workspace=overlay changes=2 unread=0 base_changed=0 survivors_killed=0","s8_clock: ticks=2 bad_lines=0 lost=0 unended=0","s8_dns: names=2 lost=0","s8_network: mode=record exchanges=2 unused=0"]`, 1)
	a[bundle.EventsName] = regexp.MustCompile(`"command":\[.*?\],`).ReplaceAllString(a[bundle.EventsName], `"command":["/bin/runner-net","record","--","runner-box","--","runner-clock","--","true","x"],`)
	return a
}

// wrappedRefused checks that an archive is refused by a rule.
func wrappedRefused(t *testing.T, a content, rule string) {
	t.Helper()
	if code, r := check(t, a.digest(t).tar(t)); code != 1 || !slices.Contains(rules(r), rule) {
		t.Errorf("exit %d, expected %s: %v", code, rule, r.Findings)
	}
}

// TestWrapped: what wrappers recorded is valid, with and without blobs of the base; and what is wrong with it has its rule.
func TestWrapped(t *testing.T) {
	if code, out, errs := call(wrappedRun(t).digest(t).tar(t)); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	blob := func(text string) string { return schemas.BlobMember(schemas.DigestOf([]byte(text))) }
	other := schemas.DigestOf([]byte("other"))
	for _, c := range []struct {
		name, member, old, new string
		rule                   string
	}{
		{"ticks not in order", schemas.MemberClock, `"tick":1`, `"tick":0`, ruleWrappedLines},
		{"names not in order", schemas.MemberNames, `"type":"AAAA"`, `"type":"A"`, ruleWrappedLines},
		{"name that is no text", schemas.MemberNames, `"name":"a.test","type":"AAAA"`, `"name":"a\\q","type":"AAAA"`, ruleWrappedLines},
		{"changes not in order", schemas.MemberChanges, `"path":"c"`, `"path":"a"`, ruleWrappedLines},
		{"change outside", schemas.MemberChanges, `"path":"c"`, `"path":"c/../../d"`, ruleWrappedLines},
		{"change without a difference", schemas.MemberChanges, `"op":"delete","path":"c","before":{"kind":"fifo","mode":420}`, `"op":"mode","path":"c","before":{"kind":"fifo","mode":420},"after":{"kind":"fifo","mode":420}`, ""},
		{"exchanges not in order", schemas.MemberExchanges, `"path":"/b"`, `"path":"/A"`, ruleWrappedLines},
		{"a header that is no text", schemas.MemberExchanges, `"response":{"bytes":0`, `"response":{"headers":[{"name":"a","value":"\\q"}],"bytes":0`, ruleWrappedLines},
		{"a trailer that is no text", schemas.MemberExchanges, `"response":{"bytes":0`, `"response":{"bytes":0,"trailers":[{"name":"a","value":"\\q"}]`, ruleWrappedLines},
		{"denied by a rule", schemas.MemberExchanges, `"decision":"allow"`, `"decision":"deny"`, ruleWrappedLines},
		{"passed on without a rule", schemas.MemberExchanges, `"rule":"r",`, ``, ruleWrappedLines},
		{"denied, and answered as if it were not", schemas.MemberExchanges, `"decision":"allow","rule":"r"`, `"decision":"deny"`, ruleWrappedLines},
		{"not reached, and answered", schemas.MemberExchanges, `"response":{"bytes":0}`, `"response":{"bytes":0},"failure":"unreachable"`, ruleWrappedLines},
		{"answered by nobody", schemas.MemberExchanges, `,"response":{"bytes":0}`, ``, ruleWrappedLines},
		{"a miss with an answer", schemas.MemberExchanges, `"decision":"allow","rule":"r"`, `"decision":"miss"`, ""},
		{"an end not counted", schemas.MemberClock, `"op":"end"`, `"op":"sleep"`, ruleWrappedDocuments},
		{"ticks lost", schemas.MemberRunClock, `"lost":0`, `"lost":1`, ""},
		{"changes not counted", schemas.MemberRunBox, `"add":1`, `"add":2`, ruleWrappedDocuments},
		{"exchanges not counted", schemas.MemberRunNet, `"exchanges":2`, `"exchanges":3`, ruleWrappedDocuments},
		{"names not counted", schemas.MemberRunNet, `"names":2`, `"names":3`, ruleWrappedDocuments},
		{"names lost", schemas.MemberRunNet, `"names_lost":0`, `"names_lost":1`, ""},
		{"another mode", schemas.MemberRunNet, `"mode":"record"`, `"mode":"deny"`, ruleWrappedDocuments},
		{"a rule of no file", schemas.MemberRunNet, `"rules":"` + testDigest + `",`, ``, ruleWrappedDocuments},
		{"a port where nothing listened", schemas.MemberRunNet, `[80,443]`, `[443]`, ruleWrappedDocuments},
		{"ports not in order", schemas.MemberRunNet, `[80,443]`, `[443,80]`, ruleWrappedDocuments},
		{"headers not in order", schemas.MemberRunNet, `["accept","etag"]`, `["etag","accept"]`, ruleWrappedDocuments},
		{"variables not in order", schemas.MemberRunEnv, `{"name":"A","value":"1"}`, `{"name":"C","value":"1"}`, ruleWrappedDocuments},
		{"another command", schemas.MemberRunEnv, `["true","x"]`, `["true"]`, ruleWrappedDocuments},
		{"another order", schemas.MemberRunEnv, `"runner-net","runner-box"`, `"runner-box","runner-net"`, ruleWrappedDocuments},
		{"another wrapper", schemas.MemberRunEnv, `"runner-net",`, ``, ruleWrappedDocuments},
		{"other output", schemas.MemberStdout, "said", "sang", ruleWrappedDocuments},
		{"another note", bundle.HealthName, "exchanges=2", "exchanges=4", ruleWrappedDocuments},
		{"a note of nothing", bundle.HealthName, `"s8_network: mode=record exchanges=2 unused=0"`, `"s8_network: mode=record exchanges=2 unused=0","s8_network: mode=record exchanges=2 unused=0"`, ""},
		{"no note", bundle.HealthName, `,"s8_network: mode=record exchanges=2 unused=0"`, ``, ruleWrappedDocuments},
		{"another list", schemas.MemberRunBox, `"entries":5`, `"entries":4`, ruleWrappedBlobs},
		{"no list", schemas.MemberRunBox, regexp.MustCompile(`"list":"[^"]*"`).FindString(wrappedRun(t)[schemas.MemberRunBox]), `"list":"` + other + `"`, ruleWrappedBlobs},
		{"another policy file of decisions", schemas.MemberRunEnv, schemas.DigestOf([]byte(wrappedPolicy)), schemas.DigestOf([]byte(wrappedBody)), ruleWrappedDocuments},
		{"another policy file of rules", bundle.HealthName, regexp.MustCompile(`s4_network_policy: rules=\d+ blocked=\d+ policy=[^"]*`).FindString(wrappedRun(t)[bundle.HealthName]), "s4_network_policy: rules=2 blocked=1 policy=" + other, ruleWrappedDocuments},
		{"a policy file of another length", schemas.MemberRunEnv, `"policy":{"bytes":8`, `"policy":{"bytes":9`, ruleWrappedBlobs},
		{"no policy file", schemas.MemberRunEnv, schemas.DigestOf([]byte(wrappedPolicy)), other, ruleWrappedBlobs},
		{"another input", schemas.MemberRunEnv, schemas.DigestOf([]byte(wrappedInput)), other, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := wrappedRun(t)
			if !strings.Contains(a[c.member], c.old) {
				t.Fatalf("%s has no %s", c.member, c.old)
			}
			a[c.member] = strings.Replace(a[c.member], c.old, c.new, 1)
			if c.rule == "" {
				if code, _, _ := call(a.digest(t).tar(t)); code != 1 {
					t.Errorf("exit %d", code)
				}
				return
			}
			wrappedRefused(t, a, c.rule)
		})
	}
	for _, text := range []string{wrappedBody, wrappedFile, wrappedBase, wrappedInput, wrappedPolicy} {
		t.Run("without "+text, func(t *testing.T) {
			a := wrappedRun(t)
			delete(a, blob(text))
			wrappedRefused(t, a, ruleWrappedBlobs)
		})
	}
	t.Run("a blob of nothing", func(t *testing.T) {
		a := wrappedRun(t)
		a[blob("other")] = "other"
		wrappedRefused(t, a, ruleWrappedBlobs)
	})
	t.Run("a blob of another name", func(t *testing.T) {
		a := wrappedRun(t)
		a[blob(wrappedBody)] = "a bodY"
		wrappedRefused(t, a, "member.digest")
	})
	for _, document := range []string{schemas.MemberRunBox, schemas.MemberRunClock, schemas.MemberRunNet} {
		t.Run("without "+document, func(t *testing.T) {
			a := wrappedRun(t)
			delete(a, document)
			wrappedRefused(t, a, ruleWrappedDocuments)
		})
	}
}

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

// countAfter is the number after a word of a text.
func countAfter(text, word string) (n int) {
	fmt.Sscan(regexp.MustCompile(word + `(\d+)`).FindStringSubmatch(text)[1], &n)
	return n
}

// reaching adds a kernel line about an endpoint, of a process of the agent, and counts it.
func (a content) reaching(event int, value, rest string) {
	kind := fmt.Sprint("event_", event)
	if event == schemas.EventConnect {
		kind = "connect"
	}
	a[bundle.KernelName] += kernelLine(strings.Count(a[bundle.KernelName], "\n"), fmt.Sprintf(`"event_type":%d,"kind":"%s","value":"%s",%s`, event, kind, value, rest))
	for _, word := range []string{"monitor_events=", " agent="} {
		n := countAfter(a[bundle.HealthName], word)
		a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], fmt.Sprint(word, n), fmt.Sprint(word, n+1), 1)
	}
	if event != schemas.EventConnect {
		a[bundle.HealthName] = strings.ReplaceAll(strings.ReplaceAll(a[bundle.HealthName], `coverage":"connect_only"`, `coverage":"connect_and_datagram_peer_observed"`), "coverage=connect_only", "coverage=connect_and_datagram_peer_observed")
	}
	set := regexp.MustCompile(`"network_endpoints":\[(.*?)\]`)
	list := append(strings.Split(set.FindStringSubmatch(a[bundle.SurfaceName])[1], ","), `"`+value+`"`)
	slices.Sort(list)
	a[bundle.SurfaceName] = set.ReplaceAllLiteralString(a[bundle.SurfaceName], `"network_endpoints":[`+strings.Join(slices.Compact(list), ",")+"]")
}

// coded adds codes to the report.
func (a content) coded(codes ...string) {
	set := regexp.MustCompile(`"ambiguities":\[(.*?)\]`)
	list := strings.Split(set.FindStringSubmatch(a[bundle.ReportName])[1], ",")
	for _, code := range codes {
		list = append(list, `"`+code+`"`)
	}
	slices.Sort(list)
	a[bundle.ReportName] = set.ReplaceAllLiteralString(a[bundle.ReportName], `"ambiguities":[`+strings.Join(list, ",")+"]")
}

// exchanging adds an exchange that was refused, as the last one, and counts it.
func (a content) exchanging(address string) {
	n := strings.Count(a[schemas.MemberExchanges], "\n")
	a[schemas.MemberExchanges] += lineOf("network_exchange", n, `"decision":"deny","scheme":"https","host":"z.test","port":443,"address":"`+address+`","request":{"bytes":0},"failure":"silent"`)
	a[schemas.MemberRunNet] = strings.Replace(a[schemas.MemberRunNet], fmt.Sprintf(`"exchanges":%d`, n), fmt.Sprintf(`"exchanges":%d`, n+1), 1)
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], fmt.Sprintf("exchanges=%d ", n), fmt.Sprintf("exchanges=%d ", n+1), 1)
}

// TestWrappedConnects: where the network of runner-net and the kernel lines disagree, the report says so.
func TestWrappedConnects(t *testing.T) {
	const (
		done, pending, failed = `"return_value":0,"status":"success"`, `"return_value":-115`, `"return_value":-4,"status":"error"`
		alone, unseen         = "exchange_without_connect:198.18.0.9:443", "connect_without_exchange:198.18.0.9:443"
	)
	for _, c := range []struct {
		name   string
		change func(a content)
		code   string // "" is without
	}{
		{"a connection without an exchange", func(a content) { a.reaching(2, "198.18.0.9:443", done) }, unseen},
		{"one that ended later", func(a content) { a.reaching(2, "198.18.0.9:443", pending+`,"connect_result":0`) }, unseen},
		{"one that was refused", func(a content) { a.reaching(2, "198.18.0.9:443", `"return_value":-111,"status":"error"`) }, ""},
		{"one to another port", func(a content) { a.reaching(2, "198.18.0.9:4433", done) }, ""},
		{"an exchange that nobody asked for", func(a content) { a.exchanging("198.18.0.9") }, alone},
		{"one that the command connected for", func(a content) { a.exchanging("198.18.0.9"); a.reaching(2, "198.18.0.9:443", done) }, ""},
		{"two on one connection", func(a content) {
			a.exchanging("198.18.0.9")
			a.exchanging("198.18.0.9")
			a.reaching(2, "198.18.0.9:443", done)
		}, ""},
		{"one whose connect was pending", func(a content) { a.exchanging("198.18.0.9"); a.reaching(2, "198.18.0.9:443", pending) }, ""},
		{"one whose connect a signal interrupted", func(a content) { a.exchanging("198.18.0.9"); a.reaching(2, "198.18.0.9:443", failed) }, ""},
		{"one whose connect went with its data", func(a content) {
			a.exchanging("198.18.0.9")
			a.reaching(6, "198.18.0.9:443", `"return_value":5,"status":"success"`)
		}, ""},
		{"one of IPv4 within IPv6", func(a content) { a.exchanging("198.18.0.9"); a.reaching(2, "[::ffff:198.18.0.9]:443", done) }, ""},
		{"one of a link", func(a content) { a.exchanging("fe80::9%lo"); a.reaching(2, "[fe80::9]:443", done) }, ""},
		{"one to no address in particular", func(a content) { a.exchanging("127.0.0.1"); a.reaching(2, "0.0.0.0:443", failed) }, ""},
		{"one at another port", func(a content) { a.exchanging("198.18.0.9"); a.reaching(2, "198.18.0.9:80", failed) }, alone},
		{"a bind is no connection", func(a content) { a.exchanging("198.18.0.9"); a.reaching(203, "198.18.0.9:443", done) }, alone},
		{"names that nobody asked for", func(a content) {
			for member, text := range a {
				a[member] = strings.ReplaceAll(text, "127.0.0.53:53", "127.0.0.53:54")
			}
		}, schemas.AmbiguityNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := wrappedRun(t)
			c.change(a)
			if strings.Contains(c.name, "bind") { // which is no datagram
				a[bundle.HealthName] = strings.ReplaceAll(a[bundle.HealthName], "connect_and_datagram_peer_observed", "connect_only")
			}
			if c.code != "" {
				wrappedRefused(t, a, ruleReportAmbiguity)
				a.coded(c.code)
			}
			if code, out, errs := call(a.digest(t).tar(t)); code != 0 {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
			if c.code == "" {
				a.coded(alone)
				wrappedRefused(t, a, ruleReportAmbiguity)
			}
		})
	}
}

// TestWrappedWithoutKernel: where kernel lines can be missing, nothing follows from one that is not there.
func TestWrappedWithoutKernel(t *testing.T) {
	a := wrappedRun(t)
	a.exchanging("198.18.0.9")
	a[bundle.HealthName] = strings.NewReplacer(`"kernel_layer":"complete"`, `"kernel_layer":"partial_ringbuf_drops"`, `"ringbuf_drops":0`, `"ringbuf_drops":1`, "ringbuf_drops=0", "ringbuf_drops=1",
		`"s2_blind_spots`, `"s2_kernel_loss: dropped=1","s2_drops: connect=1","s2_blind_spots`).Replace(a[bundle.HealthName])
	a.coded(schemas.AmbiguityKernelLost)
	if code, out, errs := call(a.digest(t).tar(t)); code != 0 {
		t.Errorf("some are lost: exit %d: %s%s", code, out, errs)
	}
	a = wrappedRun(t)
	a.exchanging("198.18.0.9")
	program := `.kind == "connect"`
	note := schemas.NoteDrop.Format(program, schemas.DropDigest(program), uint64(1))
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `"]}`, `",`+string(schemas.AppendQuote(nil, []byte(note)))+`]}`, 1)
	if code, out, errs := call(a.digest(t).tar(t)); code != 0 {
		t.Errorf("some are left out: exit %d: %s%s", code, out, errs)
	}
}

package page

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// names are what an attacker can call a file, a tool or a call.
var names = []string{
	"/<script>document.title='ran'</script>", "/</script><script>document.title='ran'</script>", "/<!--<script>", "/-->", "/]]>",
	`/" onmouseover="document.title='ran'" x="`, "/' autofocus onfocus='document.title=1'", "/<img src=//example.org/x onerror=document.title=1>",
	"/\x1b[31mred\x1b]0;title\a", "/\u202egnp.exe", "/\u2066a\u2069", "/line\u2028line\u2029line", "/a\nb\r\nc\td", "/\xff\xfe\x9b", "/\u200b\ufeff",
	"/{{.Title}}", "/{{template \"group\"}}", "/${document.title=1}", "/&lt;b&gt;&amp;", "/javascript:document.title=1", "/</style><b>", "/</title>",
	"/" + strings.Repeat("x", 3998) + "<b>", "/\u00a0 \u3000two  spaces ", "__proto__", "unix:@\x00<b>", "/__proto__/constructor",
}

// hostile is a page in which each text is one of these names.
func hostile() *Page {
	d := NewData()
	var rows []Row
	var facts []Fact
	var all []string
	for i, name := range names {
		s := schemas.Text(name)
		all = append(all, s)
		rows, facts = append(rows, Row{s, i}), append(facts, Fact{s, s, ""})
		a := acts.Act{Seq: uint64(i), Group: acts.Wrote, Outcome: schemas.ActDone, Process: acts.Process{PID: uint32(i + 1)}, ToolCalls: []string{s}}
		d.Add(&a, i, Words{s, s, s, s})
		d.Pair(&d.Surface, s, s)
		d.Pair(&d.Filtered, s, s)
	}
	group := []Group{{Name: all[0], Count: all[1], Rows: rows, Rest: rows, More: all[2]}}
	p := &Page{Title: all[0], Kind: "good", Verdict: all[1], Command: strings.Join(all[:8], " "), Size: all[2], Health: facts, Facts: facts,
		Notes: all, AllNotes: all, Claims: all, NonClaim: all, Filter: all[5], Summary: group, Order: all[4], Foot: all[7], Data: d}
	for i, s := range all {
		p.Alerts = append(p.Alerts, Alert{i, s, s})
		p.Calls = append(p.Calls, Call{Number: i, ID: s, Tool: s, Asked: all[i : i+1], SDK: s, Policy: s, Kernel: s, Effects: all[i : i+1], MoreEffects: s, But: all[:2], Listed: true})
		p.Tree = append(p.Tree, Process{Index: i, PID: uint32(i + 1), Depth: min(i, MaxDepth), Below: uint32(i), Programs: []string{s, s}, Count: s, Groups: group[:min(1, max(0, 1-i))]})
	}
	t := &Timeline{}
	t.Name(schemas.LayerPolicy, 1, all[1])
	t.Take(&schemas.TimeEvent{Type: schemas.TimeAnchor, WallNS: 1e18, FinishedNS: 1e9}, d)
	t.Take(&schemas.TimeEvent{Layer: schemas.LayerPolicy, Line: 1, NS: 5e8}, d)
	for i := range names {
		t.Take(&schemas.TimeEvent{Layer: schemas.LayerKernel, Line: uint64(i), NS: uint64(i) * 1e7}, d)
	}
	t.Finish(d, func(i int) string { return all[i] })
	p.Timeline = t
	return p
}

// TestHostile: names stay text wherever they stand on the page. The golden file is what a person read.
func TestHostile(t *testing.T) {
	var b, again bytes.Buffer
	testkit.Must(t, hostile().Write(&b))
	testkit.Must(t, hostile().Write(&again))
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same page has other bytes")
	}
	text := b.String()
	if at := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && !unicode.IsPrint(r) || r == '\u202e' || r == unicode.ReplacementChar
	}); at >= 0 {
		t.Errorf("raw: %q", text[at:min(len(text), at+40)])
	}
	// Of what could run or load something, the page has only what it is made of.
	for what, want := range map[string]int{`<script[ >]`: 2, `</script`: 2, `<style`: 1, `</style`: 1, `<title`: 1, `</title`: 1, `<meta`: 5, `<!--`: 0, `<(img|link|iframe|object|embed|base|form|a href="[^#])`: 0,
		`<[^>]* on[a-z]+=`: 0, `<[^>]* src=`: 0, `https?://`: 0, `url\(`: 0, `innerHTML|insertAdjacent|document\.write|eval\(`: 0} {
		if got := len(regexp.MustCompile(`(?i)`+what).FindAllString(notText(text), -1)); got != want {
			t.Errorf("%s is there %d times, not %d", what, got, want)
		}
	}
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(text)[1]
	var parsed struct {
		Strings []string
		Rows    [][]int64
	}
	if err := json.Unmarshal([]byte(data), &parsed); err != nil || len(parsed.Rows) != len(names) || strings.ContainsAny(data, "<>&") {
		t.Errorf("the data are not plain JSON: %v, %d rows", err, len(parsed.Rows))
	}
	testkit.Golden(t, "testdata/hostile.html", []byte(strings.Replace(strings.Replace(text, script, "…", 1), style, "…", 1)))
}

// notText leaves out texts between quotes of attributes, which are escaped.
func notText(s string) string {
	return regexp.MustCompile(`(data-call|aria-label)="[^"]*"`).ReplaceAllString(s, "")
}

// TestBounds: what is beyond the bounds is counted.
func TestBounds(t *testing.T) {
	d := NewData()
	long := strings.Repeat("x", maxName-10)
	n := maxBytes/len(long) + 10
	for i := range n {
		d.Add(&acts.Act{Seq: uint64(i)}, 0, Words{Names: long + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))})
	}
	if d.Left == 0 || d.Left+uint64(d.Rows()) != uint64(n) {
		t.Errorf("%d of %d are left out, %d are there", d.Left, n, d.Rows())
	}
	d = NewData()
	for range MaxRows + 3 {
		d.Add(&acts.Act{}, 0, Words{})
	}
	for range MaxPairs + 2 {
		d.Pair(&d.Surface, "a", "b")
	}
	if d.Left != 3 || d.Surface.Left != 2 || d.Rows() != MaxRows {
		t.Errorf("%d rows, %d left; %d pairs left", d.Rows(), d.Left, d.Surface.Left)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// hostile are names that would be more than a name somewhere.
var hostile = []string{
	"/a`b``@all```#1", "/<b>x</b><img src=//evil>&amp;</details>", "/[click](http://evil) {0}", "/\x1b[31m\x9b", "/\u202egnp.exe\u2066", "/a\nb\r\n- **x**", "/]]><x>",
	"/' --write-lock 'x", "<workspace>/../etc", "/" + strings.Repeat("`@", 2000), "/" + strings.Repeat("Ω", 2000), "@all", "|a|b|", "::error::x",
}

func hostileComparison(t *testing.T, more int) (*comparison, *Options) {
	t.Helper()
	f, err := fold.New(nil)
	testkit.Must(t, err)
	fill := func(names []string) *side {
		s := newSide()
		c := &collector{folds: f, to: s}
		for _, name := range names {
			text := schemas.Text(name)
			c.add(kindWrite, text, text, actor{text, text}, 1, 1)
			c.add(kindTool, text, "", actor{}, 0, 0)
			c.add(kindDecision, text, text, actor{}, 1, 0)
		}
		s.runs = []run{{Archive: schemas.Text(strings.Join(names, " "))}}
		s.finish()
		return s
	}
	names := hostile
	for i := range more {
		names = append(names, fmt.Sprintf("/%d%s", i, hostile[i%len(hostile)]))
	}
	opt := &Options{Folds: f, FailOn: schemas.CapabilityGroups[:]}
	c, err := compare(fill([]string{"/x"}), fill(names), opt.FailOn, func(*key, string) (string, error) { return "", nil })
	testkit.Must(t, err)
	return c, opt
}

func formOf(t *testing.T, c *comparison, opt *Options, name string) string {
	t.Helper()
	var b bytes.Buffer
	opt.Format = name
	testkit.Must(t, form(&b, c, opt))
	return b.String()
}

// spans takes the code spans and blocks out of a line of Markdown, as CommonMark finds them.
var backticks = regexp.MustCompile("`+")

func outsideSpans(line string) (rest string) {
	for {
		open := backticks.FindStringIndex(line)
		if open == nil {
			return rest + line
		}
		fence := line[open[0]:open[1]]
		rest, line = rest+line[:open[0]], line[open[1]:]
		end := -1
		for at, m := 0, []int(nil); ; at = m[1] {
			next := backticks.FindStringIndex(line[at:])
			if next == nil {
				break
			}
			if m = []int{at + next[0], at + next[1]}; line[m[0]:m[1]] == fence {
				end = m[1]
				break
			}
		}
		if end < 0 {
			return rest + fence + line
		}
		line = line[end:]
	}
}

// No name is more than a name in any form.
func TestHostileNames(t *testing.T) {
	c, opt := hostileComparison(t, 0)
	for _, name := range []string{formatText, formatMarkdown, formatSARIF, formatJUnit, formatJSON} {
		text := formOf(t, c, opt, name)
		if strings.ContainsAny(text, "\x1b\u009b\u202e\u2066\r") || !utf8.ValidString(text) {
			t.Errorf("%s has characters that a terminal or a browser acts on", name)
		}
	}
	for _, name := range []string{formatSARIF, formatJSON} {
		if !json.Valid([]byte(formOf(t, c, opt, name))) {
			t.Errorf("%s is not JSON", name)
		}
	}
	d := xml.NewDecoder(strings.NewReader(formOf(t, c, opt, formatJUnit)))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "x" {
			t.Error("a name is an element of XML")
		}
	}
	fenced := ""
	for line := range strings.Lines(formOf(t, c, opt, formatMarkdown)) {
		line = strings.TrimSuffix(line, "\n")
		if fence := strings.TrimRight(line, "yaml"); len(fence) >= 3 && strings.Trim(fence, "`") == "" {
			if fenced == "" {
				fenced = fence
			} else if fence == fenced {
				fenced = ""
			}
			continue
		}
		if fenced == "" && regexp.MustCompile(`@|evil|<b>|<img|\*\*x|:error:|#1`).MatchString(outsideSpans(line)) {
			t.Errorf("a name is not in a code span: %.300s", line)
		}
	}
	if fenced != "" {
		t.Error("a block has no end")
	}
}

// A comment is never longer than GitHub takes; what does not fit is counted.
func TestLongComment(t *testing.T) {
	for n := 200; n < 3000; n += 97 { // the lists end at other places
		c, opt := hostileComparison(t, n)
		text := formOf(t, c, opt, formatMarkdown)
		if n := utf8.RuneCountInString(text); n > maxComment || !strings.Contains(text, " more, see the report") || !strings.Contains(text, "The records") {
			t.Errorf("%d characters", n)
		}
	}
}

// What JUnit leaves out is counted.
func TestLongCase(t *testing.T) {
	c, opt := hostileComparison(t, 3000)
	for _, group := range []string{schemas.GroupOutside, schemas.GroupTool} {
		list := c.ofGroup(group)
		text := listed(list)
		m := regexp.MustCompile(`; and ([0-9]+) more, see the report$`).FindStringSubmatch(text)
		if m == nil || utf8.RuneCountInString(text) > junit.MaxText {
			t.Fatalf("%s: %d characters, which end with %.100q", group, utf8.RuneCountInString(text), text[max(0, len(text)-100):])
		}
		if said, _ := strconv.Atoi(m[1]); said+strings.Count(text, "new: ") != len(list) {
			t.Errorf("%s: %d changes are shown, and %d are said to be more, of %d", group, strings.Count(text, "new: "), said, len(list))
		}
		if out := formOf(t, c, opt, formatJUnit); !strings.Contains(out, fmt.Sprintf("%d changes, the first: ", len(list))) {
			t.Errorf("%s: no count of %d changes", group, len(list))
		}
	}
}

// A lock file has each item on a line, and gives the items back.
func TestLockOfHostileNames(t *testing.T) {
	c, opt := hostileComparison(t, 0)
	name := t.TempDir() + "/lock.json"
	testkit.Must(t, c.fresh.save(name, opt.Folds.Names()))
	s, err := readLock(name)
	testkit.Must(t, err)
	if b := testkit.Read(t, name); !json.Valid(b) || bytes.ContainsAny(b, "\x1b\u202e\r") || s.items.count != c.fresh.items.count {
		t.Errorf("%d items of %d in %s", s.items.count, c.fresh.items.count, b)
	}
	for k := range c.fresh.items.all() {
		if s.items.get(k.key) == nil {
			t.Errorf("%q is lost", k.value)
		}
	}
}

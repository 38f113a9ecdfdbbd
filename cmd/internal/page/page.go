// Package page writes the page of runner-show --html: one HTML file about one run, that needs
// nothing else. The browser loads nothing and runs only the one script whose digest is in
// the page's own policy.
//
// Everything that came from the run is made printable and then escaped, all in one place for the
// texts (html/template and the function t of its templates) and one for the data (Data). The data are JSON
// in an element that no browser executes; the script makes text nodes of them and never HTML.
package page

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"html/template"
	"io"
	"sync"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// Head is how every page begins.
const Head = "<!DOCTYPE html>\n<html lang=\"en\" data-made-by=\"runner-show\">\n"

// Lengths of texts, in characters. The tables of the page have names up to maxName, the folded
// parts less.
const (
	maxText  = 4000
	maxShown = 300
	maxName  = 16 << 10
)

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed page.html
var body string

// bodyTemplate is parsed when a page is first written: most calls write none.
var bodyTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("body").Funcs(template.FuncMap{
		"t":     func(s string) string { return verdict.Printable(s, maxText) },
		"short": func(s string) string { return shorten(s, maxShown) },
	}).Parse(body))
})

// Page is what a page says. Its texts may hold anything.
type Page struct {
	Title      string
	Kind       string // of the verdict: good, warn or bad
	Verdict    string // in a few words
	Command    string
	Size       string
	Alerts     []Alert // contradictions about tool calls
	MoreAlerts int
	Health     []Fact   // how well the run was observed
	Facts      []Fact   // which record this is
	Notes      []string // that an ordinary run does not have
	AllNotes   []string
	Claims     []string
	NonClaim   []string
	Filter     string // the flags that chose the operations; "" is all
	Summary    []Group
	Calls      []Call
	MoreCall   int
	InDoubt    []string // what the report says of no single call: ambiguities, and notes
	Noted      []string
	Order      string // what the order of the processes is
	Tree       []Process
	MoreTree   int // processes that have no place in the tree
	Timeline   *Timeline
	Data       *Data
	Foot       string
}

// Alert is a contradiction about a tool call.
type Alert struct {
	Call  int // the number of the call on the page
	ID    string
	Words string
}

// Fact is a line of a table of two columns.
type Fact struct {
	Key, Value string
	Kind       string // "", good, warn or bad
}

// MaxDepth is how far the tree is indented.
const MaxDepth = 6

// Process is one process of the tree.
type Process struct {
	Index    int // in the data
	PID      uint32
	Depth    int    // in the fork tree, at most MaxDepth
	Below    uint32 // the nearest process above that is on the page; 0 is none, or not known
	Programs []string
	More     int    // programs beyond these
	Count    string // operations
	Refused  uint64
	Failed   uint64
	Groups   []Group
}

// Group is what a process did of one kind: a fold of names.
type Group struct {
	Name, Count string
	Kind        string // as of a Fact
	Rows        []Row
	Rest        []Row // shown when they are unfolded
	More        string
}

// Row is a name, or a folder with many.
type Row struct {
	Name  string
	Names int
}

// Call is a tool call as the three layers have it.
type Call struct {
	Number              int
	ID, Tool            string
	Asked               []string // what it named
	SDK, Policy, Kernel string
	Kind                string // of the policy's decision, as of a Fact
	Effects             []string
	MoreEffects         string
	But, Notes          []string
	Listed              bool // operations of the data are listed for it
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	d := &writer{w: w}
	d.text(Head, "<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"", policy(), "\">\n")
	d.text("<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	d.text("<meta name=\"color-scheme\" content=\"light dark\">\n<title>", template.HTMLEscapeString(shorten(p.Title, maxShown)), "</title>\n<style>", style, "</style>\n</head>\n<body>\n")
	if d.err == nil {
		d.err = bodyTemplate().Execute(w, p)
	}
	d.text("<script type=\"application/json\" id=\"data\">")
	if d.err == nil {
		d.err = p.Data.write(w)
	}
	d.text("</script>\n<script>", script, "</script>\n</body>\n</html>\n")
	return d.err
}

// policy lets the browser do what the page needs and nothing else: its style and script are
// known by their digests, and no text can become HTML.
func policy() string {
	return "default-src 'none'; script-src 'sha256-" + digest(script) + "'; style-src 'sha256-" + digest(style) +
		"'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// writer keeps the first error.
type writer struct {
	w   io.Writer
	err error
}

func (d *writer) text(parts ...string) {
	for _, s := range parts {
		if d.err == nil {
			_, d.err = io.WriteString(d.w, s)
		}
	}
}

// shorten makes a name printable and takes out of its middle what is too much.
func shorten(name string, most int) string {
	r := []rune(verdict.Printable(name, maxName))
	if len(r) <= most {
		return string(r)
	}
	head := most / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}

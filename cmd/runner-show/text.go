package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// Styles of a terminal.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	amber = "\x1b[33m"
	plain = "\x1b[0m"
)

// maxShownName is the length of a name on a screen, in characters. --list and --json have all of it.
const maxShownName = 4096

// printer writes lines of at most width columns.
type printer struct {
	w     io.Writer
	color bool
	width int // 0 is no limit
}

// paint gives a text a style where colours are wanted.
func (p *printer) paint(style, text string) string {
	if !p.color || text == "" {
		return text
	}
	return style + text + plain
}

func (p *printer) line(format string, a ...any) { fmt.Fprintf(p.w, format+"\n", a...) }

// columns is the number of columns of a text that Printable made, about.
func columns(s string) int { return utf8.RuneCountInString(s) }

// shorten makes a name printable and takes out of its middle what does not fit.
func shorten(name string, limit int) string {
	s := verdict.Printable(name, maxShownName)
	n := columns(s)
	switch {
	case limit <= 0 || n <= limit:
		return s
	case limit == 1:
		return "…"
	}
	r := []rune(s)
	head := max(1, limit/3)
	return string(r[:head]) + "…" + string(r[n-(limit-head-1):])
}

// shortenAll makes each name short. Names that would look the same begin at their last part.
func shortenAll(names []string, limit int) []string {
	short, seen := make([]string, len(names)), map[string]int{}
	for i, name := range names {
		short[i] = shorten(name, limit)
		seen[short[i]]++
	}
	for i, name := range names {
		if cut := strings.LastIndexByte(strings.TrimRight(name, "/"), '/'); seen[short[i]] > 1 && cut > 0 && limit > 1 {
			short[i] = "…" + shorten(name[cut:], limit-1)
		}
	}
	return short
}

// single is the name of a row that stands for one name. A number after a space would read as a count of names.
func single(name string) string {
	digits := strings.TrimRight(name, "0123456789")
	if before, ok := strings.CutSuffix(digits, " "); ok && digits != name {
		return before + `\x20` + name[len(digits):]
	}
	return name
}

// items writes a title and items after it, as many on a line as fit. Lines after the first are
// indented to the first item.
func (p *printer) items(indent int, title, style string, items []string) {
	p.wrap(indent, title, style, "  ", items)
}

// prose is items for a text.
func (p *printer) prose(title, style, text string) {
	p.wrap(0, title, style, " ", strings.Fields(text))
}

func (p *printer) wrap(indent int, title, style, between string, items []string) {
	at := indent + columns(title)
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", indent) + p.paint(style, title))
	used := at
	for i, item := range items {
		item = shorten(item, max(0, p.width-at))
		switch n := len(between) + columns(item); {
		case i == 0:
		case p.width > 0 && used+n > p.width:
			p.line("%s", b.String())
			b.Reset()
			b.WriteString(strings.Repeat(" ", at))
			used = at
		default:
			b.WriteString(between)
			used += len(between)
		}
		b.WriteString(item)
		used += columns(item)
	}
	p.line("%s", strings.TrimRight(b.String(), " "))
}

// moreItem is as long as what stands for items that do not fit.
const moreItem = "  +99999 more"

// fits is how many of the items fit on one line of so many columns, with more after them.
func fits(items []string, columnsLeft int) int {
	used := 0
	for i, item := range items {
		used += columns(item) + 2
		if used > columnsLeft+2 || i < len(items)-1 && used+len(moreItem) > columnsLeft+2 {
			return i
		}
	}
	return len(items)
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "ss"); ok {
		return fmt.Sprintf("%d %ssses", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

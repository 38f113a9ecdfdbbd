package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// wrapped is what wrappers recorded, as the first screen has it: how the workspace differs, and what was asked of the network.
type wrapped struct {
	changes   map[string]*told // by what became of the names
	exchanges map[string]*told // by what became of them
	intents   map[string]*told // by their types
}

// told is how many there are of one kind, and the first of them.
type told struct {
	n     uint64
	first []string
}

// maxTold bounds what is kept of one kind.
const maxTold = 64

func (w *wrapped) add(to *map[string]*told, kind, text string) {
	if *to == nil {
		*to = map[string]*told{}
	}
	t := (*to)[kind]
	if t == nil {
		t = new(told)
		(*to)[kind] = t
	}
	if t.n++; len(t.first) < maxTold {
		t.first = append(t.first, verdict.Printable(text, maxShownName))
	}
}

// line takes in a line of the archive.
func (w *wrapped) line(l *archive.Line) {
	switch e := l.Event.(type) {
	case *schemas.FileChange:
		w.add(&w.changes, e.Op, e.Path)
	case *schemas.NetExchange:
		text := e.Method + " " + exchange.URL(e)
		if e.Method == "" {
			text = exchange.URL(e)
		}
		if e.Status != 0 {
			text += " " + strconv.Itoa(int(e.Status))
		}
		if e.Failure != "" {
			text += " " + e.Failure
		}
		w.add(&w.exchanges, e.Decision, text)
	case *schemas.Intent:
		kind := e.IntentType
		if len(w.intents) == maxTold && w.intents[kind] == nil {
			kind = otherIntents
		}
		w.add(&w.intents, kind, intentWords(e))
	}
}

// otherIntents stands for the types for which there is no line of their own. No type is such a word.
const otherIntents = "of other types"

// intentWords says what an intent asks for.
func intentWords(i *schemas.Intent) string {
	if f, err := i.FileWrite(); err == nil {
		return f.Path
	}
	if r, err := i.HTTPRequest(); err == nil {
		return r.Method + " " + r.URL
	}
	return string(i.Payload)
}

// Words for what wrappers recorded.
var (
	changeWords   = map[string]string{schemas.ChangeAdd: "added", schemas.ChangeDelete: "removed", schemas.ChangeModify: "changed", schemas.ChangeReplace: "replaced", schemas.ChangeLink: "linked", schemas.ChangeMode: "modes of"}
	exchangeWords = map[string]string{schemas.NetAllow: "passed on", schemas.NetDeny: "refused", schemas.NetReplay: "answered from a recording", schemas.NetMiss: "not in the recording"}
)

// behind writes what is different in the workspace, what went by, and what the command asks for, each kind on a line.
func (s *screen) behind() {
	w := &s.m.wrapped
	for _, op := range schemas.FileChanges {
		s.told("workspace  ", changeWords[op], w.changes[op])
	}
	for _, d := range schemas.NetDecisions {
		style := ""
		if d == schemas.NetDeny || d == schemas.NetMiss {
			style = red
		}
		s.toldIn("network    ", exchangeWords[d], w.exchanges[d], style)
	}
	for _, kind := range slices.Sorted(maps.Keys(w.intents)) {
		s.told("asks for   ", kind, w.intents[kind])
	}
	if len(w.changes)+len(w.exchanges)+len(w.intents) > 0 {
		s.line("")
	}
}

func (s *screen) told(title, word string, t *told) { s.toldIn(title, word, t, "") }

func (s *screen) toldIn(title, word string, t *told, style string) {
	if t == nil {
		return
	}
	if style == "" {
		style = bold
	}
	items := []string{fmt.Sprintf("%d %s", t.n, word)}
	for i, text := range t.first {
		if i == s.opt.Top {
			break
		}
		items = append(items, text)
	}
	if more := t.n - uint64(len(items)-1); more > 0 {
		items = append(items, fmt.Sprintf("… and %d more", more))
	}
	s.items(0, title, style, items)
}

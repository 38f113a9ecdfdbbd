package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// maxShownItem is the length of a program with its arguments, in characters. --json has all of it.
const maxShownItem = 1000

// maxShownRoot is the length of a root directory in the mark of a process: it must not push the rest out. --list has all of it.
const maxShownRoot = 24

// beforeMark is between a program and its mark, each of which is shortened alone. No printable text has it.
const beforeMark = "\n"

// where is who a process is and where its names lead.
type where struct {
	uid, gid  *uint32
	namespace uint32
	root      string
	unsure    []string // names of these that are not known
}

// contextOf is that of an act.
func contextOf(a *acts.Act) where {
	p := &a.Process
	return where{p.UID, p.GID, p.MountNamespace, p.Root, p.Unsure}
}

// mark says what is not as at the start of the run; "" is nothing, or that the record has no layer process.
func (w where) mark(layer *acts.Processes) string {
	if layer == nil || layer.Now == nil {
		return ""
	}
	if len(w.unsure) > 0 && w.uid == nil && w.gid == nil && w.namespace == 0 && w.root == "" && !slices.ContainsFunc(allUnsure, func(key string) bool { return !slices.Contains(w.unsure, key) }) {
		return "user and mounts not known"
	}
	var words []string
	id := func(key, word string, id *uint32, run uint32) {
		switch {
		case id != nil && *id != run:
			words = append(words, fmt.Sprintf("%s %d", word, *id))
		case slices.Contains(w.unsure, key):
			words = append(words, word+" not known")
		}
	}
	id(schemas.ActUID, "user", w.uid, layer.UID)
	id(schemas.ActGID, "group", w.gid, layer.GID)
	switch {
	case w.namespace > 0:
		words = append(words, fmt.Sprintf("mount namespace %d", w.namespace))
	case slices.Contains(w.unsure, schemas.ActNamespace):
		words = append(words, "mount namespace not known")
	}
	switch {
	case w.root == schemas.UnknownRoot || slices.Contains(w.unsure, schemas.ActRoot):
		words = append(words, "root not known")
	case w.root != "":
		words = append(words, "root "+quoted(w.root))
	}
	return strings.Join(words, ", ")
}

// allUnsure is what nobody reported.
var allUnsure = []string{schemas.ActUID, schemas.ActGID, schemas.ActNamespace, schemas.ActRoot}

// contextAt is that of a state.
func contextAt(s *schemas.ProcessState) where {
	w := where{uid: s.UID, gid: s.GID, namespace: s.MountNamespace, root: shorten(s.Root, maxShownRoot)}
	if s.UID == nil {
		w.unsure = allUnsure
	}
	return w
}

// history is what the layer process has of a process for people: its programs with their arguments, and
// who and where it was, where that is not as at the start of the run. Its texts are printable.
func history(layer *acts.Processes) (items []string) {
	last := ""
	states := layer.Now.States
	for i := range states {
		s := &states[i]
		mark := contextAt(s).mark(layer)
		item := ""
		switch {
		case s.By == schemas.StateExec:
			item = started(s)
			if mark != "" {
				item += beforeMark
			}
		case mark == last, i+1 < len(states) && states[i+1].By == schemas.StateExec && contextAt(&states[i+1]).mark(layer) == mark:
			continue // the program before or after it says so
		case mark == "":
			item = "(user and mounts of the run)"
		}
		if mark != "" {
			item += "(" + mark + ")"
		}
		last = mark
		items = append(items, item)
	}
	if n := layer.Now.StatesOmitted; n > 0 {
		items = append(items, "("+counted(n, "more state")+", which the record had no room for)")
	}
	return items
}

// started is a program with its arguments, as far as they were recorded.
func started(s *schemas.ProcessState) string {
	a := s.Arguments
	if s.File == "" && s.Script == "" {
		s = &schemas.ProcessState{File: schemas.UnknownRoot, Arguments: a}
	}
	words := []string{quoted(s.File)}
	if s.Script != "" {
		words[0] = quoted(s.Script)
	}
	if a == nil {
		return words[0]
	}
	args := a.Argv
	switch {
	case s.Script != "" && len(args) > 0:
		words = append(words, "started by") // the arguments begin with the interpreter
	case s.Script == "":
		if a.Name != "" && a.Name != path.Base(s.File) {
			words = append(words, "as", quoted(a.Name))
		}
		args = args[min(1, len(args)):]
	}
	size := 0
	for _, arg := range args {
		if size += len(arg); size > maxShownItem {
			break
		}
		words = append(words, quoted(arg))
	}
	if size > maxShownItem || len(a.Argv) > 0 && a.Unread > 0 {
		words = append(words, "…")
	}
	return verdict.Printable(strings.Join(words, " "), maxShownItem)
}

// quoted is a printable word; in quotes, if it is not a plain one. So no name can look like two words, or
// like what the screen says of it.
func quoted(word string) string {
	plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return strings.ContainsRune(" !\"#$&'()*;<>?[]\\^`{|}~…→", r)
	})
	word = verdict.Printable(word, maxShownItem)
	if plain && !strings.ContainsRune(word, '…') {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `\x27`) + "'"
}

// noExec says of a process that executed nothing what it ran; all is whether nothing was filtered.
func noExec(p *process, all bool) string {
	switch {
	case p.first != "" || p.number == 0 && len(p.programs)+p.more > 0:
		return ""
	case all || p.number > 0:
		return "(no exec: it ran its parent's program)"
	}
	return "(its parent's program)"
}

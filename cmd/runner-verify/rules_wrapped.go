package main

import (
	"cmp"
	"net/netip"
	slash "path"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/cmd/internal/wrapped"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules for what wrappers recorded: layers, documents below run/, and notes. rules_wrapped_blobs.go has those for blobs.

const (
	ruleWrappedLines     = "wrapped.lines"
	ruleWrappedDocuments = "wrapped.documents"
	ruleWrappedBlobs     = "wrapped.blobs"
)

// wrappedLayers is what is known of the layers and documents of wrappers.
type wrappedLayers struct {
	blobs
	documents []any // in archive order
	connects  wrapped.Set
	listed    bool // the archive has run/net.json

	tick     *schemas.ClockTick
	gaps     still.Gaps
	name     *schemas.NetName
	path     string
	changes  changes
	ops      map[string]uint64
	exchange *schemas.NetExchange
	modes    map[string]bool // decisions of exchanges
	ruled    bool            // one of them names a rule
	ports    map[uint16]bool
}

// expect looks in the manifest for what the kernel lines are compared with.
func (w *wrappedLayers) expect(m *schemas.Manifest) { _, w.listed = m.Files[schemas.MemberRunNet] }

func (w *wrappedLayers) document(value any) { w.documents = append(w.documents, value) }

func (w *wrappedLayers) kernel(e *schemas.KernelEvent) {
	if w.listed {
		w.connects.Add(e)
	}
}

// documentOf is the document of a type, nil if there is none.
func documentOf[T any](w *wrappedLayers) *T {
	for _, d := range w.documents {
		if x, ok := d.(*T); ok {
			return x
		}
	}
	return nil
}

// codes are the codes that follow from the documents, and from the connections. whole: the kernel lines are all there are.
func (w *wrappedLayers) codes(whole bool) []string {
	list := wrapped.Partial(w.documents)
	if n := documentOf[schemas.Net](w); n != nil {
		list = append(list, w.connects.Codes(n, whole)...)
	}
	return list
}

func (v *verifier) faultWrapped(l *archive.Line, format string, a ...any) {
	v.add(ruleWrappedLines, l.Member, l.Number, format, a...)
}

// texts checks that names are escapes of byte strings.
func (v *verifier) texts(l *archive.Line, list ...string) {
	for _, s := range list {
		if !schemas.IsText([]byte(s)) {
			v.faultWrapped(l, "%.200q is not the escape of any byte string", s)
		}
	}
}

// tickLine checks a line of the layer clock.
func (v *verifier) tickLine(l *archive.Line, t *schemas.ClockTick) {
	w := &v.wrapped
	if b := w.tick; b != nil && cmp.Or(cmp.Compare(b.Process, t.Process), cmp.Compare(b.Tick, t.Tick)) >= 0 {
		v.faultWrapped(l, "tick %d of %s is a repetition, or not in the order of processes and ticks", t.Tick, t.Process)
	}
	w.gaps.Add(t)
	w.tick = t
}

// nameLine checks a line of the layer dns.
func (v *verifier) nameLine(l *archive.Line, n *schemas.NetName) {
	w := &v.wrapped
	if b := w.name; b != nil && cmp.Or(cmp.Compare(b.Name, n.Name), cmp.Compare(b.Type, n.Type)) >= 0 {
		v.faultWrapped(l, "%.200q of type %.20q is a repetition, or not in byte order", n.Name, n.Type)
	}
	v.texts(l, n.Name)
	a, err := netip.ParseAddr(n.Answer)
	if n.Answer != "" && (n.Type != "A" || err != nil || a.String() != n.Answer || !told.Contains(a) && a != localhost) {
		v.faultWrapped(l, "the answer %.100q is none that runner-net gives", n.Answer)
	}
	w.name = n
}

// told has the addresses that names get, and localhost that of names below it.
var (
	told      = netip.MustParsePrefix("198.18.0.0/15")
	localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// untext is the name that a text stands for: names are in the order of their bytes, not of their texts. A text that is none is a
// fault of its own.
func untext(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	if b, err := schemas.Untext(s); err == nil {
		return string(b)
	}
	return s
}

// changeLine checks a line of the layer filesystem.
func (v *verifier) changeLine(l *archive.Line, c *schemas.FileChange) {
	w := &v.wrapped
	if w.ops == nil {
		w.ops = map[string]uint64{}
	} else if untext(c.Path) <= untext(w.path) {
		v.faultWrapped(l, "%.200q is a repetition, or not in byte order", c.Path)
	}
	if clean := slash.Clean(c.Path); clean != c.Path || slash.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		v.faultWrapped(l, "%.200q is no path below the workspace", c.Path)
	}
	w.ops[c.Op]++
	w.path = c.Path
	v.texts(l, c.Path)
	for i, s := range []*schemas.FileState{c.Before, c.After} {
		if s == nil {
			continue
		}
		v.texts(l, s.Target, s.Link, s.Unread)
		if s.Link != "" && untext(s.Link) >= untext(c.Path) {
			v.faultWrapped(l, "%.200q is a link to %.200q, which is not the first name of a file in byte order", c.Path, s.Link)
		}
		if s.SHA256 != "" {
			w.names(s.SHA256, *s.Size, i == 1 && (c.Op == schemas.ChangeAdd || c.Op == schemas.ChangeModify || c.Op == schemas.ChangeReplace))
		}
	}
	switch op := schemas.ChangeOf(c.Before, c.After); op {
	case c.Op:
	case "":
		v.faultWrapped(l, "%.200q is the same before and after", c.Path)
	default:
		v.faultWrapped(l, "%.200q has op %s, and before and after make it %s", c.Path, c.Op, op)
	}
	v.changeInTree(l, c)
}

// exchangeLine checks a line of the layer network.
func (v *verifier) exchangeLine(l *archive.Line, e *schemas.NetExchange) {
	w := &v.wrapped
	if b := w.exchange; b != nil && exchange.Compare(b, e) > 0 {
		v.faultWrapped(l, "the exchange with %.200q is not in the order of hosts, ports, schemes, paths, methods, queries and bodies", e.Host)
	}
	if w.modes == nil {
		w.modes, w.ports = map[string]bool{}, map[uint16]bool{}
	}
	w.modes[e.Decision], w.ports[e.Port], w.exchange = true, true, e
	w.ruled = w.ruled || e.Rule != ""
	w.connects.Recorded(e)
	v.texts(l, e.Host, e.Path, e.Query)
	for _, m := range []*schemas.NetMessage{&e.Request, e.Response} {
		if m == nil {
			continue
		}
		if m.SHA256 != "" {
			w.names(m.SHA256, m.Bytes, true)
		}
		for _, h := range slices.Concat(m.Headers, m.Trailers) {
			v.texts(l, h.Name, h.Value)
		}
	}
	if a, err := netip.ParseAddr(e.Address); err != nil || a.String() != e.Address {
		v.faultWrapped(l, "address is %.100q, expected an IP address", e.Address)
	}
	if http := e.Scheme != schemas.NetTCP; http && (e.Response != nil || e.Status != 0) && (e.Method == "" || e.Path == "" || e.Status == 0) {
		v.faultWrapped(l, "an answer without method, path or status")
	}
	if err := e.Plausible(); err != nil {
		v.faultWrapped(l, "%v", err)
	}
	switch {
	case e.Rule != "" && e.Decision == schemas.NetDeny:
		v.faultWrapped(l, "rule %.100q, but it was denied", e.Rule)
	case e.Decision == schemas.NetAllow && e.Rule == "":
		v.faultWrapped(l, "it was passed on, and no rule is named")
	case e.Response != nil && (e.Decision == schemas.NetDeny || e.Decision == schemas.NetMiss):
		v.faultWrapped(l, "a response of a server, but decision %s", e.Decision)
	}
}

// wrappedDocuments compares the documents with the layers and the notes.
func (v *verifier) wrappedDocuments() {
	w := &v.wrapped
	fault := func(member, format string, a ...any) { v.add(ruleWrappedDocuments, member, 0, format, a...) }
	want := map[*schemas.Note]string{}
	box, clock, net, env := documentOf[schemas.Box](w), documentOf[schemas.Clock](w), documentOf[schemas.Net](w), documentOf[schemas.RunEnv](w)
	note := func(n *schemas.Note, texts []string) {
		for _, text := range texts {
			if strings.HasPrefix(text, n.Code+":") {
				want[n] = strings.TrimPrefix(text, n.Code+":")
			}
		}
	}
	if box != nil {
		note(schemas.NoteBox, wrapped.Notes(box))
		boxDocument(box, fault)
		if box.Base == nil && w.changes.ofBase != "" {
			fault(schemas.MemberChanges, "the workspace was empty, and %.200q was there before, or is in a directory that nothing made", w.changes.ofBase)
		}
		if w.changes.unread > box.Unread {
			fault(schemas.MemberRunBox, "unread is %d, the layer has %d names that are not known in full", box.Unread, w.changes.unread)
		}
		for _, op := range schemas.FileChanges {
			if box.Changes[op] != w.ops[op] {
				fault(schemas.MemberRunBox, "changes.%s is %d, the layer has %d", op, box.Changes[op], w.ops[op])
			}
		}
	}
	if clock != nil {
		if !slices.IsSorted(clock.Runtimes) || len(slices.Compact(slices.Clone(clock.Runtimes))) != len(clock.Runtimes) {
			fault(schemas.MemberRunClock, "runtimes are not sorted, or one is there twice")
		}
		note(schemas.NoteClock, []string{wrapped.ClockNote(clock, v.lineCount(schemas.MemberClock))})
		if lost, unended := w.gaps.Sum(); lost != clock.Lost || unended > clock.Unended {
			fault(schemas.MemberRunClock, "lost is %d and unended %d, the layer says %d and at least %d", clock.Lost, clock.Unended, lost, unended)
		}
	}
	if net != nil {
		note(schemas.NoteNames, wrapped.Notes(net))
		note(schemas.NoteExchanges, wrapped.Notes(net))
		if n := v.lineCount(schemas.MemberExchanges); net.Exchanges != n {
			fault(schemas.MemberRunNet, "exchanges is %d, the layer has %d", net.Exchanges, n)
		}
		if n := v.lineCount(schemas.MemberNames); net.Names != n {
			fault(schemas.MemberRunNet, "names is %d, the layer has %d", net.Names, n)
		}
		v.netMode(net, fault)
	}
	if env != nil {
		v.environmentDocument(env, fault)
	}
	for member, there := range map[string]bool{schemas.MemberChanges: box != nil, schemas.MemberClock: clock != nil, schemas.MemberNames: net != nil, schemas.MemberExchanges: net != nil} {
		if _, has := v.members[member]; has && !there {
			fault(member, "the layer without its document below run/")
		} else if has && v.lineCount(member) == 0 {
			fault(member, "the member has no line: then it is left out")
		}
	}
	for _, n := range []*schemas.Note{schemas.NoteBox, schemas.NoteClock, schemas.NoteNames, schemas.NoteExchanges} {
		text, needed := want[n]
		switch got := v.noteTexts(n); {
		case needed && (len(got) != 1 || strings.TrimSpace(got[0]) != strings.TrimSpace(text)):
			v.faultHealth(ruleWrappedDocuments, "note %s is %q, the documents say %q", n.Code, got, strings.TrimSpace(text))
		case !needed && len(got) > 0:
			v.faultHealth(ruleWrappedDocuments, "note %s without its document below run/", n.Code)
		}
	}
}

// behind reports whether a command line ends with a command, and names these wrappers before it, in their order.
func behind(whole, wrappers, command []string) bool {
	n := len(whole) - len(command)
	if n < 0 || !slices.Equal(whole[n:], command) {
		return false
	}
	before := whole[:n]
	for _, w := range wrappers {
		i := slices.IndexFunc(before, func(word string) bool { return slash.Base(word) == w })
		if i < 0 {
			return false
		}
		before = before[i+1:]
	}
	return true
}

// boxDocument checks what a box is always.
func boxDocument(b *schemas.Box, fault func(string, string, ...any)) {
	want := []string{"mount", "pid", "ipc", "uts"}
	if b.Rootless {
		want = append(want, "user")
	}
	if !slices.Equal(b.Namespaces, want) {
		fault(schemas.MemberRunBox, "namespaces are %q, expected %q", b.Namespaces, want)
	}
	for i, dir := range b.Fresh {
		if !slash.IsAbs(dir) || slash.Clean(dir) != dir || i > 0 && b.Fresh[i-1] >= dir {
			fault(schemas.MemberRunBox, "fresh has %.100q, expected absolute paths in byte order, each once", dir)
		}
	}
	if b.Base != nil && (b.Base.Kind == schemas.BaseTar) != (b.Workspace == schemas.WorkspaceUnpacked) {
		fault(schemas.MemberRunBox, "workspace is %s, which is not what is made of a base of kind %s", b.Workspace, b.Base.Kind)
	}
}

// netMode checks that the decisions and ports of the exchanges are those of the mode.
func (v *verifier) netMode(n *schemas.Net, fault func(string, string, ...any)) {
	allowed := map[string][]string{schemas.NetModeRecord: {schemas.NetAllow, schemas.NetDeny}, schemas.NetModeDeny: {schemas.NetDeny},
		schemas.NetModeReplay: {schemas.NetReplay, schemas.NetMiss, schemas.NetDeny}}[n.Mode]
	if !slices.IsSorted(n.Ports) || !slices.IsSorted(n.Headers) {
		fault(schemas.MemberRunNet, "ports or match_headers are not sorted")
	}
	if n.Mode == schemas.NetModeRecord && n.Rules == "" && v.wrapped.ruled {
		fault(schemas.MemberRunNet, "an exchange names a rule, and there was no file of rules")
	}
	for d := range v.wrapped.modes {
		if !slices.Contains(allowed, d) {
			fault(schemas.MemberRunNet, "mode is %s, but an exchange has decision %s", n.Mode, d)
		}
	}
	for p := range v.wrapped.ports {
		if !slices.Contains(n.Ports, p) {
			fault(schemas.MemberRunNet, "an exchange has port %d, where nothing listened", p)
		}
	}
}

// environmentDocument compares the document with the output and the other documents.
func (v *verifier) environmentDocument(e *schemas.RunEnv, fault func(string, string, ...any)) {
	for member, want := range map[string]schemas.RunBytes{schemas.MemberStdout: e.Stdout, schemas.MemberStderr: e.Stderr} {
		got, there := v.members[member]
		switch {
		case !there:
			fault(member, "the member is missing, %s says %d bytes", schemas.MemberRunEnv, want.Bytes)
		case uint64(got.Size) != want.Bytes || got.SHA256 != want.SHA256:
			fault(member, "%d bytes with %s, %s says %d with %s", got.Size, got.SHA256, schemas.MemberRunEnv, want.Bytes, want.SHA256)
		}
	}
	if !slices.IsSortedFunc(e.Env, func(a, b schemas.EnvVar) int { return cmp.Compare(a.Name, b.Name) }) {
		fault(schemas.MemberRunEnv, "env is not sorted by name")
	}
	for wrapper, there := range map[string]bool{schemas.StageBox: documentOf[schemas.Box](&v.wrapped) != nil, schemas.StageClock: documentOf[schemas.Clock](&v.wrapped) != nil, schemas.StageNet: documentOf[schemas.Net](&v.wrapped) != nil} {
		if slices.Contains(e.Wrappers, wrapper) != there {
			fault(schemas.MemberRunEnv, "wrappers are %q, and the document of %s is there: %v", e.Wrappers, wrapper, there)
		}
	}
	if s := v.events.started; s != nil && !behind(s.Command, e.Wrappers, e.Command) {
		fault(schemas.MemberRunEnv, "command is not the end of what was started, behind %q", e.Wrappers)
	}
	switch empty := schemas.DigestOf(""); {
	case e.Stdin.Bytes > 0:
		v.wrapped.names(e.Stdin.SHA256, e.Stdin.Bytes, true)
	case e.Stdin.SHA256 != empty:
		fault(schemas.MemberRunEnv, "stdin is empty, and its digest is not %s", empty)
	}
	v.policyFile(e.Policy, fault)
}

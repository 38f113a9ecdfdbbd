package verdict

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Lengths of what the texts show, in characters. The report has everything.
const (
	maxShownCommand = 200
	maxShownNote    = 600
	maxShownName    = 120
	maxShownEffect  = 300
	maxShownText    = 4000
)

// WriteRecord writes which record the report of a valid archive is about.
func WriteRecord(w io.Writer, r *Report) {
	rec := r.Record
	fmt.Fprintf(w, "%s: valid\n", Printable(r.Archive, maxShownCommand))
	fmt.Fprintf(w, "identity  %s\n", r.Identity)
	if r.IdentityWithoutTimes != "" {
		fmt.Fprintf(w, "          %s without times\n", r.IdentityWithoutTimes)
	}
	fmt.Fprintf(w, "origin    %s\n", originWords[rec.Origin])
	fmt.Fprintf(w, "run       %s: %s\n", r.RunID, Ending(rec))
	fmt.Fprintf(w, "record    kernel=%s drops=%d cgroup=%s policy=%s sdk=%s correlation=%s\n", rec.KernelLayer,
		rec.RingbufDrops, rec.CgroupCorrelation, rec.PolicyLayer, rec.SDKLayer, rec.Correlation)
	var sizes []string
	for _, set := range schemas.SurfaceSets {
		sizes = append(sizes, counted(rec.Surface[set], setWords(set)))
	}
	fmt.Fprintf(w, "surface   %s\n", strings.Join(sizes, ", "))
	fmt.Fprintf(w, "network   coverage %s, claim scope %s\n", rec.NetworkCoverage, rec.EndpointScope)
}

// originWords say by which rules an archive was checked.
var originWords = map[string]string{
	schemas.OriginRunner:   schemas.OriginRunner + ": it has this runner's marks, and all its rules hold",
	schemas.OriginContract: schemas.OriginContract + ": another implementation's marks, so only the rules of the v0 contract hold",
}

// Ending says in a few words what was run and how it ended.
func Ending(rec *Record) string {
	if len(rec.Command) == 0 {
		return "an existing cgroup, " + captureEnd(rec)
	}
	what := Printable(strings.Join(rec.Command, " "), maxShownCommand)
	switch {
	case rec.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", what, *rec.ExitCode)
	case rec.Signal != nil:
		return fmt.Sprintf("%s, killed by signal %d", what, *rec.Signal)
	}
	return what + ", end not seen"
}

// captureEnd says how the capture of a cgroup ended, which has no exit code. This runner's notes say so if a signal ended it; without
// that note it ended as the cgroup was empty. The notes of others say neither.
func captureEnd(rec *Record) string {
	says := func(n *schemas.Note) bool {
		return slices.ContainsFunc(rec.Notes, func(note string) bool { return strings.HasPrefix(note, n.Code+":") })
	}
	switch {
	case rec.Origin != schemas.OriginRunner || !says(schemas.NoteKernel):
		return "end not seen"
	case says(schemas.NoteEnd):
		return "seen until a signal ended the capture"
	}
	return "seen until it was empty"
}

// WriteExplanation writes a report's explanation for people, if it has one. Names come
// from the measured program, so each one goes through Printable.
func WriteExplanation(w io.Writer, r *Report) {
	x := r.Explanation
	if x == nil {
		return
	}
	writeSurface(w, r)
	for i := range x.Refusals {
		writeRefusals(w, &x.Refusals[i])
	}
	WriteCalls(w, r)
	list(w, "All kernel events:", classWords(x.KernelClasses))
	var rest []string
	for _, entry := range x.Ambiguities {
		rest = append(rest, InWords(entry))
	}
	list(w, "About no tool call:", rest)
	rest = nil
	for _, entry := range x.Notes {
		rest = append(rest, InWords(entry))
	}
	list(w, "Worth knowing, and nothing in doubt:", rest)
	if x.AllowedClaim != "" {
		list(w, "This is claimed about each tool call that the policy decided:", []string{x.AllowedClaim})
	}
	list(w, "This is never claimed:", []string{x.ForbiddenClaim})
	list(w, "What was not seen, and other notes of the observation:", r.Record.Notes)
}

// WriteCalls writes what each layer says of every tool call. The report must have an
// explanation.
func WriteCalls(w io.Writer, r *Report) {
	calls := r.Explanation.Calls
	for i := range calls {
		writeCall(w, i+1, len(calls), &calls[i], r.Record)
	}
	if len(calls) == 0 {
		fmt.Fprintln(w, "No tool call: neither the policy nor the SDK reports one.")
	}
}

// writeSurface writes the values of the capability surface, set by set.
func writeSurface(w io.Writer, r *Report) {
	if r.Explanation.Surface == nil {
		return
	}
	fmt.Fprintln(w, "Capability surface, each name once:")
	for _, set := range schemas.SurfaceSets {
		values, n := r.Explanation.Surface[set], r.Record.Surface[set]
		if n == 0 {
			fmt.Fprintf(w, "  no %ss\n", setWords(set))
			continue
		}
		fmt.Fprintf(w, "  %s:\n", counted(n, setWords(set)))
		for _, value := range values {
			fmt.Fprintf(w, "    %s\n", Printable(value, maxShownEffect))
		}
		if more := n - uint64(len(values)); more > 0 {
			fmt.Fprintf(w, "    … and %d more\n", more)
		}
	}
}

// writeRefusals writes what the rules of one kind refused. These names are in the surface,
// too: they were asked for.
func writeRefusals(w io.Writer, r *Refusals) {
	fmt.Fprintf(w, "Refused by the %s, %s (runner-policy --check prints the rules):\n", Printable(r.Rules, maxShownName), counted(r.Lines, "time"))
	left := r.Lines
	for i := range r.First {
		x := &r.First[i]
		left -= min(left, x.Lines)
		words := Printable(x.Value, maxShownEffect)
		if x.Rule != nil {
			words += ", " + RuleWords(*x.Rule, x.RuleID)
		}
		if x.Lines > 1 {
			words += ", " + counted(x.Lines, "time")
		}
		fmt.Fprintf(w, "  %s\n", words)
	}
	if left > 0 {
		fmt.Fprintf(w, "  … and other things, %s\n", counted(left, "time"))
	}
}

// RuleWords say which rule refused something: its id, or its number where that is all that the record has.
func RuleWords(number uint32, id string) string {
	switch {
	case id != "":
		return "by rule " + Printable(id, maxShownName)
	case number == 0:
		return "by default"
	}
	return fmt.Sprintf("by rule %d", number)
}

// setWords names one value of a set.
func setWords(set string) string {
	return strings.NewReplacer("_", " ", "mcp", "MCP").Replace(strings.TrimSuffix(set, "s"))
}

// classWords say how many kernel events are of which class, where that is known.
func classWords(c *KernelClasses) []string {
	if c == nil {
		return nil
	}
	words := fmt.Sprintf("%s in windows of calls, %d before a tool server's first call or of a proxy, %d of tool servers between calls, %d of all other processes",
		counted(c.Call, "kernel event"), c.Setup, c.Idle, c.Agent)
	if c.Request > 0 {
		words += fmt.Sprintf(", %d during requests that are no tool calls", c.Request)
	}
	return []string{words}
}

// list writes a list with a title and without a limit: an explanation has all calls,
// ambiguities and notes.
func list(w io.Writer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, s := range items {
		fmt.Fprintf(w, "  %s\n", Printable(s, maxShownText))
	}
}

// writeCall writes what the layers show about one call.
func writeCall(w io.Writer, n, of int, c *Call, rec *Record) {
	tool := ""
	switch {
	case c.Policy != nil:
		tool = c.Policy.Tool
	case c.SDK != nil:
		tool = c.SDK.Tool
	}
	fmt.Fprintf(w, "Tool call %d of %d: %s, %s\n", n, of, Printable(fmt.Sprintf("%q", c.ToolCallID), maxShownName), Printable(tool, maxShownName))
	fmt.Fprintf(w, "  SDK     %s\n", sdkWords(c, rec))
	writeAsked(w, c)
	fmt.Fprintf(w, "  policy  %s\n", policyWords(c.Policy, rec))
	fmt.Fprintf(w, "  kernel  %s\n", kernelWords(c, rec))
	if c.Kernel != nil {
		for _, e := range c.Kernel.Effects {
			fmt.Fprintf(w, "%s%s\n", effectMargin(c, e), Printable(e, maxShownEffect))
		}
		if c.Kernel.Cut {
			fmt.Fprintln(w, "            … and others, which the record does not name")
		}
	}
	for _, entry := range c.Ambiguities {
		fmt.Fprintf(w, "  but     %s\n", Printable(InWords(entry), maxShownNote))
	}
	for _, entry := range c.Notes {
		fmt.Fprintf(w, "  note    %s\n", Printable(InWords(entry), maxShownNote))
	}
}

// CallWords say in words what a tool call named, and what each layer has of it.
func CallWords(c *Call, rec *Record) (asked []string, sdk, policy, kernel string) {
	return askedWords(c), sdkWords(c, rec), policyWords(c.Policy, rec), kernelWords(c, rec)
}

func sdkWords(c *Call, rec *Record) string {
	switch s := c.SDK; {
	case rec.SDKEvents == 0:
		return "no SDK layer"
	case s == nil:
		return "did not mention it"
	default:
		var said []string
		for _, w := range []struct {
			n    uint32
			what string
		}{{s.Started, "started"}, {s.Completed, "completed"}} {
			switch {
			case w.n > 1:
				said = append(said, fmt.Sprintf("%s %d times", w.what, w.n))
			case w.n == 1:
				said = append(said, w.what)
			}
		}
		words := "self-reported: " + strings.Join(said, ", ")
		if c.Policy != nil && s.Tool != c.Policy.Tool {
			words += " (as " + Printable(s.Tool, maxShownName) + ")"
		}
		if c.Join != "" {
			words += "; found by its arguments, as " + Printable(c.SDKCallID, maxShownName)
		}
		return words
	}
}

func policyWords(p *CallPolicy, rec *Record) string {
	if p == nil {
		if rec.PolicyLayer != schemas.LayerPresent {
			return "no policy layer"
		}
		return "did not see it"
	}
	words := map[string]string{schemas.DecisionAllow: "allowed it", schemas.DecisionDeny: "denied it"}[p.Decision]
	if words == "" {
		words = "decided " + Printable(p.Decision, maxShownName)
	}
	if p.RuleID != "" {
		words += " by rule " + Printable(p.RuleID, maxShownName)
	}
	if p.ReasonCode != "" {
		words += " (" + Printable(p.ReasonCode, maxShownName) + ")"
	}
	if p.WouldDeny != "" {
		words += ", though it would deny it: " + Printable(p.WouldDeny, maxShownName)
	}
	if p.Attempt > 1 {
		words += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	switch {
	case p.Outcome != "":
		words += ", outcome " + Printable(p.Outcome, maxShownName)
	case p.IDSource != "":
		words += ", end not seen"
	}
	return words
}

func kernelWords(c *Call, rec *Record) string {
	switch {
	case c.Kernel != nil:
		return seenWords(c, rec)
	case rec.KernelLayer != schemas.LayerAbsent:
		return "has no window for it: its events cannot be separated from others"
	case c.Window == nil:
		return "no kernel layer: nothing is known"
	case *c.Window == schemas.RunWindow:
		return "no kernel layer: nothing is known of its window, which is the whole run"
	}
	return "no kernel layer: nothing is known of its window, " + windowWords(*c.Window)
}

func windowWords(w schemas.Window) string { return Printable(w.Start+" to "+w.End, 2*maxShownName) }

// seenWords say what the kernel layer has of a call.
func seenWords(c *Call, rec *Record) string {
	k, least := c.Kernel, ""
	if rec.KernelLayer == schemas.LayerPartial {
		least = "at least "
	}
	window := "from " + windowWords(k.Window)
	if k.Window == schemas.RunWindow {
		window = "in the whole run"
		if k.Events > 0 {
			window += ", which of them are the call's is not known"
		}
	}
	words := fmt.Sprintf("saw %s%s %s %s", least, counted(k.Events, "event"), scopeWords[k.Scope], window)
	if c.Policy != nil && c.Policy.Decision == schemas.DecisionDeny && (len(k.Effects) > 0 || k.Cut) {
		words += "; after the denial, of any process, on what the call named:"
	}
	return words
}

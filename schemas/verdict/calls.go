package verdict

import (
	"fmt"
	"io"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// What a tool call named, and what of it the kernel saw.

// maxShownTargets is how many targets of a call a text shows.
const maxShownTargets = 10

// askedWords say what a call named, each with what the record has of it.
func askedWords(c *Call) (lines []string) {
	if c.Policy == nil {
		return nil
	}
	targets := c.Policy.Targets
	for i, t := range targets {
		if i == maxShownTargets {
			lines = append(lines, fmt.Sprintf("… and %d more", len(targets)-i))
			break
		}
		lines = append(lines, seenTarget(c, t)+Printable(t, maxShownEffect))
	}
	if c.Policy.TargetsCut {
		lines = append(lines, "… and others, which the record does not name")
	}
	return lines
}

// seenTarget says whether the kernel layer has effects on a target, where that can be known. The words
// come before the target, and no target has a blank there: a name cannot look like them.
func seenTarget(c *Call, target string) string {
	k := c.Kernel
	if k == nil || k.Window == schemas.RunWindow && c.Policy.Decision == schemas.DecisionAllow {
		return ""
	}
	if slices.ContainsFunc(k.Effects, func(e string) bool { return schemas.AskedOf(e, []string{target}) == schemas.AskedFor }) {
		return ""
	}
	if _, host := schemas.TargetHost(target); host {
		return "by name, which the kernel does not see: "
	}
	if k.Cut {
		return ""
	}
	return "not touched in this record: "
}

// effectMargin is what comes before an effect of a call, always of one length. It marks what an allowed call
// did not name, where that is known.
func effectMargin(c *Call, effect string) string {
	p := c.Policy
	if p == nil || p.Decision != schemas.DecisionAllow || len(p.Targets) == 0 || p.TargetsCut || c.Kernel.Scope != schemas.ScopeToolServer ||
		schemas.AskedOf(effect, p.Targets) != schemas.Unasked {
		return "            "
	}
	return "    unasked "
}

// writeAsked writes what a call named.
func writeAsked(w io.Writer, c *Call) {
	title := "asked"
	for _, words := range askedWords(c) {
		fmt.Fprintf(w, "  %-7s %s\n", title, words)
		title = ""
	}
}

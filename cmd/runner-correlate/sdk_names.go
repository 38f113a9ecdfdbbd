package main

import "github.com/runner-evidence/runner/schemas"

// prefixes are what the SDK puts before the names of the tools of each session. A decision of
// another proxy has no session.
type prefixes map[*session]map[string]bool

// names compares the tools that the SDK names with those of the decisions.
func (s *sdkLog) names(decided map[string][]*decision) prefixes {
	of := prefixes{}
	for id, call := range s.calls {
		for _, d := range decided[id] {
			for _, name := range call.names() {
				if of[d.session] == nil {
					of[d.session] = map[string]bool{}
				}
				prefix, ok := schemas.ToolPrefix(name, d.event.Tool)
				if !ok {
					continue
				}
				of[d.session][prefix] = true
			}
		}
	}
	return of
}

// names are all names that the SDK gave the call's tool.
func (c *sdkCall) names() []string {
	list := []string{c.tool}
	for name := range c.others {
		list = append(list, name)
	}
	return list
}

// compare returns the code about the names of a call's tool, or "".
func (p prefixes) compare(call *sdkCall, decisions []*decision) string {
	code := ""
	for _, name := range call.names() {
		best := schemas.AmbiguitySDKNameDiffers
		for _, d := range decisions {
			switch prefix, ok := schemas.ToolPrefix(name, d.event.Tool); {
			case ok && prefix == "":
				best = ""
			case ok && best != "" && len(p[d.session]) == 1:
				best = schemas.NoteSDKPrefixed
			}
		}
		if best == schemas.AmbiguitySDKNameDiffers {
			return best
		}
		if best != "" {
			code = best
		}
	}
	return code
}

package main

import "github.com/runner-evidence/runner/schemas"

// The join of calls whose ids differ in the two layers: the SDK's own MCP client sends no id. Nothing is
// joined by order or by the SDK's times.

// decided are the decisions of each call of the SDK: those of its id, or the one that was found by the digest of
// its arguments.
func (s *sdkLog) decided(p *policyLog) map[string][]*decision {
	of := map[string][]*decision{}
	if p == nil {
		return of
	}
	for _, d := range p.decisions {
		of[d.rawID] = append(of[d.rawID], d)
	}
	for id, call := range s.calls {
		if call.joined != nil {
			of[id] = []*decision{call.joined}
		}
	}
	return of
}

// join finds the calls of the SDK that have no decision of their id, by tool and digest of the arguments: where one
// call of the SDK and one decision of the run have them, and neither has a partner by its id.
func (s *sdkLog) join(p *policyLog) {
	if s == nil || p == nil {
		return
	}
	byID, byDigest := map[string]bool{}, map[string][]*decision{}
	for _, d := range p.decisions {
		byID[d.rawID] = true
		if d.digest != "" && d.event.ToolCallIDSource == schemas.CallIDDeclared { // an id of the client says which call it is
			byDigest[d.digest] = append(byDigest[d.digest], d)
		}
	}
	type pair struct {
		id   string
		call *sdkCall
		more bool
	}
	found := map[*decision]*pair{}
	for id, call := range s.calls {
		list := byDigest[call.digest]
		if len(list) > schemas.MaxSameArguments {
			continue // one digest of so many is hardly one call's own
		}
		for _, d := range list {
			if _, same := schemas.ToolPrefix(call.tool, d.event.Tool); !same {
				continue
			}
			if f := found[d]; f != nil {
				f.more = true
			} else {
				found[d] = &pair{id: id, call: call}
			}
		}
	}
	decisions := map[*sdkCall]int{}
	for _, f := range found {
		decisions[f.call]++
	}
	for d, f := range found {
		if f.more || decisions[f.call] > 1 || byID[f.id] || s.calls[d.rawID] != nil {
			continue
		}
		d.sdkID, f.call.joined = f.id, d
	}
}

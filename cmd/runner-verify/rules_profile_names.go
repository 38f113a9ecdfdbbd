package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// nameAmbiguities compares how the SDK names tools with the decisions. A prefix is one of a session, and which
// decision is of which session is not in the archive: with one session, all names must have its prefix.
func (v *verifier) nameAmbiguities() {
	const differs, prefixed = schemas.AmbiguitySDKNameDiffers, schemas.NoteSDKPrefixed
	c, prefixes, most := v.ambiguities(), map[string]bool{}, v.sessions()
	if slices.ContainsFunc(v.policy.list, func(d decision) bool { return !d.timed }) {
		most++ // decisions of other proxies
	}
	for _, id := range sortedKeys(v.sdk.calls) {
		s := v.sdk.calls[id]
		has, noted, decided := c.has(differs, id), c.has(prefixed, id), v.placesOf(id) != nil
		switch {
		case s.differs || s.prefixes:
			if !has || noted {
				v.faultCode("%s:%.200q is missing, the SDK names another tool than the decision", differs, id)
			}
		case s.prefix != "" && has == noted:
			v.faultCode("%s:%.200q or %s is missing, the SDK names the tool with a prefix", prefixed, id, differs)
		case s.prefix == "" && (has || noted):
			v.faultCode("%s or %s of %.200q, but the SDK names the tool of the decision", differs, prefixed, id)
		}
		if noted {
			prefixes[s.prefix] = true
		} else if most <= 1 && decided && s.plain && !s.prefixes && !s.differs {
			prefixes[""] = true
		}
	}
	for _, code := range []string{differs, prefixed} {
		for id := range c.of[code] {
			if v.sdk.calls[id] == nil || v.placesOf(id) == nil {
				v.faultCode("%s:%.200q, but not both the SDK and a decision name its tool", code, id)
			}
		}
	}
	if n := uint64(len(prefixes)); c.kinds[prefixed] > 0 && n > most {
		v.faultCode("%d entries %s with %d prefixes, note %s says sessions=%d", c.kinds[prefixed], prefixed, n, schemas.NotePolicy.Code, v.sessions())
	}
}

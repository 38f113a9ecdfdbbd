package main

import "github.com/runner-evidence/runner/schemas"

// addPhases adds what tool servers did outside of calls, and what was found line by line.
func (a *attribution) addPhases(c codes) {
	a.before.addCodes(c, schemas.NoteServerBefore)
	a.between.addCodes(c, schemas.NoteServerBetween)
	a.requested.addCodes(c, schemas.NoteServerRequest)
	a.deniedNamed.addCodes(c, schemas.AmbiguityDeniedTarget)
	for code := range a.codes {
		c.add(code)
	}
}

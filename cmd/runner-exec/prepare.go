package main

import "github.com/runner-evidence/runner/schemas"

// prepare has ready what the start of the command needs, while runner-capture attaches.
func prepare() {
	schemas.PrepareUnmarshal(schemas.Ready{})
	schemas.PrepareMarshal(schemas.Control{Op: schemas.ControlStarted}, schemas.Control{Op: schemas.ControlFinished})
}

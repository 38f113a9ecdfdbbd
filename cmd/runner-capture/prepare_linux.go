package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// prepare has ready what the run needs from its command on.
func prepare() {
	schemas.PrepareUnmarshal(schemas.Control{})
	schemas.PrepareMarshal(schemas.RunStarted{}, &schemas.Arguments{}, schemas.RunFinished{}, &schemas.StageHealth{}, stream.Trailer{})
}

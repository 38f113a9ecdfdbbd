package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// prepare has ready what the end of a stream needs, while its command still runs.
func prepare() {
	schemas.PrepareUnmarshal(stream.Header{}, schemas.RunStarted{}, schemas.Arguments{}, schemas.RunFinished{}, schemas.StageHealth{}, stream.Trailer{})
	schemas.PrepareMarshal(stream.Header{}, &schemas.Arguments{}, schemas.FilteredEvent{}, &schemas.ProcessEvent{}, &schemas.StageHealth{}, stream.Trailer{})
}

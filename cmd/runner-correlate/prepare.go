package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// prepare has ready what a stream needs. It comes when the command of the run has ended.
func prepare() {
	schemas.PrepareUnmarshal(stream.Header{}, schemas.RunStarted{}, schemas.FilteredEvent{}, schemas.ProcessEvent{}, schemas.StageHealth{}, stream.Trailer{})
	schemas.PrepareMarshal(stream.Header{}, &schemas.Report{}, schemas.Health{}, schemas.StageHealth{}, stream.Trailer{})
}

package record

import "github.com/runner-evidence/runner/schemas"

// Place is where the stream of a wrapper is in the directory of a measured run.
type Place struct {
	Stream string // name of the stream
	File   string // path below the directory
	Dir    string // the wrapper's part of it, where its blobs are
}

// Places are those of all wrappers.
var Places = [...]Place{
	{schemas.StreamBox, schemas.StageBox + "/box.ndjson", schemas.StageBox},
	{schemas.StreamClock, schemas.StageClock + "/clock.ndjson", schemas.StageClock},
	{schemas.StreamNet, schemas.StageNet + "/net.ndjson", schemas.StageNet},
}

// OwnDir is the part of runner-exec.
const OwnDir = "own"

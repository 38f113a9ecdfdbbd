package record

import (
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

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

// Check looks for the directory of a measured run. Without it there is no record, which is not the same as an empty one.
func Check(dir string) error {
	if _, err := os.ReadDir(dir); err != nil {
		return tool.CannotRead(dir, err)
	}
	return nil
}

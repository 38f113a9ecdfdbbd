package verdict

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// routine are the notes that an ordinary run has, too.
var routine = []*schemas.Note{schemas.NoteKernel, schemas.NoteQuality, schemas.NoteBlind, schemas.NotePolicy, schemas.NoteSDK, schemas.NoteWindows,
	schemas.NoteIntents, schemas.NoteTimes, schemas.NotePIDs, schemas.NoteNoise, schemas.NoteProcesses, schemas.NoteConfined, schemas.NoteNetworkIDs, schemas.NoteFileIDs, schemas.NoteToolPolicy, schemas.NoteProcessAPI,
	schemas.NoteBox, schemas.NoteClock, schemas.NoteNames, schemas.NoteExchanges}

// Remarkable are the notes that an ordinary run does not have: losses, and what else happened.
func Remarkable(notes []string) []string {
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool {
		return slices.ContainsFunc(routine, func(n *schemas.Note) bool { return note == n.Code || strings.HasPrefix(note, n.Code+":") })
	})
}

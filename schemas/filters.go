package schemas

// Filter is one rule of runner-normalize that is not about a path (STREAMS.md,
// "Filter ids of runner-normalize"): rules about paths are in cmd/internal/noise/noise.txt.
type Filter struct{ ID, Why string }

// Ids of filters.
const (
	FilterTwin = "twin.sock_hook"
	FilterFork = "tree.fork"
	FilterExit = "tree.exit"
	FilterMove = "tree.move"
	FilterDrop = "user.drop"
)

// Filters are the rules that are not about paths.
var Filters = [...]Filter{
	{FilterTwin, "the call itself is recorded, with its outcome"},
	{FilterFork, "process tree, shown by the order of the lines"},
	{FilterExit, "process tree, shown by the order of the lines"},
	{FilterMove, "process tree, counted by runner-capture"},
	{FilterDrop, "--drop says so"},
}

// FilterReason says why a filter leaves something out.
func FilterReason(id string) string {
	for _, f := range Filters {
		if f.ID == id {
			return f.Why
		}
	}
	return ""
}

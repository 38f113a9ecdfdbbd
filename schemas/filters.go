package schemas

import "strings"

// Filter is one rule of runner-normalize that is not about a path (STREAMS.md,
// "Filter ids of runner-normalize"): rules about paths are in cmd/internal/noise/noise.txt.
type Filter struct {
	ID   string
	Why  string // for people, with --show-filtered
	What string // the lines that it leaves out
}

// Ids of filters.
const (
	FilterTwin    = "twin.sock_hook"
	FilterOver    = "twin.started_over"
	FilterPeer    = "send.ignored_address"
	FilterFork    = "tree.fork"
	FilterExit    = "tree.exit"
	FilterMove    = "tree.move"
	FilterContext = "tree.context"
	FilterLoad    = "tree.loader"
	FilterResult  = "connect.result"
	FilterDrop    = "user.drop"
)

// Filters are the rules that are not about paths.
var Filters = [...]Filter{
	{FilterTwin, "the call itself is recorded, with its outcome",
		"a record of the address hook whose call has a record of its own ([DERIVATION.md](DERIVATION.md#pairing-of-hook-and-call))"},
	{FilterOver, "the call started over, and its end is recorded",
		"the record of a call that a signal interrupted and that then started over by itself ([DERIVATION.md](DERIVATION.md#calls-that-start-over))"},
	{FilterPeer, "the kernel did not use the address",
		"a datagram's address that the kernel did not use: what was sent belongs to a datagram that was begun before ([DERIVATION.md](DERIVATION.md#pairing-of-hook-and-call))"},
	{FilterFork, "process tree, shown by the order of the lines", "forks; the order of the lines shows the tree"},
	{FilterExit, "process tree, shown by the order of the lines", "exits of tasks"},
	{FilterMove, "process tree, counted by runner-capture", "moves of tasks to another cgroup"},
	{FilterContext, "process tree, in the layer process", "changes of who and where a task is; the layer process has them"},
	{FilterLoad, "loader of the system", "loaders of programs below " + strings.Join(SystemLoaders[:], ", ")},
	{FilterResult, "the line of the connect has it",
		"the end of a TCP connect: `connect_result` of the line, if the connect was pending ([DERIVATION.md](DERIVATION.md#results-of-pending-connects))"},
	{FilterDrop, "--drop says so", "lines for which the program of `--drop` said yes"},
}

// SystemLoaders are the folders whose files are no line when they are the loader of a program: nearly
// every program has one from there. The noise rules leave out opens of them too.
var SystemLoaders = [...]string{"/lib/", "/lib32/", "/lib64/", "/usr/lib/"}

// FilterReason says why a filter leaves something out.
func FilterReason(id string) string {
	for _, f := range Filters {
		if f.ID == id {
			return f.Why
		}
	}
	return ""
}

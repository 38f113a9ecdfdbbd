package schemas

// CapabilityKind is a kind of items that records are compared by (DIFF.md).
type CapabilityKind struct {
	Name  string
	Group string // one of CapabilityGroups
	Says  string
}

// Kinds of items.
const (
	ItemExec          = "exec"
	ItemEndpointOut   = "endpoint_out"
	ItemEndpointTried = "endpoint_tried"
	ItemEndpointLocal = "endpoint_local"
	ItemWrite         = "file_write"
	ItemCreate        = "file_create"
	ItemDelete        = "file_delete"
	ItemRename        = "file_rename"
	ItemMetadata      = "file_metadata"
	ItemTool          = "mcp_tool"
	ItemDecision      = "decision"
	ItemBlocked       = "blocked"
	ItemOther         = "other"
	ItemRead          = "file_read"
)

// Groups of items, which --fail-on takes.
const (
	GroupExec     = "exec"
	GroupNetwork  = "network"
	GroupOutside  = "write-outside"
	GroupWrite    = "write"
	GroupTool     = "tool"
	GroupDecision = "decision"
	GroupBlocked  = "blocked"
	GroupOther    = "other"
	GroupRead     = "read"
	GroupRemoved  = "removed"
)

// CapabilityGroups are all groups, in the order of their risk. The last one has what the baseline has and
// the new record has not, of all kinds.
var CapabilityGroups = [...]string{GroupExec, GroupNetwork, GroupOutside, GroupTool, GroupDecision, GroupBlocked, GroupWrite, GroupOther, GroupRead, GroupRemoved}

// CapabilityKinds are all kinds, in the order of items.
var CapabilityKinds = [...]CapabilityKind{
	{ItemExec, GroupExec, "a program that was executed; `how`: `loader`, `script`"},
	{ItemEndpointOut, GroupNetwork, "a peer that was reached; `how`: its family, and `datagram` where the call says so"},
	{ItemEndpointTried, GroupNetwork, "a peer that was tried without success"},
	{ItemEndpointLocal, GroupNetwork, "a local address that was bound or listened on"},
	{ItemWrite, GroupOutside, "a file that was opened to be written, or was cut"},
	{ItemCreate, GroupOutside, "a file, folder or other name that was made"},
	{ItemDelete, GroupOutside, "a name that was removed"},
	{ItemRename, GroupOutside, "`how`: `from`, the old name; `to`, the new one"},
	{ItemMetadata, GroupOutside, "mode, owner or attributes were changed, or the file got another name; `how` is the operation"},
	{ItemTool, GroupTool, "a tool of an MCP server that was called"},
	{ItemDecision, GroupDecision, "what the policy decided of a tool; `how`: the decision"},
	{ItemBlocked, GroupBlocked, "what a rule of the policy refused; `how` is the operation"},
	{ItemOther, GroupOther, "mounts, paths that were opened without reading or writing, and all other operations; `how` is the operation"},
	{ItemRead, GroupRead, "a file that was opened to be read"},
}

// Verdicts of a comparison.
const (
	VerdictUnchanged    = "unchanged"
	VerdictChanged      = "changed"
	VerdictInconclusive = "inconclusive"
)

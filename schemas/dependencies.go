package schemas

// Dependency is one kind of input that a record shows and that nothing holds fixed: a replay would have
// to. An entry of uncontrolled_dependencies reads NAME: VALUE.
type Dependency struct{ Name, What string }

// Names of dependencies.
const (
	DependencyNetwork     = "network"
	DependencyUnixSocket  = "unix_socket"
	DependencyRandom      = "random"
	DependencyMachine     = "machine_state"
	DependencyDevice      = "device"
	DependencyMemory      = "shared_memory"
	DependencyTimeZone    = "time_zone"
	DependencyDescriptors = "inherited_descriptors"
	DependencyTool        = "live_tool"
)

// Dependencies are all kinds, in the order of a report.
var Dependencies = [...]Dependency{
	{DependencyNetwork, "an endpoint that was connected or sent to, other than a local one that the run itself bound with its port; none behind runner-net"},
	{DependencyUnixSocket, "a unix socket that was connected or sent to and that the run did not bind"},
	{DependencyRandom, "`/dev/random`, `/dev/urandom` or `/dev/hwrng` was opened"},
	{DependencyMachine, "a file below `/proc` or `/sys` was opened that is not about a process"},
	{DependencyDevice, "another device was opened, except `null`, `zero`, `full`, `tty`, `ptmx`, `pts/` and `fd/`"},
	{DependencyMemory, "a file below `/dev/shm` was opened"},
	{DependencyTimeZone, "`/etc/localtime` or a file of `/usr/share/zoneinfo` was opened"},
	{DependencyDescriptors, "how many descriptors above 2 the command was started with"},
	{DependencyTool, "a tool that was called and answered"},
}

// MaxDependencies is how many values of one kind a report has. One more entry says how many there are more.
const MaxDependencies = 100

package schemas

// How an act ended (SHOW.md).
const (
	ActDone     = "done"     // known to have been done
	ActFailed   = "failed"   // the kernel said no; its error has the name
	ActRefused  = "refused"  // a rule of the run's policy said no
	ActPending  = "pending"  // a connect that had not ended when the call did; the record does not have its end
	ActUnproven = "unproven" // nothing shows that the call was carried out
	ActUnknown  = "unknown"  // the record has no outcome
)

// ActOutcomes are all of them.
var ActOutcomes = [...]string{ActDone, ActFailed, ActRefused, ActPending, ActUnproven, ActUnknown}

// Directions of acts on endpoints.
const (
	DirectionOut   = "out"   // to a peer
	DirectionLocal = "local" // an address of this side
)

// Transports that a call alone shows.
const (
	TransportDatagram = "datagram"
	TransportStream   = "stream"
)

// Families that an endpoint shows.
const (
	EndpointIPv4 = "ipv4"
	EndpointIPv6 = "ipv6"
	EndpointUnix = "unix"
)

// What the layer process says of an act's process, where the record tells it at that line.
const (
	ActUID       = "uid"
	ActGID       = "gid"
	ActNamespace = "mount_namespace"
	ActRoot      = "root"
	ActArgs      = "args"
)

// ActUnsure are all that can be unsure.
var ActUnsure = [...]string{ActUID, ActGID, ActNamespace, ActRoot, ActArgs}

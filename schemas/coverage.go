package schemas

import "bytes"

// Values of network_protocol_coverage.
const (
	CoverageUnknown  = "unknown"
	CoverageAbsent   = "absent"
	CoverageConnect  = "connect_only"
	CoverageDatagram = "datagram_peer_observed"
	CoverageBoth     = "connect_and_datagram_peer_observed"
)

// Values of network_endpoint_claim_scope that a runner writes.
const (
	ScopeUnknown       = "unknown"
	ScopeNotApplicable = "not_applicable"
	ScopeDiagnostic    = "diagnostic_only"
)

// Values of kernel_layer.
const (
	LayerComplete = "complete"
	LayerPartial  = "partial_ringbuf_drops"
	LayerAbsent   = "absent"
)

// Values of policy_layer and sdk_layer, besides LayerAbsent. An SDK layer is never
// more than self-reported here; the first is that of other implementations too.
const (
	LayerPresent      = "present"
	LayerSelfReported = "self_reported"
)

// Values of cgroup_correlation, and of status in a correlation report.
const (
	CorrelationClean   = "clean"
	CorrelationPartial = "partial"
	CorrelationFailed  = "failed"
)

// Coverage is what the recorded kernel lines show about the network. The two network
// fields of the health document are computed only from it and from kernel_layer.
type Coverage struct {
	Connect  bool // a connect with an IP endpoint was seen
	Datagram bool // a datagram with an IP peer was seen
}

// Add takes one kernel line into account. Unix and undecoded endpoints do not
// count, and neither do local addresses (bind, listen).
func (c *Coverage) Add(eventType uint32, value []byte) {
	switch eventType {
	case EventConnect, EventConnectBlocked:
		c.Connect = c.Connect || ipEndpoint(value)
	case EventSendto, EventSendmsg, EventSendmmsg:
		c.Datagram = c.Datagram || ipEndpoint(value)
	}
}

func ipEndpoint(v []byte) bool { return len(v) > 0 && !bytes.HasPrefix(v, []byte("unix:")) }

// Fields are the values of network_protocol_coverage and
// network_endpoint_claim_scope under the given kernel_layer.
func (c Coverage) Fields(kernelLayer string) (coverage, scope string) {
	switch {
	case kernelLayer == LayerAbsent:
		return CoverageAbsent, ScopeNotApplicable
	case c.Connect && c.Datagram:
		return CoverageBoth, ScopeDiagnostic
	case c.Connect:
		return CoverageConnect, ScopeDiagnostic
	case c.Datagram:
		return CoverageDatagram, ScopeDiagnostic
	case kernelLayer != LayerComplete:
		return CoverageUnknown, ScopeUnknown
	}
	return CoverageAbsent, ScopeNotApplicable
}

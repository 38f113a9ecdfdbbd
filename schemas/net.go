package schemas

import (
	"errors"
	"fmt"
	"slices"
)

// What runner-net records: each exchange that went by, and which names were asked for.

// Schemes of exchanges.
const (
	NetHTTP  = "http"
	NetHTTPS = "https"
	NetTCP   = "tcp" // bytes that were passed on as they are
)

// NetSchemes are all schemes.
var NetSchemes = [...]string{NetHTTP, NetHTTPS, NetTCP}

// What became of an exchange.
const (
	NetAllow  = "allow"  // passed on
	NetDeny   = "deny"   // no rule allows it: answered by runner-net, and nothing left the machine
	NetReplay = "replay" // answered from a recording
	NetMiss   = "miss"   // no recording answers it
)

// NetDecisions are all decisions about exchanges.
var NetDecisions = [...]string{NetAllow, NetDeny, NetReplay, NetMiss}

// Failures of exchanges.
const (
	NetUnreachable = "unreachable" // no connection to the server
	NetUntrusted   = "untrusted"   // the server's certificate is not trusted
	NetServerCut   = "server_cut"  // the answer ended early
	NetClientCut   = "client_cut"  // the client went before the end
	NetClientTLS   = "client_tls"  // the client ended the handshake, perhaps because it trusts only certificates of its own
	NetNotHTTP     = "not_http"    // neither HTTP nor TLS, and no rule passes bytes on
	NetUpgrade     = "upgrade"     // the client asked for another protocol, which is not passed on
	NetSilent      = "silent"      // the client said nothing
	NetNobody      = "nobody"      // meant for a server of the program's own machine, and there is none
	NetRequestCut  = "request_cut" // the answer came before the end of the request, and the rest of that was not taken
)

// NetFailures are all failures of exchanges.
var NetFailures = [...]string{NetUnreachable, NetUntrusted, NetServerCut, NetClientCut, NetClientTLS, NetNotHTTP, NetUpgrade, NetSilent, NetNobody, NetRequestCut}

// NetMinStatus and NetMaxStatus bound the status of an answer of HTTP.
const (
	NetMinStatus = 100
	NetMaxStatus = 999
)

// NetOwnStatus is the status with which runner-net itself answers a request of HTTP.
func NetOwnStatus(decision, failure string) uint16 {
	switch {
	case decision == NetAllow || decision == NetMiss:
		return 502
	case failure == NetUpgrade:
		return 501
	case failure == NetNotHTTP:
		return 400
	}
	return 403
}

// Plausible checks that an exchange of HTTP has the failure and the status that follow from who answered.
func (e *NetExchange) Plausible() error {
	var failures []string
	own := e.Decision
	switch {
	case e.Scheme == NetTCP:
		return nil
	case e.Method == "": // nothing that could be read was asked for
		if e.Status != 0 || e.Response != nil || e.Decision != NetDeny || e.Failure == "" {
			return errors.New("an exchange of HTTP without a method is denied, and has a failure")
		}
		return nil
	case e.Response != nil:
		failures = []string{"", NetClientCut, NetServerCut, NetRequestCut}
	case e.Decision == NetAllow, e.Decision == NetReplay && e.Status == NetOwnStatus(NetAllow, e.Failure):
		failures, own = []string{NetUnreachable, NetUntrusted, NetServerCut, NetClientCut}, NetAllow
	case e.Decision == NetMiss:
		failures = []string{"", NetClientCut}
	default:
		failures = []string{"", NetClientCut, NetUpgrade, NetNotHTTP}
	}
	if !slices.Contains(failures, e.Failure) {
		return fmt.Errorf("decision %s with the failure %q, expected one of %q", e.Decision, e.Failure, failures)
	}
	if want := NetOwnStatus(own, e.Failure); e.Response == nil && e.Status != want {
		return fmt.Errorf("no answer of a server, and the status %d, expected that of runner-net, %d", e.Status, want)
	}
	return nil
}

// NetExchange is one line of layers/network.ndjson.
type NetExchange struct {
	Schema   string      `json:"schema"`
	RunID    string      `json:"run_id"`
	Seq      uint64      `json:"seq"`
	Decision string      `json:"decision"`
	Rule     string      `json:"rule,omitempty"` // the id of the rule that allows it
	Scheme   string      `json:"scheme"`
	Host     string      `json:"host"` // a name or an address, as the client meant it
	Port     uint16      `json:"port"`
	Address  string      `json:"address"`          // that the connection went to: of runner-net, or one that the client named itself
	Method   string      `json:"method,omitempty"` // of HTTP, as are path and query
	Path     string      `json:"path,omitempty"`
	Query    string      `json:"query,omitempty"`
	Request  NetMessage  `json:"request"` // of TCP: what the client sent
	Status   uint16      `json:"status,omitzero"`
	Response *NetMessage `json:"response,omitempty"` // absent if the server said nothing
	Failure  string      `json:"failure,omitempty"`
}

// NetMessage is one direction of an exchange.
type NetMessage struct {
	Headers  []NetHeader `json:"headers,omitempty"` // sorted by name
	Bytes    uint64      `json:"bytes"`             // of the body
	SHA256   string      `json:"sha256,omitempty"`  // of the body; absent if it is empty
	Trailers []NetHeader `json:"trailers,omitempty"`
}

// NetHeader is one field of a header.
type NetHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NetName is one line of layers/dns.ndjson: a name that was asked for, and what it was told to be.
type NetName struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Seq    uint64 `json:"seq"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Answer string `json:"answer,omitempty"` // absent: there is no such record
}

// ParseNetExchange parses one line of layers/network.ndjson.
func ParseNetExchange(line []byte) (*NetExchange, error) {
	e := new(NetExchange)
	err := decode(line, e)
	if err == nil {
		err = first(head(e.Schema, SchemaNetExchange, e.RunID), oneOf("decision", e.Decision, NetDecisions[:]...), oneOf("scheme", e.Scheme, NetSchemes[:]...), notEmpty("host", e.Host), notEmpty("address", e.Address), e.check())
	}
	if err != nil {
		return nil, fmt.Errorf("network exchange: %w", err)
	}
	return e, nil
}

func (e *NetExchange) check() error {
	if e.Scheme == NetTCP && (e.Method != "" || e.Path != "" || e.Query != "" || e.Status != 0) {
		return errors.New("method, path, query and status are of HTTP")
	}
	if e.Failure != "" {
		if err := oneOf("failure", e.Failure, NetFailures[:]...); err != nil {
			return err
		}
	}
	if e.Status != 0 && (e.Status < NetMinStatus || e.Status > NetMaxStatus) {
		return fmt.Errorf("status is %d, expected %d to %d", e.Status, NetMinStatus, NetMaxStatus)
	}
	if err := e.Request.check(); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if e.Response != nil {
		if err := e.Response.check(); err != nil {
			return fmt.Errorf("response: %w", err)
		}
	}
	return nil
}

func (m *NetMessage) check() error {
	for _, h := range m.Headers {
		if h.Name == "" {
			return errors.New("a header has no name")
		}
	}
	for _, h := range m.Trailers {
		if h.Name == "" {
			return errors.New("a trailer has no name")
		}
	}
	if (m.Bytes == 0) != (m.SHA256 == "") {
		return errors.New("sha256 is there exactly if there are bytes")
	}
	return optionalDigest("sha256", m.SHA256)
}

// ParseNetName parses one line of layers/dns.ndjson.
func ParseNetName(line []byte) (*NetName, error) {
	n := new(NetName)
	err := decode(line, n)
	if err == nil {
		err = first(head(n.Schema, SchemaNetName, n.RunID), notEmpty("name", n.Name), notEmpty("type", n.Type))
	}
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	return n, nil
}

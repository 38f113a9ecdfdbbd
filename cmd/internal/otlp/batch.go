package otlp

// Limits of one request. A record that is larger goes alone.
const (
	maxRecords = 512
	maxBytes   = 1 << 20
)

// Signal is a kind of telemetry: what its requests are called.
type Signal struct {
	Name   string // of the file and of the path, traces or logs
	groups string // resourceSpans
	scopes string
	items  string
}

// The signals.
var (
	Traces = Signal{"traces", "resourceSpans", "scopeSpans", "spans"}
	Logs   = Signal{"logs", "resourceLogs", "scopeLogs", "logRecords"}
)

// Begins is how each request of the signal begins.
func (s Signal) Begins() string { return `{"` + s.groups + `":[` }

// Batcher makes requests of records: one line for each, of bounded size.
type Batcher struct {
	Signal   Signal
	Resource []byte // attributes, each with its comma
	// Send takes a request, with its LF. It may keep the bytes, and returns a buffer for the next one, or nil.
	Send func(request []byte) (next []byte, err error)

	Records uint64 // of all requests
	buf     []byte
	head    []byte
	n       int
}

// Scope begins the records of a scope. attributes have their commas.
func (b *Batcher) Scope(name, version string, attributes []byte) error {
	if err := b.Flush(); err != nil {
		return err
	}
	h := append(b.head[:0], b.Signal.Begins()...)
	h = append(append(h, `{"resource":{"attributes":[`...), Trim(b.Resource)...)
	h = append(append(h, `]},"`...), b.Signal.scopes...)
	h = append(h, `":[{"scope":{"name":`...)
	h = quoted(h, name)
	h = quoted(append(h, `,"version":`...), version)
	h = append(append(h, `,"attributes":[`...), Trim(attributes)...)
	h = append(append(h, `]},"`...), b.Signal.items...)
	b.head = append(h, `":[`...)
	return nil
}

// Record returns the buffer to which the next record is to be appended.
func (b *Batcher) Record() []byte {
	if b.n == 0 {
		return append(b.buf[:0], b.head...)
	}
	return append(b.buf, ',')
}

// Done takes the buffer back.
func (b *Batcher) Done(buf []byte) error {
	b.buf = buf
	b.n++
	b.Records++
	if b.n == maxRecords || len(buf) >= maxBytes {
		return b.Flush()
	}
	return nil
}

// Flush sends the records that are left.
func (b *Batcher) Flush() error {
	if b.n == 0 {
		return nil
	}
	b.n = 0
	next, err := b.Send(append(b.buf, "]}]}]}\n"...))
	b.buf = next
	return err
}

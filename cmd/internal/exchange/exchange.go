// Package exchange reads what runner-net recorded, and says which requests are the same.
package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// StreamFile is the name of the stream in a record.
const StreamFile = "net.ndjson"

// Recording is a record of runner-net.
type Recording struct {
	RunID     string
	Exchanges []*schemas.NetExchange // in the order of the stream
	Names     []*schemas.NetName
	Net       *schemas.Net
	Health    *schemas.StageHealth
	dir       string
}

// In is an empty recording whose bodies are in a directory.
func In(dir string) *Recording { return &Recording{dir: dir} }

// Read reads the record in a directory. It must be whole.
func Read(dir string) (*Recording, error) {
	name := filepath.Join(dir, StreamFile)
	f, err := os.Open(name)
	if err != nil {
		if info, e := os.Stat(dir); e == nil && info.IsDir() {
			return nil, tool.Failf(tool.ExitInput, "%s is no record of runner-net: there is no %s in it", schemas.Text(dir), StreamFile)
		}
		return nil, tool.CannotRead(dir, err)
	}
	defer f.Close()
	r := &Recording{dir: dir}
	return r, r.read(f, name)
}

func (r *Recording) read(f io.Reader, name string) error {
	in, err := stream.NewReader(f, name, schemas.StreamNet)
	if err != nil {
		return tool.StreamError(err)
	}
	r.RunID = in.Header().RunID
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		if err := r.line(rec); err != nil {
			return tool.StreamError(in.Errorf("%v", err))
		}
	}
	if r.Health == nil {
		return tool.StreamError(in.Errorf("there is no stage health"))
	}
	return nil
}

func (r *Recording) line(rec stream.Record) (err error) {
	switch {
	case r.Health != nil:
		return errors.New("a record after the stage health")
	case rec.Schema == schemas.SchemaNetExchange && r.Names == nil && r.Net == nil:
		e, err := schemas.ParseNetExchange(rec.Bytes)
		if err != nil {
			return err
		}
		if n := len(r.Exchanges); e.Seq != uint64(n) {
			return fmt.Errorf("seq is %d, expected %d", e.Seq, n)
		}
		r.Exchanges = append(r.Exchanges, e)
	case rec.Schema == schemas.SchemaNetName && r.Net == nil:
		n, err := schemas.ParseNetName(rec.Bytes)
		if err != nil {
			return err
		}
		if want := len(r.Names); n.Seq != uint64(want) {
			return fmt.Errorf("seq is %d, expected %d", n.Seq, want)
		}
		r.Names = append(r.Names, n)
	case rec.Schema == schemas.SchemaNet && r.Net == nil:
		r.Net, err = schemas.ParseNet(rec.Bytes)
	case rec.Schema == schemas.SchemaStageHealth && r.Net != nil:
		r.Health, err = schemas.ParseStageHealth(rec.Bytes)
	default:
		return fmt.Errorf("a record of schema %.100q is not expected here", rec.Schema)
	}
	return err
}

// Body opens the body of a message.
func (r *Recording) Body(m *schemas.NetMessage) (io.ReadCloser, error) {
	if m == nil || m.SHA256 == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return os.Open(filepath.Join(r.dir, record.BlobDir, strings.TrimPrefix(m.SHA256, "sha256:")))
}

// Check digests the blobs that the exchanges name: each must be there with the bytes that its name says.
func (r *Recording) Check() error {
	seen := map[string]uint64{}
	for _, e := range r.Exchanges {
		for _, m := range []*schemas.NetMessage{&e.Request, e.Response} {
			if m == nil || m.SHA256 == "" || seen[m.SHA256] == m.Bytes {
				continue
			}
			seen[m.SHA256] = m.Bytes
			if err := r.checkBody(m); err != nil {
				return tool.Failf(tool.ExitInput, "%s: exchange %d: %w", schemas.Text(r.dir), e.Seq, err)
			}
		}
	}
	return nil
}

func (r *Recording) checkBody(m *schemas.NetMessage) error {
	f, err := r.Body(m)
	if err != nil {
		return fmt.Errorf("its body cannot be read: %w", err)
	}
	defer f.Close()
	sum, n, err := schemas.DigestAll(f)
	switch {
	case err != nil:
		return fmt.Errorf("its body cannot be read: %w", err)
	case sum != m.SHA256 || n != m.Bytes:
		return fmt.Errorf("its body has %d bytes with %s, expected %d with %s", n, sum, m.Bytes, m.SHA256)
	}
	return nil
}

// SortedQuery is a query with its parts in the order of their bytes: which comes first says nothing.
func SortedQuery(q string) string {
	parts := strings.Split(q, "&")
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// Key is what makes two requests the same: method, scheme, host, port, path, sorted query, digest of the body, and the
// headers of these names.
func Key(e *schemas.NetExchange, headers []string) string {
	parts := []string{e.Scheme, e.Host, fmt.Sprint(e.Port), e.Method, e.Path, SortedQuery(e.Query), e.Request.SHA256}
	for _, name := range headers {
		for _, h := range e.Request.Headers {
			if strings.EqualFold(h.Name, name) {
				parts = append(parts, strings.ToLower(name)+": "+h.Value)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// Unmatched is the first of the headers whose values the recording does not have, so that they cannot be compared.
func (r *Recording) Unmatched(headers []string) string {
	for _, e := range r.Exchanges {
		for _, h := range e.Request.Headers {
			if h.Value == schemas.RedactionMark+schemas.RedactHeader+schemas.RedactionEnd && slices.ContainsFunc(headers, func(s string) bool { return strings.EqualFold(s, h.Name) }) {
				return h.Name
			}
		}
	}
	return ""
}

// Sort puts exchanges into the order of a stream: by what was asked for, and where that is the same, by what was asked for first.
// Which of two different requests came first can differ from run to run.
func Sort(list []*schemas.NetExchange) {
	slices.SortStableFunc(list, Compare)
	for n, e := range list {
		e.Seq = uint64(n)
	}
}

// Compare says which of two exchanges comes first in a stream. 0 is of equal requests.
func Compare(a, b *schemas.NetExchange) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method),
		cmp.Compare(SortedQuery(a.Query), SortedQuery(b.Query)), cmp.Compare(a.Request.SHA256, b.Request.SHA256))
}

// Distance says how much two requests differ: 0 is not at all.
func Distance(a, b *schemas.NetExchange) (n int) {
	for _, x := range []struct {
		same   bool
		weight int
	}{{a.Host == b.Host, 32}, {a.Port == b.Port, 4}, {a.Scheme == b.Scheme, 2}, {a.Path == b.Path, 16}, {a.Method == b.Method, 8},
		{SortedQuery(a.Query) == SortedQuery(b.Query), 2}, {a.Request.SHA256 == b.Request.SHA256, 1}} {
		if !x.same {
			n += x.weight
		}
	}
	return n
}

// URL is the address of a request, for people and projections.
func URL(e *schemas.NetExchange) string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !(e.Scheme == schemas.NetHTTP && e.Port == 80 || e.Scheme == schemas.NetHTTPS && e.Port == 443) {
		host += fmt.Sprintf(":%d", e.Port)
	}
	u := e.Scheme + "://" + host + e.Path
	if e.Query != "" {
		u += "?" + e.Query
	}
	return u
}

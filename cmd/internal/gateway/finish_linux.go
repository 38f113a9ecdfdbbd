package gateway

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// Write writes the stream of the record, after Close.
func (g *Gateway) Write(w *stream.Writer) error {
	list := slices.Clone(g.exchanges)
	exchange.Sort(list)
	for _, e := range list {
		if err := w.Write(e); err != nil {
			return err
		}
	}
	names := g.nameLines()
	for i := range names {
		if err := w.Write(&names[i]); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Write(g.document(len(list), len(names))), w.Write(g.health(list, len(names)))); err != nil {
		return err
	}
	status := schemas.StatusComplete
	if g.names.lost > 0 {
		status = schemas.StatusPartial
	}
	return w.Seal(status)
}

// document says what network it was.
func (g *Gateway) document(exchanges, names int) *schemas.Net {
	ports := slices.Clone(g.c.Ports)
	slices.Sort(ports)
	headers := make([]string, len(g.c.Match))
	for i, name := range g.c.Match {
		headers[i] = schemas.Text(strings.ToLower(name))
	}
	slices.Sort(headers)
	return &schemas.Net{Schema: schemas.SchemaNet, RunID: g.c.RunID, Mode: g.c.Mode, Ports: append([]uint16{}, slices.Compact(ports)...), Rules: g.c.Rules.Digest(), Headers: slices.Compact(headers),
		Exchanges: uint64(exchanges), Names: uint64(names), NamesLost: g.names.lost, Redacted: g.redacted, Unused: g.unused}
}

// nameLines are the names that were asked for, sorted.
func (g *Gateway) nameLines() (list []schemas.NetName) {
	for q, answer := range g.names.asked {
		list = append(list, schemas.NetName{Schema: schemas.SchemaNetName, RunID: g.c.RunID, Name: schemas.Text(q.name), Type: q.kind, Answer: answer})
	}
	slices.SortFunc(list, func(a, b schemas.NetName) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	for i := range list {
		list[i].Seq = uint64(i)
	}
	return list
}

// Counts are the numbers of the record, by the names of counters. They are right after Close.
func (g *Gateway) Counts() map[string]uint64 {
	return g.health(g.exchanges, len(g.names.asked)).Counters
}

func (g *Gateway) health(list []*schemas.NetExchange, names int) *schemas.StageHealth {
	c := map[string]uint64{schemas.CounterNetAllowed: 0, schemas.CounterNetDenied: 0, schemas.CounterNetReplayed: 0, schemas.CounterNetMissed: 0,
		schemas.CounterNetFailed: 0, schemas.CounterNetRedacted: g.redacted, schemas.CounterNetUnused: g.unused, schemas.CounterNetNames: uint64(names), schemas.CounterNetNamesLost: g.names.lost}
	n := uint64(0)
	for _, e := range list {
		n++
		c[map[string]string{schemas.NetAllow: schemas.CounterNetAllowed, schemas.NetDeny: schemas.CounterNetDenied,
			schemas.NetReplay: schemas.CounterNetReplayed, schemas.NetMiss: schemas.CounterNetMissed}[e.Decision]]++
		if e.Failure != "" {
			c[schemas.CounterNetFailed]++
		}
	}
	return &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: g.c.RunID, Stage: schemas.StageNet, In: n, Out: n,
		Filtered: map[string]uint64{}, Counters: c, Facts: map[string]string{}, Notes: []string{}}
}

// Header is that of the record's stream.
func (g *Gateway) Header() stream.Header {
	return stream.Header{Stream: schemas.StreamNet, RunID: g.c.RunID, Tool: schemas.StageNet, Version: tool.Version()}
}

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	places "github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// records writes what wrappers could have recorded: a network whose exchanges are with some of the addresses that the kernel lines
// have, a clock with and without gaps, a box.
func (r *randomRun) records(t *testing.T) {
	t.Helper()
	dir := filepath.Join(r.dir, "records")
	check(t, os.Mkdir(dir, 0o755))
	r.args = append(r.args, "--record", dir)
	write := func(p places.Place, lines ...any) {
		check(t, os.MkdirAll(filepath.Join(dir, p.Dir), 0o755))
		f, err := os.Create(filepath.Join(dir, p.File))
		check(t, err)
		defer f.Close()
		w, err := stream.NewWriter(f, stream.Header{Stream: p.Stream, RunID: randomID, Tool: p.Dir, Version: "test"})
		check(t, err)
		for _, line := range lines {
			check(t, w.Write(line))
		}
		check(t, w.Seal(schemas.StatusComplete))
	}
	count := func(n int) uint64 { return uint64(max(r.more.IntN(n+2)-n, 0)) } // mostly 0
	for _, p := range places.Places {
		if r.more.IntN(3) == 0 {
			continue
		}
		switch p.Stream {
		case schemas.StreamNet:
			write(p, r.network(count)...)
		case schemas.StreamClock:
			c := &still.Record{Clock: schemas.Clock{Schema: schemas.SchemaClock, RunID: randomID, Seed: "1", Start: "2026-01-01T00:00:00Z", Runtimes: []string{"python"}, Crypto: schemas.CryptoSeed, Bad: count(3)}}
			for n := range uint64(r.more.IntN(4)) {
				c.Ticks = append(c.Ticks, schemas.ClockTick{Schema: schemas.SchemaClockTick, RunID: randomID, Seq: n, Process: "python:0123456789abcdef.0", Tick: 2 * n, Op: schemas.TickSleep, ForNS: 1, AtNS: []uint64{n}})
			}
			var g still.Gaps
			lines := []any{&c.Clock}
			for i := range c.Ticks {
				g.Add(&c.Ticks[i])
				lines = append(lines, &c.Ticks[i])
			}
			c.Clock.Lost, c.Clock.Unended = g.Sum()
			write(p, lines...)
		case schemas.StreamBox:
			x := &schemas.Box{Schema: schemas.SchemaBox, RunID: randomID, Workdir: "/workspace", Workspace: schemas.WorkspaceEmpty, Namespaces: []string{"mount", "pid", "ipc", "uts"}, Fresh: []string{"/tmp"}, Confined: []string{}, Changes: map[string]uint64{}, Unread: count(3), BaseChanged: count(3)}
			var lines []any
			for n := range uint64(r.more.IntN(3)) {
				lines = append(lines, &schemas.FileChange{Schema: schemas.SchemaFileChange, RunID: randomID, Seq: n, Op: schemas.ChangeAdd, Path: string('a' + rune(n)), After: &schemas.FileState{Kind: schemas.KindDir, Mode: 0o755}})
				x.Changes[schemas.ChangeAdd]++
			}
			write(p, append(lines, x)...)
		}
	}
}

// network are the lines of a net stream.
func (r *randomRun) network(count func(int) uint64) (lines []any) {
	var list []*schemas.NetExchange
	for range r.more.IntN(4) {
		address := []string{"10.0.0.1", "192.0.2.1", "198.18.0.1", "127.0.0.1", "10.0.0.2"}[r.more.IntN(5)]
		list = append(list, &schemas.NetExchange{Schema: schemas.SchemaNetExchange, RunID: randomID, Decision: schemas.NetDeny, Scheme: schemas.NetHTTP, Host: address, Port: []uint16{80, 443}[r.more.IntN(2)], Address: address, Method: "GET", Path: "/", Status: 403})
	}
	exchange.Sort(list)
	for _, e := range list {
		lines = append(lines, e)
	}
	names := r.more.IntN(3)
	for i := range names {
		lines = append(lines, &schemas.NetName{Schema: schemas.SchemaNetName, RunID: randomID, Seq: uint64(i), Name: "a.test", Type: []string{"A", "AAAA"}[i]})
	}
	n := &schemas.Net{Schema: schemas.SchemaNet, RunID: randomID, Mode: schemas.NetModeDeny, Ports: []uint16{53, 80, 443, 8080}, Headers: []string{}, Exchanges: uint64(len(list)), Names: uint64(names), NamesLost: count(3)}
	slices.Sort(n.Ports)
	return append(lines, n, &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: randomID, Stage: schemas.StageNet, Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{}, Notes: []string{}})
}

// Package still holds the shims that give programs of Node and Python a clock and random numbers that are the same each time,
// and reads the ticks that they leave.
package still

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/schemas"
)

//go:embed shims
var shims embed.FS

// Names below the directory of Install.
const (
	nodeShim  = "node.cjs"
	pythonDir = "python"
)

// Install writes the shims into a directory, which must be ours alone to write. What is there already is replaced if it differs.
func Install(dir string) error {
	release, alone := scratch.Lock(dir)
	defer release()
	for _, name := range []string{nodeShim, pythonDir + "/sitecustomize.py"} {
		text, err := shims.ReadFile("shims/" + name)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, name)
		if have, err := os.ReadFile(at); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := replace(at, text, alone); err != nil {
			return err
		}
	}
	return nil
}

// replace gives a file another text, in one step. Who holds the lock is alone, so that all can use one name: what a start that was killed
// leaves is written over by the next.
func replace(at string, text []byte, alone bool) error {
	temp := at + ".new"
	if !alone {
		temp = fmt.Sprintf("%s.%d", at, os.Getpid())
	}
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, at)
}

// Settings are what the program is told.
type Settings struct {
	Seed   string
	Start  string // RFC 3339, UTC
	File   string // where ticks go
	Record string // file with the ticks of the recorded run; empty if there is none
	Replay bool   // there is one
	Crypto bool   // random numbers for cryptography are those of the system
	Only   []string
}

// Environ is the program's environment.
func (s Settings) Environ(env []string, dir string) []string {
	mode := "record"
	if s.Replay {
		mode = "replay"
	}
	hash := "0"
	set := map[string]string{"AGENT_SEED": s.Seed, "AGENT_START_TIME": s.Start, "AGENT_CLOCK_FILE": s.File, "AGENT_CLOCK_RECORD": s.Record, "AGENT_DETERMINISTIC": "1",
		"AGENT_EXECUTION_MODE": mode, "PYTHONHASHSEED": hash, "UV_THREADPOOL_SIZE": "1", "GOMAXPROCS": "1", "TZ": "UTC"}
	if slices.Contains(s.Only, "python") {
		set["PYTHONDONTWRITEBYTECODE"] = "1" // such files have times in them, and names of another number each time while they are written
	}
	if s.Crypto {
		set["AGENT_CRYPTO_RANDOM"] = "real"
	}
	add := map[string]struct{ text, between string }{"JAVA_TOOL_OPTIONS": {"-XX:ActiveProcessorCount=1", " "}}
	if slices.Contains(s.Only, "node") {
		add["NODE_OPTIONS"] = struct{ text, between string }{"--require=" + filepath.Join(dir, nodeShim), " "}
	}
	if slices.Contains(s.Only, "python") {
		add["PYTHONPATH"] = struct{ text, between string }{filepath.Join(dir, pythonDir), ":"}
	}
	var out []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if _, ours := set[name]; ours || strings.HasPrefix(name, "AGENT_CLOCK_") || name == "AGENT_CRYPTO_RANDOM" {
			continue
		}
		if a, ours := add[name]; ours {
			if value != "" {
				a.text += a.between + value // ours is loaded first
			}
			add[name] = a
			continue
		}
		out = append(out, e)
	}
	for name, value := range set {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	for name, a := range add {
		out = append(out, name+"="+a.text)
	}
	slices.Sort(out) // the same each time
	return out
}

// maxTicks bounds what is read of a file that the program wrote.
const maxTicks = 1 << 20

// line is a tick as the shims write it.
type line struct {
	Process string   `json:"process"`
	Seq     uint64   `json:"seq"`
	Op      string   `json:"op"`
	ForNS   uint64   `json:"for_ns"`
	AtNS    []uint64 `json:"at_ns"`
}

// Gather adds the ticks in the file that the shims wrote to a record, sorted by process and number, and counts what is missing.
func (r *Record) Gather(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return r.silent(file + ".d")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if r.Ticks, r.Clock.Bad, err = read(f, r.Clock.RunID); err == nil {
		r.Clock.Lost, r.Clock.Unended = missing(r.Ticks)
		err = r.silent(file + ".d")
	}
	return err
}

// silent adds the processes that claimed a name and have no tick at all to those that did not end.
func (r *Record) silent(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	with := map[string]bool{}
	for i := range r.Ticks {
		with[r.Ticks[i].Process] = true
	}
	for _, d := range list {
		if t := (schemas.ClockTick{Process: d.Name(), Op: schemas.TickEnd, AtNS: []uint64{0}}); t.Check() == nil && !with[d.Name()] {
			r.Clock.Unended++
		}
	}
	return nil
}

// missing counts the numbers of ticks that are not in a sorted list, and the processes that did not end.
func missing(list []schemas.ClockTick) (lost, unended uint64) {
	var g Gaps
	for i := range list {
		g.Add(&list[i])
	}
	return g.Sum()
}

// Gaps counts what is missing in ticks that come sorted.
type Gaps struct {
	lost, unended, next uint64
	process             string
	open                bool // the last tick of the process is not its end
}

// Add takes in the next tick.
func (g *Gaps) Add(t *schemas.ClockTick) {
	if t.Process != g.process {
		g.close()
		g.process, g.next = t.Process, 0
	}
	if t.Tick > g.next {
		g.lost += t.Tick - g.next
	}
	g.next, g.open = t.Tick+1, t.Op != schemas.TickEnd
}

func (g *Gaps) close() {
	if g.open {
		g.unended++
	}
	g.open = false
}

// Sum ends the last process.
func (g *Gaps) Sum() (lost, unended uint64) {
	g.close()
	return g.lost, g.unended
}

func read(r io.Reader, runID string) (list []schemas.ClockTick, bad uint64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := in.ReadSlice('\n')
		if err == io.EOF && len(text) == 0 {
			break
		}
		if err != nil {
			bad++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, 0, err
			}
			continue
		}
		var l line
		t := schemas.ClockTick{Schema: schemas.SchemaClockTick, RunID: runID}
		if json.Unmarshal(text, &l) != nil || len(list) == maxTicks {
			bad++
			continue
		}
		t.Process, t.Tick, t.Op, t.ForNS, t.AtNS = l.Process, l.Seq, l.Op, l.ForNS, l.AtNS
		if t.Check() != nil {
			bad++
			continue
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b schemas.ClockTick) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Tick, b.Tick))
	})
	for i := range list {
		list[i].Seq = uint64(i)
	}
	return list, bad, nil
}

// Differ is the first tick that differs between two runs, or -1: what each process was told and did, but for who it was.
func Differ(a, b []schemas.ClockTick) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].Process != b[i].Process || a[i].Tick != b[i].Tick || a[i].Op != b[i].Op || a[i].ForNS != b[i].ForNS || !slices.Equal(a[i].AtNS, b[i].AtNS) {
			return i
		}
	}
	return -1
}

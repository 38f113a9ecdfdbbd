package page

import (
	"bufio"
	"encoding/json"
	"io"
	"sort"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of the data. What is beyond them is counted, and the page says so.
const (
	MaxRows   = 1 << 18  // operations
	MaxPairs  = 1 << 16  // values of the surface, and of what was left out
	maxBytes  = 48 << 20 // of all texts
	noTime    = -1
	forbidden = ^uint32(0)
)

// Data are the tables of the page.
type Data struct {
	strings []string
	numbers map[string]uint32
	bytes   int

	pids []uint32 // of the processes, by index
	rows []row
	Left uint64 // operations beyond the bounds

	Surface, Filtered pairs
	timed             bool
}

// row is one operation. Texts are numbers of strings.
type row struct {
	seq               uint64
	ns                int64
	process           int
	program, op, name uint32
	result            uint32
	group             uint8
	outcome           uint32
	calls             []uint32
}

// pairs are values, each with a word that says what it is.
type pairs struct {
	list [][2]uint32
	Left uint64
}

// NewData makes empty tables.
func NewData() *Data { return &Data{numbers: map[string]uint32{}} }

// number gives a text its number. It is forbidden beyond the bounds.
func (d *Data) number(s string) uint32 {
	s = verdict.Printable(s, maxName)
	if n, ok := d.numbers[s]; ok {
		return n
	}
	if d.bytes+len(s) > maxBytes {
		return forbidden
	}
	n := uint32(len(d.strings))
	d.numbers[s], d.strings, d.bytes = n, append(d.strings, s), d.bytes+len(s)
	return n
}

// Words are how an act is called on the page.
type Words struct{ Program, Op, Names, Result string }

// Add adds an act of the process with this index.
func (d *Data) Add(a *acts.Act, process int, w Words) {
	if len(d.rows) == MaxRows {
		d.Left++
		return
	}
	r := row{seq: a.Seq, ns: noTime, process: process, group: uint8(a.Group), program: d.number(w.Program), op: d.number(w.Op),
		name: d.number(w.Names), result: d.number(w.Result), outcome: d.number(a.Outcome)}
	fits := r.program != forbidden && r.op != forbidden && r.name != forbidden && r.result != forbidden && r.outcome != forbidden
	for _, id := range a.ToolCalls {
		n := d.number(id)
		fits = fits && n != forbidden
		r.calls = append(r.calls, n)
	}
	if !fits {
		d.Left++
		return
	}
	for len(d.pids) <= process {
		d.pids = append(d.pids, 0)
	}
	d.pids[process] = a.Process.PID
	d.rows = append(d.rows, r)
}

// Rows is the number of operations.
func (d *Data) Rows() int { return len(d.rows) }

// Time gives the operation of a kernel line its time. Lines that are not the first of an
// operation have none.
func (d *Data) Time(seq, ns uint64) {
	at := sort.Search(len(d.rows), func(i int) bool { return d.rows[i].seq >= seq })
	if at < len(d.rows) && d.rows[at].seq == seq {
		d.rows[at].ns, d.timed = int64(ns), true
	}
}

// Pair adds a value.
func (d *Data) Pair(to *pairs, word, value string) {
	if len(to.list) < MaxPairs {
		w, v := d.number(word), d.number(value)
		if w != forbidden && v != forbidden {
			to.list = append(to.list, [2]uint32{w, v})
			return
		}
	}
	to.Left++
}

// write writes the tables as JSON that cannot end its element: <, > and & are escaped.
func (d *Data) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	w.WriteString(`{"groups":[`)
	for i, g := range acts.Words {
		comma(w, i)
		writeString(w, g.Group)
	}
	w.WriteString(`],"pids":[`)
	for i, pid := range d.pids {
		comma(w, i)
		w.WriteString(strconv.FormatUint(uint64(pid), 10))
	}
	w.WriteString("],\n\"strings\":[")
	for i, s := range d.strings {
		comma(w, i)
		writeString(w, s)
	}
	w.WriteString(`],"timed":` + strconv.FormatBool(d.timed) + `,"left":` + strconv.FormatUint(d.Left, 10))
	w.WriteString(",\n\"rows\":[")
	var b []byte
	for i := range d.rows {
		comma(w, i)
		b = d.rows[i].append(b[:0])
		w.Write(b)
	}
	w.WriteString("]")
	writePairs(w, "surface", &d.Surface)
	writePairs(w, "filtered", &d.Filtered)
	w.WriteString("}")
	return w.Flush()
}

func (r *row) append(b []byte) []byte {
	b = strconv.AppendUint(append(b, '['), r.seq, 10)
	for _, n := range []int64{r.ns, int64(r.process), int64(r.program), int64(r.op), int64(r.group), int64(r.name), int64(r.outcome), int64(r.result)} {
		b = strconv.AppendInt(append(b, ','), n, 10)
	}
	for _, n := range r.calls {
		b = strconv.AppendUint(append(b, ','), uint64(n), 10)
	}
	return append(b, ']')
}

func writePairs(w *bufio.Writer, name string, p *pairs) {
	w.WriteString(",\n\"" + name + `":{"left":` + strconv.FormatUint(p.Left, 10) + `,"rows":[`)
	for i, x := range p.list {
		comma(w, i)
		w.WriteString("[" + strconv.FormatUint(uint64(x[0]), 10) + "," + strconv.FormatUint(uint64(x[1]), 10) + "]")
	}
	w.WriteString("]}")
}

// comma also breaks lines, so that no line of the page is very long.
func comma(w *bufio.Writer, i int) {
	switch {
	case i == 0:
	case i%64 == 0:
		w.WriteString(",\n")
	default:
		w.WriteString(",")
	}
}

func writeString(w *bufio.Writer, s string) {
	b, _ := json.Marshal(s) // of a string: it cannot fail, and it escapes <, >, & and the line separators
	w.Write(b)
}

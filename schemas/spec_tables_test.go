package schemas_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// The specification's tables between <!-- table: NAME --> and <!-- end --> are made
// from the tables in this package.
var specTables = map[string]func() table{
	"ambiguities":        ambiguities,
	"blind-spots":        blindSpots,
	"causes":             causes,
	"confinements":       confinements,
	"counters":           func() table { return counters(schemas.StageCapture) },
	"counters-correlate": func() table { return counters(schemas.StageCorrelate) },
	"counters-log":       func() table { return counters(schemas.StageExec) },
	"counters-net":       func() table { return counters(schemas.StageNet) },
	"counters-normalize": func() table { return counters(schemas.StageNormalize) },
	"calls":              calls,
	"engines":            engines,
	"environment":        environment,
	"event-types":        eventTypes,
	"facts":              func() table { return facts(schemas.StageCapture) },
	"facts-log":          func() table { return facts(schemas.StageExec) },
	"filters":            filters,
	"redactions":         redactions,
	"forms":              forms,
	"reports":            reports,
	"capability_kinds":   capabilityKinds,
	"interference":       interference,
	"limits":             limits,
	"log-types":          logTypes,
	"members":            members,
	"noise":              noise,
	"notes":              notes,
	"operations":         operations,
	"outcomes":           outcomes,
	"reasons":            func() table { return reasons(schemas.ReasonAllows, schemas.ReasonDenies) },
	"reasons-requests":   func() table { return reasons(schemas.ReasonPasses, schemas.ReasonStops) },
	"refusals":           func() table { return reasons(schemas.ReasonRefuses) },
	"shims":              shims,
	"signals":            signals,
	"dependencies":       dependencies,
	"streams":            streams,
	"verbs":              verbs,
}

// table is a Markdown table; the first row is its head.
type table [][]string

func (t table) String() string {
	var b strings.Builder
	for i, row := range t {
		b.WriteString("|")
		for _, cell := range row {
			b.WriteString(" " + cell + strings.Repeat(" ", min(1, len(cell))) + "|")
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

func blindSpots() table {
	t := table{{"text", "in the note"}}
	for _, b := range schemas.BlindTexts() {
		t = append(t, []string{code(b.Text), b.When})
	}
	return t
}

func confinements() table {
	t := table{{"name", "the command has"}}
	for _, c := range schemas.Confinements {
		t = append(t, []string{code(c.Name), c.Why})
	}
	return t
}

func code(s string) string { return "`" + s + "`" }

func codes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

// TestSpecificationTables: the tables of the specification are those of this package,
// each is somewhere, and -update writes them.
func TestSpecificationTables(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		again := withTables(t, name, string(text), found)
		if again == string(text) {
			continue
		}
		if !testkit.Update() {
			t.Errorf("%s: a table is not that of the code: go test ./schemas -update, then read the difference", name)
		} else if err := os.WriteFile(name, []byte(again), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specTables)) {
		if !found[name] {
			t.Errorf("no document has the table %s", name)
		}
	}
}

func withTables(t *testing.T, file, text string, found map[string]bool) string {
	const begin, end = "<!-- table: ", "<!-- end -->"
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, begin)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, rest, _ := strings.Cut(rest, " -->\n")
		old, rest, closed := strings.Cut(rest, end)
		make := specTables[name]
		switch {
		case !closed:
			t.Fatalf("%s: table %s has no end", file, name)
		case make == nil:
			t.Errorf("%s: nothing makes the table %s", file, name)
			b.WriteString(begin + name + " -->\n" + old + end)
		default:
			found[name] = true
			b.WriteString(begin + name + " -->\n" + make().String() + end)
		}
		text = rest
	}
}

func counters(stage string) table {
	t := table{{"counter", "role", "counts"}}
	for _, c := range schemas.Counters {
		if c.Stage != stage {
			continue
		}
		why := c.Why
		if c.When != "" {
			why = c.When + ": " + why
		}
		t = append(t, []string{code(c.Name + c.Each), c.Role.String(), why})
	}
	return t
}

func interference() table {
	t := table{{"kind", "a task of the scope"}}
	for _, i := range schemas.Interferences {
		t = append(t, []string{code(i.Kind), i.Why})
	}
	return t
}

func engines() table {
	t := table{{"engine", "sockets of its daemon end in", "programs"}}
	for _, e := range schemas.Engines {
		t = append(t, []string{code(e.Name), codes(e.Sockets), codes(e.Programs)})
	}
	return t
}

func causes() table {
	t := table{{"cause", "value", "says"}}
	for _, c := range schemas.Causes {
		t = append(t, []string{code(c.Name), c.Value, c.Why})
	}
	return t
}

func facts(stage string) table {
	t := table{{"fact", "values", "says"}}
	for _, f := range schemas.Facts {
		if f.Stage != stage {
			continue
		}
		values, why := f.Form, f.Why
		if len(f.Values) > 0 {
			values = strings.Replace(codes(f.Values), "``", "empty", 1)
		}
		if f.When != "" {
			why = f.When + ": " + why
		}
		t = append(t, []string{code(f.Name), values, why})
	}
	return t
}

func notes() table {
	t := table{{"note", "made by", "says"}}
	for _, n := range schemas.Notes {
		t = append(t, []string{code(n.Template()), n.By, n.Says})
	}
	return t
}

func ambiguities() table {
	t := table{{"code", "status", "stands for"}}
	for _, k := range schemas.Ambiguities() {
		arg := map[schemas.AmbiguityArg]string{schemas.ArgID: ":ID", schemas.ArgPath: ":PATH", schemas.ArgName: ":NAME", schemas.ArgEffect: ":EFFECT", schemas.ArgLine: ":LINE:WHY"}[k.Arg]
		says := k.Says
		if len(k.Whys) > 0 {
			says += ". WHY: " + codes(k.Whys)
		}
		status := k.Status
		if status == schemas.CorrelationClean {
			status = "note"
		}
		t = append(t, []string{code(k.Code + arg), status, says})
	}
	return t
}

func outcomes() table {
	t := table{{"outcome", "meaning"}}
	for _, o := range schemas.Outcomes {
		t = append(t, []string{code(o.Name), o.Why})
	}
	return t
}

func logTypes() table {
	t := table{{"type", "further keys of `data`, in order"}}
	for _, l := range schemas.LogTypes {
		var keys []string
		data := reflect.TypeOf(l.Data)
		for i := range data.NumField() {
			if f := data.Field(i); !f.Anonymous {
				keys = append(keys, logKey(f))
			}
		}
		t = append(t, []string{code(l.Type), strings.Join(keys, ", ")})
	}
	return t
}

// logKey is a key of a decision log line: in brackets when it can be left out.
func logKey(f reflect.StructField) string {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	says := f.Tag.Get("spec")
	switch f.Type.Kind() {
	case reflect.Slice:
		says = "(array)"
	case reflect.Bool:
		says = "(bool)"
	case reflect.Pointer:
		says = "(int or null)"
	}
	if option != "" {
		if says != "" {
			says = ": " + says
		}
		return "[" + code(name) + says + "]"
	}
	return strings.TrimSuffix(code(name)+" "+says, " ")
}

func environment() table {
	t := table{{"variable", "is"}}
	for _, v := range schemas.Environment {
		t = append(t, []string{code(v.Name), v.Why})
	}
	return t
}

func shims() table {
	t := table{{"agent_shim", "means"}}
	for _, s := range schemas.Shims {
		t = append(t, []string{code(s.Name), s.Why})
	}
	return t
}

func redactions() table {
	t := table{{"rule", "takes out"}}
	for _, r := range schemas.Redactions {
		t = append(t, []string{code(r.ID), r.What})
	}
	return t
}

func filters() table {
	t := table{{"filter id", "leaves out"}}
	for _, f := range schemas.Filters {
		t = append(t, []string{code(f.ID), f.What})
	}
	return t
}

// noise reads the rules about paths from their own table.
func noise() table {
	b, err := os.ReadFile("../cmd/internal/noise/noise.txt")
	if err != nil {
		panic(err)
	}
	t := table{{"filter id", "leaves out reads of"}}
	seen := map[string]bool{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) > 5 && f[0] == "drop" && !seen[f[1]] {
			seen[f[1]] = true
			t = append(t, []string{code(f[1]), strings.Join(f[5:], " ")})
		}
	}
	return t
}

func eventTypes() table {
	t := table{{"event_type", "kind", "what", "value", "surface set"}}
	for _, e := range schemas.EventTypes {
		kind, set := code(schemas.KindOf(e.ID)), "none"
		if e.Other != "" {
			kind += " (others: " + code(e.Other) + ")"
		}
		if e.Set >= 0 {
			set = schemas.SurfaceSets[e.Set]
		}
		t = append(t, []string{fmt.Sprint(e.ID), kind, e.What, e.Value, set})
	}
	return append(t, []string{"other", "`event_<id>`", "", "string or null", "none"})
}

func operations() table {
	t := table{{"op", "reported by", "kernel line"}}
	for _, o := range schemas.Operations {
		line := "none: the process tree, counted under `tree." + o.Name + "`"
		if o.Name == schemas.OpConnectEnd {
			line = "none: a key of the connect's line, counted under `" + schemas.FilterResult + "`"
		}
		if o.First != 0 {
			line = lineOf(o.First)
		}
		if o.Second != 0 {
			line += "; " + lineOf(o.Second)
		}
		if o.Name == schemas.OpExec {
			line += ", if there is one"
		}
		t = append(t, []string{code(o.Name), cmp.Or(o.Calls, o.Name), line})
	}
	return t
}

func lineOf(id uint32) string {
	for _, e := range schemas.EventTypes {
		if e.ID == id {
			return fmt.Sprintf("%d (%s)", id, e.What)
		}
	}
	panic(id)
}

func verbs() table {
	t := table{{"verb", "of event types"}}
	names, of := schemas.EffectVerbs()
	for _, v := range names {
		var ids []string
		for _, id := range of[v] {
			ids = append(ids, strconv.Itoa(int(id)))
		}
		says := strings.Join(ids, ", ")
		switch {
		case v == "open":
			says += ", with another `access_mode` or none"
		case of[v][0] == schemas.EventOpenat:
			says += ", by `access_mode`"
		}
		t = append(t, []string{code(v), says})
	}
	return append(t, []string{"the kind", "all others"})
}

func streams() table {
	t := table{{"stream", "written by", "records in order"}}
	for _, s := range schemas.Streams() {
		last := len(s.Records) - 1
		t = append(t, []string{code(s.Name), s.By, strings.Join(s.Records[:last], ", ") + ", then " + s.Records[last]})
	}
	return t
}

func members() table {
	t := table{{"member", "holds", "schema"}}
	for _, f := range schemas.Members() {
		holds := "one document"
		if f.Lines {
			holds = "lines"
		}
		if f.Optional {
			holds += "; not in every archive"
		}
		t = append(t, []string{code(f.Member), holds, code(f.Schema)})
	}
	return t
}

func forms() table {
	t := table{{"schema string", "JSON Schema", "where"}}
	for _, f := range schemas.Forms() {
		where := "between stages"
		switch {
		case f.Member != "":
			where = code(f.Member)
		case !f.Lines:
			where = "a document of its own"
		}
		t = append(t, []string{code(f.Schema), "[" + f.File + "](" + f.File + ")", where})
	}
	return t
}

func capabilityKinds() table {
	t := table{{"kind", "group", "what"}}
	for _, k := range schemas.CapabilityKinds {
		t = append(t, []string{code(k.Name), code(k.Group), k.Says})
	}
	return t
}

func reports() table {
	t := table{{"schema_version", "JSON Schema"}}
	for _, f := range schemas.Reports {
		t = append(t, []string{code(f.Schema), "[" + f.File + "](" + f.File + ")"})
	}
	return t
}

func limits() table {
	t := table{{"what", "at most"},
		{"a line", size(archive.MaxLine) + ", LF included"},
		{"nesting of JSON", fmt.Sprint(archive.MaxDepth)},
		{"tool calls of a layer, bindings of a report", thousands(schemas.MaxToolCalls)},
		{"ids and tools of the calls of a layer, added up", size(schemas.MaxToolCallBytes)},
		{"ambiguities of a report", thousands(schemas.MaxAmbiguities)}}
	for _, f := range schemas.Members() {
		if f.MaxBytes > 0 {
			t = append(t, []string{code(f.Member), size(f.MaxBytes)})
		}
	}
	l := bundle.DefaultLimits
	return append(t, []string{"any other member", size(l.Member + 1)}, []string{"all, uncompressed", size(l.Total)}, []string{"members", fmt.Sprint(l.Members)})
}

func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func size(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); n%one == 0 {
			return fmt.Sprintf("%d %s", n/one, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

package acts

import (
	"bytes"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Every event type has a form, and two lines belong together exactly if one operation makes them.
func TestTableIsWhole(t *testing.T) {
	for _, e := range schemas.EventTypes {
		if firsts[e.ID] == nil && seconds[e.ID] == nil {
			t.Errorf("event type %d has no form", e.ID)
		}
	}
	for _, o := range schemas.Operations {
		if o.Second == 0 {
			continue
		}
		if f := firsts[o.First]; f == nil || f.second != o.Second || f.op != o.Name {
			t.Errorf("%s: its form is %+v", o.Name, f)
		}
	}
	names := schemas.RawOps[:]
	for _, f := range table {
		if !slices.Contains(names, f.op) {
			t.Errorf("%q is not an operation", f.op)
		}
		if pair := slices.ContainsFunc(schemas.Operations[:], func(o schemas.Operation) bool { return o.First == f.first && o.Second == f.second }); f.second != 0 && !pair {
			t.Errorf("%s is no pair", f.op)
		}
		if set := schemas.SetOf(f.first); (f.key == keyEndpoint) != (set == schemas.SetNetworkEndpoints) || (f.key == keyPath) != (set == schemas.SetFilesystemPaths || set == schemas.SetProcessExecs) {
			t.Errorf("%s: its value is %s", f.op, f.key)
		}
	}
}

func kernel(seq uint64, pid, typ uint32, value string, ret int64) *schemas.KernelEvent {
	e := &schemas.KernelEvent{Seq: seq, PID: pid, EventType: typ, Value: []byte(value), Has: schemas.KernelHasReturn, ReturnValue: ret, Status: schemas.StatusSuccess}
	if ret < 0 {
		e.Status = schemas.StatusError
	}
	return e
}

// read returns the acts of lines, each as the JSON Schema takes it.
func read(t *testing.T, together bool, report *schemas.Report, events ...*schemas.KernelEvent) (list []Act) {
	t.Helper()
	form, _ := schemas.FormOf(schemas.SchemaAct)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(form.JSONSchema()))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	testkit.Must(t, c.AddResource(form.File, doc))
	schema := c.MustCompile(form.File)
	r := Reader{Together: together, Take: func(a *Act) error {
		b, err := schemas.Marshal(a)
		testkit.Must(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		testkit.Must(t, err)
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		list = append(list, *a)
		return nil
	}}
	if report != nil {
		testkit.Must(t, r.Document(archive.Document{Value: report}))
	}
	for _, e := range events {
		testkit.Must(t, r.Line(&archive.Line{Member: schemas.MemberKernel, RunID: "run_01", Event: e}))
	}
	testkit.Must(t, r.Flush())
	return list
}

func TestPairs(t *testing.T) {
	list := read(t, true, nil,
		kernel(0, 7, schemas.EventExec, "/usr/bin/dash", 0), kernel(1, 7, schemas.EventScript, "/x.sh", 0),
		kernel(2, 7, schemas.EventRenameFrom, "/a", 0), kernel(3, 7, schemas.EventRenameTo, "/b", 0),
		kernel(4, 7, schemas.EventRenameFrom, "/a", -2), kernel(5, 7, schemas.EventRenameTo, "/b", 0), // not of one call
		kernel(6, 7, schemas.EventRenameFrom, "/c", 0), kernel(7, 8, schemas.EventRenameTo, "/d", 0), // another process
		kernel(8, 8, schemas.EventExec, "/bin/true", 0))
	type pair struct{ op, path, new, outcome, errno, exe string }
	want := []pair{
		{"exec", "/usr/bin/dash", "", "done", "", "/usr/bin/dash"}, {"rename", "/a", "/b", "done", "", "/usr/bin/dash"},
		{"rename", "/a", "", "failed", "ENOENT", "/usr/bin/dash"}, {"rename", "", "/b", "done", "", "/usr/bin/dash"},
		{"rename", "/c", "", "done", "", "/usr/bin/dash"}, {"rename", "", "/d", "done", "", ""}, {"exec", "/bin/true", "", "done", "", "/bin/true"},
	}
	var got []pair
	for _, a := range list {
		got = append(got, pair{a.Op, a.Path, a.NewPath, a.Outcome, a.Error, a.Process.Executable})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nexpected %q", got, want)
	}
	if list[0].Script != "/x.sh" || list[1].Process.Script != "/x.sh" {
		t.Errorf("%+v", list[:2])
	}
}

// What an open asks for follows from its flags, of which an open with O_PATH asks for none; without flags from the access mode.
func TestOpens(t *testing.T) {
	const path = schemas.OpenPath
	for _, x := range []struct {
		flags       uint64
		read, write bool
		words       int
		group       Group
	}{
		{0, true, false, 0, Read}, {1, false, true, 0, Wrote}, {2, true, true, 0, Wrote}, {3, false, false, 0, Other},
		{schemas.OpenCreate | schemas.OpenExclusive | 1, false, true, 2, Created}, {schemas.OpenTruncate, true, true, 1, Wrote},
		{path, false, false, 0, Other}, {path | 1, false, false, 0, Other}, {path | 2, false, false, 0, Other}, {path | 3, false, false, 0, Other},
		{path | schemas.OpenTruncate | schemas.OpenAppend, false, false, 0, Other}, {path | schemas.OpenCreate | schemas.OpenExclusive | 2, false, false, 0, Other},
	} {
		for _, known := range []bool{true, false} {
			if !known && x.flags&path != 0 {
				continue // nobody could know
			}
			e := kernel(0, 7, schemas.EventOpenat, "/x", 3)
			e.AccessMode, e.Operations = schemas.AccessMode(x.flags), schemas.OperationsOf(x.flags)
			if known {
				e.Flags, e.Has = x.flags, e.Has|schemas.KernelHasFlags
			}
			if a := read(t, true, nil, e)[0]; a.Read != x.read || a.Write != x.write || len(a.Flags) != x.words || a.Group != x.group {
				t.Errorf("flags %#o, known %v: %+v in group %d", x.flags, known, a, a.Group)
			}
		}
	}
}

// A refusal has the id of its rule where the notes of the record have it; the default has none.
func TestRuleIDs(t *testing.T) {
	var got []string
	r := Reader{Together: true, Notes: []string{"s4_network_rules: 1=a; 3=no-net", "s4_file_rules: 3=no-file"},
		Take: func(a *Act) error { got = append(got, a.RuleID); return nil }}
	for i, x := range []struct{ event, rule uint32 }{{schemas.EventConnectBlocked, 3}, {schemas.EventFileBlocked, 3}, {schemas.EventFileBlocked, 1}, {schemas.EventConnectBlocked, 0}} {
		e := kernel(uint64(i), 7, x.event, "/x", -1)
		e.Has, e.RuleID = e.Has|schemas.KernelHasRuleID, x.rule
		testkit.Must(t, r.Line(&archive.Line{Member: schemas.MemberKernel, RunID: "run_01", Event: e}))
	}
	testkit.Must(t, r.Flush())
	if want := []string{"no-net", "no-file", "", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

// The lines of a process are together in a record of this runner: a number that comes again is
// another process, and nothing is known of its program.
func TestProgramsOfNumbers(t *testing.T) {
	events := []*schemas.KernelEvent{kernel(0, 7, schemas.EventExec, "/a", 0), kernel(1, 8, schemas.EventUnlink, "/x", 0), kernel(2, 7, schemas.EventUnlink, "/y", 0)}
	if list := read(t, true, nil, events...); list[2].Process.Executable != "" {
		t.Errorf("%+v", list[2].Process)
	}
	if list := read(t, false, nil, events...); list[2].Process.Executable != "/a" {
		t.Errorf("%+v", list[2].Process)
	}
}

func TestOutcomes(t *testing.T) {
	pending := kernel(0, 1, schemas.EventConnect, "10.0.0.1:80", -115)
	pending.Status = ""
	refused := &schemas.KernelEvent{Seq: 1, PID: 1, EventType: schemas.EventFileBlocked, Value: []byte("/etc/shadow"), Has: schemas.KernelHasRuleID, RuleID: 3}
	unproven := &schemas.KernelEvent{Seq: 2, PID: 1, EventType: schemas.EventUnlink, Value: []byte("/x"), Status: schemas.StatusUnproven}
	unknown := &schemas.KernelEvent{Seq: 3, PID: 1, EventType: 99}
	created := kernel(4, 1, schemas.EventOpenat, "/n", 3)
	created.AccessMode, created.Operations = "write", schemas.OperationCreate|schemas.OperationExclusive
	var got []string
	list := read(t, true, &schemas.Report{Bindings: []schemas.Binding{{ToolCallID: "c1", KernelEffects: []string{"write /n"}}}}, pending, refused, unproven, unknown, created)
	for _, a := range list {
		got = append(got, a.Outcome)
	}
	if want := schemas.ActOutcomes; !slices.Equal(got, []string{want[3], want[2], want[4], want[5], want[0]}) {
		t.Errorf("%q", got)
	}
	if list[0].Error != "EINPROGRESS" || list[0].Family != "ipv4" || list[0].Direction != "out" || list[0].Transport != "" {
		t.Errorf("%+v", list[0])
	}
	if *list[1].Rule != 3 || list[4].Group != Created || !list[4].Write || list[4].Read || !slices.Equal(list[4].ToolCalls, []string{"c1"}) {
		t.Errorf("%+v", list)
	}
}

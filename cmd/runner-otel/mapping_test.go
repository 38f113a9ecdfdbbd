package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestEveryField: the table has each field of each member's schema, and no other one. A field that is added to a
// schema needs a rule: an attribute, or a reason why it is not in the export.
func TestEveryField(t *testing.T) {
	for _, form := range schemas.Members() {
		i := slices.IndexFunc(sources, func(s source) bool { return s.member == form.Member })
		if i < 0 {
			t.Errorf("%s is not in the table", form.Member)
			continue
		}
		var doc map[string]any
		testkit.Must(t, json.Unmarshal(form.JSONSchema(), &doc))
		want := map[string]bool{}
		definitions, _ := doc["$defs"].(map[string]any)
		fieldsOf(resolved(doc, definitions), "", want)
		for _, r := range sources[i].rules {
			if !want[r.field] {
				t.Errorf("%s: the schema has no field %s", form.Member, r.field)
			}
			if (r.to == "") == (r.why == "") {
				t.Errorf("%s: %s: expected an attribute or a reason", form.Member, r.field)
			}
			delete(want, r.field)
		}
		for field := range want {
			t.Errorf("%s: the field %s has no rule: give it an attribute, or a reason why it has none", form.Member, field)
		}
	}
}

// fieldsOf lists the fields of a schema in the words of the table.
func fieldsOf(s map[string]any, path string, into map[string]bool) {
	for _, word := range []string{"oneOf", "anyOf"} {
		list, _ := s[word].([]any)
		for _, o := range list {
			if o := o.(map[string]any); o["properties"] != nil {
				fieldsOf(o, path, into)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for key, v := range properties {
		sub, ok := v.(map[string]any)
		if !ok {
			continue // it says that there is no such key
		}
		items, _ := sub["items"].(map[string]any)
		every, _ := sub["additionalProperties"].(map[string]any)
		switch {
		case sub["properties"] != nil || sub["oneOf"] != nil && sub["type"] == "object":
			fieldsOf(sub, path+key+".", into)
		case every["properties"] != nil:
			fieldsOf(every, path+key+".*.", into)
		case items["properties"] != nil:
			fieldsOf(items, path+key+"[].", into)
		default:
			into[path+key] = true
		}
	}
}

// resolved is a schema in which what is defined once stands where it is used.
func resolved(s, definitions map[string]any) map[string]any {
	if name, ok := s["$ref"].(string); ok {
		s, _ = definitions[strings.TrimPrefix(name, "#/$defs/")].(map[string]any)
	}
	out := map[string]any{}
	for key, v := range s {
		switch v := v.(type) {
		case map[string]any:
			out[key] = resolved(v, definitions)
		default:
			out[key] = v
		}
	}
	return out
}

// TestKernelAsTable: the attributes of kernel lines are those that the table makes of the same lines.
func TestKernelAsTable(t *testing.T) {
	files, err := filepath.Glob("../../testdata/runs/*/3-joined.ndjson")
	testkit.Must(t, err)
	lines := [][]byte{
		[]byte(`{"schema":"assay.runner.kernel_event.v0","run_id":"r","seq":18446744073709551615,"pid":1,"event_type":999999,"kind":"event_999999","value":"\\xff\u202e\n\u001b[2J<b>@all"}`),
		[]byte(`{"schema":"assay.runner.kernel_event.v0","run_id":"r","seq":0,"pid":1,"event_type":1,"kind":"openat","value":"","flags":18446744073709551615,"mode":9223372036854775808,"resolve":8,"return_value":-1,"status":"error"}`),
		[]byte(`{"schema":"assay.runner.kernel_event.v0","run_id":"r","seq":0,"pid":1,"event_type":2,"kind":"connect","value":"[2001:db8::1]:443","return_value":-115,"connect_result":-111}`),
		[]byte(`{"schema":"assay.runner.kernel_event.v0","run_id":"r","seq":0,"pid":1,"event_type":2,"kind":"connect","value":"unix:@a\\x00b","return_value":0,"status":"success"}`),
	}
	form, _ := schemas.FormOf(schemas.SchemaKernelEvent)
	var doc struct {
		Examples []json.RawMessage `json:"examples"`
	}
	testkit.Must(t, json.Unmarshal(form.JSONSchema(), &doc))
	for _, ex := range doc.Examples {
		var compact bytes.Buffer
		testkit.Must(t, json.Compact(&compact, ex))
		lines = append(lines, compact.Bytes())
	}
	for _, name := range files {
		s := bufio.NewScanner(bytes.NewReader(testkit.Read(t, name)))
		s.Buffer(nil, 1<<20)
		for n := 0; s.Scan() && n < 500; n++ {
			if bytes.HasPrefix(s.Bytes(), []byte(`{"schema":"`+schemas.SchemaKernelEvent)) {
				lines = append(lines, slices.Clone(s.Bytes()))
			}
		}
	}
	fast, table := newMember(schemas.MemberKernel), newMember(schemas.MemberKernel)
	k := newKernelFields(fast)
	for _, line := range lines {
		tree, err := object(line)
		testkit.Must(t, err)
		e := new(schemas.KernelEvent)
		if err := schemas.NewKernelParser(tree["run_id"].(string)).Parse(line, e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		f := fields{m: table, moved: map[string]string{}, eventType: e.EventType}
		want := appendDerived(f.append(nil, "", tree), e)
		got := appendKernel(nil, fast, &k, e, attrPID)
		if !bytes.Equal(got, want) || !slices.Equal(fast.counts, table.counts) {
			t.Fatalf("%s\ngot  %s\nwant %s", line, got, want)
		}
		if n := len(tree); n != countOf(fast) {
			t.Fatalf("%s: %d fields, %d counted", line, n, countOf(fast))
		}
		clear(fast.counts)
		clear(table.counts)
	}
	if len(lines) < 500 {
		t.Errorf("only %d lines", len(lines))
	}
}

func countOf(m *member) (n int) {
	for _, c := range m.counts {
		n += int(c.mapped + c.dropped + c.null)
	}
	return n
}

// TestExamples: each example of each member's schema has all its fields counted, once.
func TestExamples(t *testing.T) {
	for _, form := range schemas.Members() {
		if form.Member == schemas.MemberSurface || form.Member == schemas.MemberManifest || form.Member == schemas.MemberReport || form.Member == schemas.MemberTimes {
			continue // these make no records line by line: TestOTelAddsUp counts their fields
		}
		var doc struct {
			Examples []map[string]any `json:"examples"`
		}
		d := json.NewDecoder(bytes.NewReader(form.JSONSchema()))
		d.UseNumber()
		testkit.Must(t, d.Decode(&doc))
		for _, sensitive := range []bool{false, true} {
			for _, ex := range doc.Examples {
				m := newMember(form.Member)
				f := fields{m: m, sensitive: sensitive, moved: map[string]string{}}
				dst := append([]byte(`[`), bytes.TrimSuffix(f.append(nil, "", ex), []byte(","))...)
				if !json.Valid(append(dst, ']')) {
					t.Errorf("%s: not JSON: %s", form.Member, dst)
				}
				if want := leaves(m, "", ex); want != countOf(m) {
					t.Errorf("%s: %d fields, %d counted: %v", form.Member, want, countOf(m), slices.Sorted(maps.Keys(ex)))
				}
			}
		}
	}
}

// TestManifestExamples: each value of a manifest is one field, with packs and without them.
func TestManifestExamples(t *testing.T) {
	form, _ := schemas.FormOf(schemas.SchemaManifest)
	var doc struct {
		Examples []map[string]any `json:"examples"`
	}
	testkit.Must(t, json.Unmarshal(form.JSONSchema(), &doc))
	for _, ex := range doc.Examples {
		m := newMember(schemas.MemberManifest)
		countManifest(&fields{m: m}, "", ex)
		if want := values(ex); want == 0 || countOf(m) != want {
			t.Errorf("%d values, %d counted: %v", want, countOf(m), ex)
		}
	}
	if len(doc.Examples) < 2 {
		t.Error("no example with packs")
	}
}

// values counts what is neither object nor list.
func values(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += values(e)
		}
	case []any:
		for _, e := range v {
			n += values(e)
		}
	default:
		n = 1
	}
	return n
}

// leaves counts the fields of an object.
func leaves(m *member, path string, tree map[string]any) (n int) {
	for key, v := range tree {
		if _, ok := m.index[path+key]; ok {
			n++
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			n += leaves(m, path+key+".", v)
		case []any:
			for _, e := range v {
				n += leaves(m, path+key+"[].", e.(map[string]any))
			}
		default:
			panic(path + key + strings.Repeat("?", 3))
		}
	}
	return n
}

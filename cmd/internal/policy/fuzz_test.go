package policy

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// No file makes Parse panic, and what it takes means something to all that read it.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "form", "beyond", "text"} {
		files, _ := filepath.Glob("testdata/" + folder + "/*")
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && filepath.Ext(file) != ".txt" {
				f.Add(b)
			}
		}
	}
	s := schema(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		begin := time.Now()
		p, err := Parse("f.yaml", b)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%d bytes took %v", len(b), took)
		}
		if err != nil {
			var problems *strict.Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 || p != nil {
				t.Fatalf("%v, %v", p, err)
			}
			return
		}
		if err := s.Validate(asJSON(t, b)); err != nil {
			t.Errorf("the schema refuses it: %v", err)
		}
		p.Explain(io.Discard)
		p.Hides("read_file")
		if n, ok := p.Network(); ok {
			// What goes to the kernel's side is what that side reads.
			line, err := schemas.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := schemas.ParseNetworkRules(line); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// No call makes Decide panic, take long, or contradict itself.
func FuzzDecide(f *testing.F) {
	p := rules(f, `
default: allow
rules:
  - {id: a, deny: "r*", args: [{at: "$.paths[*]", under: [/etc, /proc]}]}
  - {id: b, allow: [read, "w?"], args: [{at: $.path, under: [/tmp, /proc/self]}], expects: /cache}
  - {id: c, deny: fetch, args: [{at: $.url, to: [10.0.0.0/8, "*.b:1", c]}]}
  - {id: d, allow: fetch, args: [{at: $.url, to: ["::/0", "a.b:443"]}, {at: $.n, in: [1, [2, {a: null}], x, 1.5]}]}
  - {id: e, deny: "*", when: '.arguments.n == 7 and (.arguments.s | test("x"))'}
`)
	for _, s := range []string{`{"path":"/tmp/../etc","paths":["/etc/x","y"]}`, `{"url":"http://10.0.0.1","n":1.0}`, `{"n":7,"s":"x"}`,
		`{"url":"https://a.b","n":[2,{"a":null}]}`, `{"path":"/proc/self/cwd/x"}`, `{"a":[[[{"/x":"/y"}]]],"path":"../%2e%2e\\.."}`} {
		for _, tool := range []string{"read", "w2", "fetch", "x"} {
			f.Add(tool, s, "/tmp")
		}
	}
	f.Fuzz(func(t *testing.T, tool, text, dir string) {
		v, err := Decode([]byte(text))
		if err != nil {
			return
		}
		p.CaseSmuggled(v)
		begin := time.Now()
		d := p.Decide(context.Background(), &Call{Tool: tool, Arguments: v, Meta: v, Dir: dir})
		if took := time.Since(begin); took > 2*decideTime {
			t.Errorf("took %v", took)
		}
		checkDecision(t, p, d)
		if d.Allow && p.Hides(tool) {
			t.Errorf("%q is hidden and allowed", tool)
		}
		for _, s := range d.Targets {
			if _, err := schemas.Untext(s); err != nil {
				t.Errorf("target %q is not text", s)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	p := rules(b, `
rules:
  - {id: a, deny: "delete_*"}
  - {id: b, allow: fetch, args: [{at: $.url, to: ["*.example.com:443"]}]}
  - {id: c, allow: [read_*, list_directory], args: [{at: $.path, under: /usr}, {at: $.mode, in: [r, rb]}]}
  - {id: d, allow: "x*"}
  - {id: e, allow: query, when: .arguments.limit < 100}
`)
	for _, x := range []struct{ name, tool, args string }{
		{"tool", "x1", `{"text":"hello"}`},
		{"destination", "fetch", `{"url":"https://a.example.com/x"}`},
		{"path", "read_file", `{"path":"/usr/bin/env","mode":"r"}`},
		{"when", "query", `{"limit":3}`},
	} {
		v := args(b, x.args)
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(context.Background(), &Call{Tool: x.tool, Arguments: v, Dir: "/"}); !d.Allow {
					b.Fatal(d)
				}
			}
		})
	}
	v := args(b, `{"path":"/usr/bin/env","mode":"r","options":{"limit":1,"deep":[{"x":1}]}}`)
	b.Run("smuggled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.CaseSmuggled(v)
		}
	})
}

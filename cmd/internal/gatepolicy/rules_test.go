package gatepolicy

import (
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
)

// TestKeys: what each key of a rule asks for.
func TestKeys(t *testing.T) {
	one := func(f gate.File) *gate.Input { return &gate.Input{Files: []gate.File{f}} }
	act := func(i gate.Intent) *gate.Input { return &gate.Input{Intents: []gate.Intent{i}} }
	net := func(x gate.Exchange) *gate.Input { return &gate.Input{Network: []gate.Exchange{x}} }
	tool := func(c gate.Call) *gate.Input { return &gate.Input{Calls: []gate.Call{c}} }
	add := func(path string) *gate.Input { return one(file(0, "add", path, "file", 100)) }
	get := func(url string) *gate.Input { return act(request(0, "GET", url)) }
	tcp := gate.Exchange{Decision: "allow", Scheme: "tcp", Host: "db.example", Port: 5432, URL: "tcp://db.example:5432"}
	write := act(intent(0, intentFile, `{"path":"out/a","text":"x"}`, "public", "urgent"))
	for _, x := range []struct {
		rule    string
		yes, no []*gate.Input
	}{
		{`file, path: "docs/**"`, []*gate.Input{add("docs/a"), add("docs/a/b")}, []*gate.Input{add("docs"), add("xdocs/a"), add("a/docs/b"), write}},
		{`file, path: "*.md"`, []*gate.Input{add("a.md"), add(".md")}, []*gate.Input{add("d/a.md"), add("a.mdx")}},
		{`file, path: ["**/x", "?.c"]`, []*gate.Input{add("x"), add("a/b/x"), add("é.c"), add(`\xff.c`), add(`\\.c`)}, []*gate.Input{add("a/x/b"), add("ab.c")}},
		{`file, path: ["a\\[b\\]", '\\c', 'z\xff']`, []*gate.Input{add("a[b]"), add(`\\c`), add(`z\xff`)}, []*gate.Input{add("ab"), add("c"), add(`z\\xff`)}},
		{`file, path: "**"`, []*gate.Input{add("a"), add("a/b"), add(".")}, []*gate.Input{write}},
		{`file, path: "."`, []*gate.Input{add(".")}, []*gate.Input{add("a")}},
		{`file, op: [add, modify]`, []*gate.Input{add("a"), one(file(0, "modify", "a", "file", 1))}, []*gate.Input{one(file(0, "delete", "a", "file", 1))}},
		{`file, kind: file`, []*gate.Input{add("a"), one(file(0, "delete", "a", "file", 1))}, []*gate.Input{one(file(0, "add", "a", "dir", 0))}},
		{`file, max_size: 100`, []*gate.Input{add("a")}, []*gate.Input{one(file(0, "add", "a", "file", 101)), one(file(0, "add", "a", "dir", 0))}},
		{`file, max_size: 1KiB`, []*gate.Input{one(file(0, "add", "a", "file", 1024))}, []*gate.Input{one(file(0, "add", "a", "file", 1025))}},
		{`file, min_size: 1M`, []*gate.Input{one(file(0, "delete", "a", "file", 1<<20))}, []*gate.Input{add("a"), one(file(0, "add", "a", "symlink", 0))}},
		{`file, when: '.after.mode == 420'`, []*gate.Input{add("a")}, []*gate.Input{one(file(0, "delete", "a", "file", 1))}},
		{`intent, type: files.write`, []*gate.Input{write}, []*gate.Input{get("http://a/")}},
		{`intent, type: "http.*"`, []*gate.Input{get("http://a/")}, []*gate.Input{write}},
		{`intent, label: [urgent, secret]`, []*gate.Input{write}, []*gate.Input{get("http://a/")}},
		{`intent, path: "out/*"`, []*gate.Input{write}, []*gate.Input{act(intent(0, intentFile, `{"path":"in/a","text":"x"}`)), get("http://a/out/a")}},
		{`intent, scheme: https`, []*gate.Input{get("https://a/")}, []*gate.Input{get("http://a/"), write}},
		{`intent, host: API.example`, []*gate.Input{get("https://api.example/"), get("https://API.EXAMPLE.:8443/x")}, []*gate.Input{get("https://api.example.org/"), get("https://x.api.example/"), write}},
		{`intent, host: "*.example"`, []*gate.Input{get("https://api.example/"), get("https://a.b.example/")}, []*gate.Input{get("https://example/"), get("https://xexample/"), get("https://.example/")}},
		{`intent, host: ["::1", 127.0.0.1]`, []*gate.Input{get("http://[::1]/"), get("http://[0:0::1]:80/"), get("http://127.0.0.1/"), get("http://[::ffff:127.0.0.1]/")}, []*gate.Input{get("http://127.0.0.2/")}},
		{`intent, port: [443, 8080]`, []*gate.Input{get("https://a/"), get("http://a:8080/")}, []*gate.Input{get("http://a/"), write}},
		{`intent, method: [POST]`, []*gate.Input{act(request(0, "POST", "http://a/"))}, []*gate.Input{get("http://a/"), write}},
		{`intent, url_path: "/orders/*"`, []*gate.Input{get("http://a/orders/1"), get("http://a/%6frders/1?x=/y"), get("http://a/orders/a%20b")}, []*gate.Input{get("http://a/orders"), get("http://a/orders/"), get("http://a/orders/1/2"), write}},
		{`intent, url_path: [/, "/v1/**"]`, []*gate.Input{get("http://a"), get("http://a/?q"), get("http://a/v1/a/b/")}, []*gate.Input{get("http://a/v1"), get("http://a/v2/x")}},
		{`intent, when: '.amount != null and .amount < 100'`, []*gate.Input{act(gate.Intent{Type: intentFile, Amount: number(99), Payload: []byte(`{"path":"a"}`)})}, []*gate.Input{write, act(gate.Intent{Type: intentFile, Amount: number(100), Payload: []byte(`{"path":"a"}`)})}},
		{`intent, max_size: 23`, []*gate.Input{act(intent(0, intentFile, `{"path":"a","text":"x"}`))}, []*gate.Input{write}},
		{`network, decision: [miss, deny]`, []*gate.Input{net(exchange(0, "miss", "GET", "a", "/")), net(exchange(0, "deny", "GET", "a", "/"))}, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/"))}},
		{`network, scheme: tcp`, []*gate.Input{net(tcp)}, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/"))}},
		{`network, host: db.example, port: 5432`, []*gate.Input{net(tcp)}, []*gate.Input{net(exchange(0, "allow", "GET", "db.example", "/"))}},
		{`network, method: GET`, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/"))}, []*gate.Input{net(tcp)}},
		{`network, url_path: "/**"`, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/x"))}, []*gate.Input{net(tcp)}},
		{`network, max_size: 10`, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/")), net(tcp)}, []*gate.Input{net(gate.Exchange{Scheme: "tcp", Sent: 11})}},
		{`network, status: [200, 404]`, []*gate.Input{net(exchange(0, "allow", "GET", "a", "/"))}, []*gate.Input{net(tcp)}},
		{`call, tool: "read_*"`, []*gate.Input{tool(call(0, "read_file", "allow")), tool(call(0, "read_a/b", "allow"))}, []*gate.Input{tool(call(0, "write", "allow"))}},
		{`call, decision: deny`, []*gate.Input{tool(call(0, "a", "deny"))}, []*gate.Input{tool(call(0, "a", "allow"))}},
		{`[call, network], decision: allow`, []*gate.Input{tool(call(0, "a", "allow")), net(exchange(0, "allow", "GET", "a", "/"))}, []*gate.Input{tool(call(0, "a", "deny")), add("a"), write}},
		{`[file, intent], path: "out/**"`, []*gate.Input{add("out/a"), write}, []*gate.Input{add("a"), get("http://a/out/a")}},
		{`any, when: '.index == 0'`, []*gate.Input{add("a"), write, net(tcp), tool(call(0, "a", "deny"))}, []*gate.Input{one(file(1, "add", "a", "file", 1))}},
	} {
		p := parse(t, head+"rules: [{id: x, allow: "+x.rule+"}]\n")
		for want, list := range map[bool][]*gate.Input{true: x.yes, false: x.no} {
			for _, in := range list {
				if d, _ := decide(t, p, in); d.Bundle.Allowed != want {
					t.Errorf("%s: %+v of %+v", x.rule, d, in)
				}
			}
		}
	}
}

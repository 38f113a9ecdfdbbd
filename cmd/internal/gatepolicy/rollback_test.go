package gatepolicy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const registry = head + `default: allow
rollbacks:
- {id: kind, host: a.example, method: POST, path: /orders, match: {headers: {x-kind: k}, json: {$.type: order, $.n: 1, $.b: true}}, rollback: {method: POST, path: /orders/undo}}
- {id: order, host: "*.example", method: [POST, PUT], path: [/orders, "/v1/*/orders"], id_from: ["header:location", "header:x-id", "json:$.data.id"], rollback: {method: DELETE, path: "/orders/{id}/all/{id}", headers: {x-reason: revert, a-first: "1"}}}
`

// TestRollback: the first element that fits a request undoes it.
func TestRollback(t *testing.T) {
	p := parse(t, registry)
	for _, x := range []struct {
		i    gate.Intent
		want string
	}{
		{request(0, "POST", "https://a.example/orders"), "order"}, {request(0, "PUT", "https://A.example:8443/v1/x/orders?y"), "order"}, {request(0, "POST", "https://a.example/v1/x/y/orders"), ""},
		{request(0, "GET", "https://a.example/orders"), ""}, {request(0, "POST", "https://example/orders"), ""}, {request(0, "POST", "https://a.example/orders/"), ""}, {request(0, "POST", "https://a.example/x/../orders"), ""},
		{intent(0, intentFile, `{"path":"orders","text":""}`), ""}, {intent(0, "x.y", `{"method":"POST","url":"https://a.example/orders"}`), ""},
		{intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"k"},"json":{"type":"order","n":1,"b":true}}`), "kind"},
		{intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"k"},"json":{"type":"order","n":"1","b":true}}`), "order"},
		{intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"l"},"json":{"type":"order","n":1,"b":true}}`), "order"},
		{intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"k"},"json":[]}`), "order"},
		{intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"k"},"json":{"type":{},"n":1,"b":true}}`), "order"},
	} {
		b, found := p.Rollback(&x.i)
		have := ""
		if found {
			have = b.Rule()
		}
		if have != x.want {
			t.Errorf("%s: %q, expected %q", x.i.Payload, have, x.want)
		}
	}
	i := intent(0, intentHTTP, `{"method":"POST","url":"https://a.example/orders","headers":{"x-kind":"k"},"json":{"type":"order","n":1,"b":true}}`)
	b, _ := p.Rollback(&i)
	id, err := b.IDFrom(nil, nil)
	testkit.Must(t, err)
	method, url, headers, err := b.Request(id)
	if err != nil || method != "POST" || url != "https://a.example/orders/undo" || len(headers) != 0 || marshal(t, b.Plan()) != `{"available":true,"rule":"kind","method":"POST","path_template":"/orders/undo","requires_id":false,"id_sources":[]}` {
		t.Errorf("%s %s %v %v %s", method, url, headers, err, marshal(t, b.Plan()))
	}
	c, err := Combine(NewWasm(nil, nil, says("")), p)
	testkit.Must(t, err)
	if b, found := c.Rollback(&i); !found || b.Rule() != "kind" {
		t.Errorf("%+v", b)
	}
}

// TestIDs: where an id comes from, what it becomes, and why a commit cannot be undone without one.
func TestIDs(t *testing.T) {
	p := parse(t, registry)
	i := request(0, "POST", "http://a.example:8080/orders?x=y")
	b, _ := p.Rollback(&i)
	for _, x := range []struct{ location, header, body, want string }{
		{"/orders/17", "", "", "/orders/17/all/17"}, {"17", "", "", "/orders/17/all/17"}, {"http://A.EXAMPLE:8080/other/a%20b?q", "x", `{"data":{"id":"y"}}`, "/orders/a%20b/all/a%20b"},
		{"", "a b&c=d+é", "", "/orders/a%20b&c=d+%C3%A9/all/a%20b&c=d+%C3%A9"}, {"", "", `{"data":{"id":"x-1"}}`, "/orders/x-1/all/x-1"}, {"", "", `{"data":{"id":12345678901234567890}}`, "/orders/12345678901234567890/all/12345678901234567890"},
		{"", "", "", "rollback order: the answer has no id: neither of header:location, header:x-id, json:$.data.id"}, {"", "", `{}`, "the answer has no id"}, {"", "", `{"data":null}`, "the answer has no id"},
		{"http://b.example/orders/1", "", "", "rollback order: header:location of the answer: it is not a plain path on the same server"}, {"https://a.example:8080/orders/1", "", "", "same server"}, {"http://a.example/orders/1", "", "", "same server"},
		{"//b/1", "", "", "same server"}, {"/orders/", "", "", "its path ends in a slash"}, {"/orders/%2e%2e", "", "", "plain path"}, {"/orders/a%2fb", "", "", "plain path"}, {"\x7f", "", "", "it is no URL"},
		{"", "a/b", "", `rollback order: header:x-id of the answer: the id "a/b" is not one component of a path`}, {"", "..", "", "not one component"}, {"", ".", "", "not one component"}, {"", "a\\b", "", "not one component"}, {"", "%2e", "", "not one component"},
		{"", "a\nb", "", "not one component"}, {"", "\xff", "", "not one component"}, {"", strings.Repeat("x", 257), "", "the id has 257 bytes, expected 1 to 256"}, {"", "", `{"data":{"id":""}}`, "the id has 0 bytes"},
		{"", "", `{"data":{"id":1.5}}`, "it is neither a text nor an integer"}, {"", "", `{"data":{"id":-1}}`, "neither a text nor an integer"}, {"", "", `{"data":{"id":true}}`, "neither a text nor an integer"}, {"", "", `{"data":{"id":{}}}`, "it is an object"}, {"", "", `{"data":[]}`, "json:$.data.id of the answer"},
		{"", "", `{"data":{"id":"a"},"data":{"id":"b"}}`, "the body is not JSON without doubt"}, {"", "", `<html>`, "the body is not JSON without doubt"}, {"", "", strings.Repeat(" ", 1<<20) + "1", "the body has more than 1048576 bytes"},
	} {
		h := http.Header{}
		if x.location != "" {
			h.Set("Location", x.location)
		}
		if x.header != "" {
			h.Set("X-Id", x.header)
		}
		id, err := b.IDFrom(h, []byte(x.body))
		if err != nil {
			if !strings.Contains(err.Error(), x.want) || id != "" {
				t.Errorf("%+v: %v", x, err)
			}
			continue
		}
		method, url, headers, err := b.Request(id)
		if err != nil || method != "DELETE" || url != "http://a.example:8080"+x.want || marshal(t, headers) != `[{"name":"a-first","value":"1"},{"name":"x-reason","value":"revert"}]` {
			t.Errorf("%+v: %s %s %v %v", x, method, url, headers, err)
		}
	}
	if _, err := b.IDFrom(http.Header{"Location": {"/a/1", "/a/2"}}, nil); err == nil || !strings.Contains(err.Error(), "more than once") {
		t.Error(err)
	}
	for _, id := range []string{"", "a/b", ".."} {
		if _, url, _, err := b.Request(id); err == nil {
			t.Errorf("%q gives %s", id, url)
		}
	}
}

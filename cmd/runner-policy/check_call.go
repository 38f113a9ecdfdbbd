package main

import (
	"context"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// checkCall prints how a policy decides one call, without a server: a request of the
// protocol, or only the params of a tool call.
func checkCall(p *policy.Policy, env *tool.Env) error {
	text := env.Flag.String("call")
	bad := tool.BadValue("call", text, `{"name":TOOL,"arguments":{…}}, or a request {"method":…,"params":{…}}`)
	v, err := policy.Decode([]byte(text))
	m, ok := v.(map[string]any)
	if err != nil || !ok {
		return bad
	}
	dir := p.RelativeTo
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if method, isRequest := m["method"].(string); isRequest && method != "tools/call" {
		return env.Print(func(w io.Writer) {
			p.TraceRequest(context.Background(), w, &policy.Request{Method: method, Params: m["params"], Dir: dir})
		})
	} else if isRequest {
		m, _ = m["params"].(map[string]any)
	}
	name, ok := m["name"].(string)
	if !ok {
		return bad
	}
	if key, smuggled := p.CaseSmuggled(m["arguments"]); smuggled {
		return tool.Failf(tool.ExitInput, "the key %s differs from another only in case: such a call is refused (%s)", schemas.Text(key), schemas.ReasonCaseKey)
	}
	raw, _ := schemas.Marshal(m["arguments"])
	return env.Print(func(w io.Writer) {
		p.Trace(context.Background(), w, &policy.Call{Tool: name, Arguments: m["arguments"], Meta: m["_meta"], Dir: dir, Digest: policy.Digest(raw)})
	})
}

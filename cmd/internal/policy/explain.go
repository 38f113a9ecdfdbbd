package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/schemas"
)

// Hides reports whether a tool is denied whatever its arguments are. Lists of tools do
// not show such a tool.
func (p *Policy) Hides(tool string) bool {
	if len(tool) > maxTool {
		return true
	}
	for i := range p.rules {
		r := &p.rules[i]
		switch {
		case !r.speaksOf(tool):
		case r.allow:
			return false
		case len(r.args) == 0 && r.when == nil && r.digests == nil:
			return true
		}
	}
	return !p.allow
}

// Explain prints in words what the file means, rule by rule.
func (p *Policy) Explain(w io.Writer) {
	fmt.Fprintf(w, "policy %s\n", p.Digest)
	if !p.HasToolRules {
		fmt.Fprintln(w, "tools: no rules: every call is denied")
	} else {
		fmt.Fprintf(w, "tools: the first rule that matches decides; without one a call is %s\n", past(p.allow))
	}
	if p.RelativeTo != "" {
		fmt.Fprintf(w, "relative paths start at %s, where the server is started\n", plainQuote(p.RelativeTo))
	}
	for _, place := range p.redact {
		fmt.Fprintf(w, "no log has the value of the argument at %s\n", plainQuote(place.Text))
	}
	for i := range p.rules {
		p.rules[i].explain(w, i+1)
	}
	explainRequests(w, "resources", p.resources, p.allow)
	explainRequests(w, "methods", p.methods, p.allow)
	if p.network == nil {
		fmt.Fprintln(w, "network: no rules: nothing is enforced")
	} else {
		fmt.Fprintf(w, "network: the first rule that matches decides; without one an address is %s\n", past(p.network.Default == schemas.DecisionAllow))
		for _, r := range p.network.Rules {
			explainNetwork(w, r)
		}
	}
	if p.files == nil {
		fmt.Fprintln(w, "files, exec: no rules: nothing is enforced")
		return
	}
	fmt.Fprintf(w, "files, exec: the first rule that matches decides; without one a file operation is %s and an execution %s\n",
		past(p.files.FilesDefault == schemas.DecisionAllow), past(p.files.ExecDefault == schemas.DecisionAllow))
	for _, r := range p.files.Rules {
		path, _ := schemas.Untext(r.Path)
		fmt.Fprintf(w, "  %d. %s: %s %s and below, on %s\n", r.Number, r.ID, r.Action, plainQuote(string(path)), strings.Join(r.On, " or "))
	}
}

func explainRequests(w io.Writer, what string, list []requestRule, allow bool) {
	if list != nil {
		fmt.Fprintf(w, "%s: the first rule that matches decides; without one a request is %s\n", what, past(allow))
	}
	for i := range list {
		list[i].explain(w, i+1)
	}
}

func past(allow bool) string {
	if allow {
		return "allowed"
	}
	return "denied"
}

func (r *rule) explain(w io.Writer, number int) {
	verb := "deny"
	if r.allow {
		verb = "allow"
	}
	var tools []string
	for _, g := range r.tools {
		tools = append(tools, plainQuote(g.text))
	}
	fmt.Fprintf(w, "  %d. %s: %s %s\n", number, r.id, verb, strings.Join(tools, " or "))
	for _, c := range r.args {
		fmt.Fprintf(w, "     if %s\n", c.explain(r.allow))
	}
	if r.when != nil {
		fmt.Fprintf(w, "     if the jq program %s gives true\n", plainQuote(r.when.text))
	}
	if r.digests != nil {
		fmt.Fprintf(w, "     if the digest of the arguments is one of %d\n", len(r.digests))
	}
	if r.rate.Calls > 0 {
		fmt.Fprintf(w, "     each tool at most %s\n", r.rate)
	}
	switch {
	case r.covers() && len(r.also) > 0:
		var list []string
		for _, p := range r.also {
			list = append(list, p.Text)
		}
		fmt.Fprintf(w, "     with no other argument than these and %s\n", quoteAll(list))
	case r.covers():
		fmt.Fprintln(w, "     with no other argument than these")
	case r.open:
		fmt.Fprintln(w, "     with any other arguments")
	}
	if len(r.expects) > 0 {
		fmt.Fprintf(w, "     the call may also touch %s\n", quoteAll(r.expects))
	}
	if r.reason != "" {
		fmt.Fprintf(w, "     message to the client: %s\n", plainQuote(r.reason))
	}
}

func (c *condition) explain(allow bool) string {
	what := c.at.Text
	for _, s := range c.at.Steps {
		if s.Index != jsonpath.Every {
			continue
		}
		if what = "one of " + c.at.Text; allow {
			what = "every one of " + c.at.Text
		}
		break
	}
	var list []string
	switch {
	case c.under != nil:
		for _, x := range c.under {
			list = append(list, plainQuote(x.text))
		}
		return what + " is, or lies below, " + strings.Join(list, " or ")
	case c.to != nil:
		for _, x := range c.to {
			list = append(list, x.text)
		}
		return what + " leads to " + strings.Join(list, " or ")
	case c.typed != nil:
		return what + " is " + c.typed.explain()
	}
	for _, x := range c.in {
		b, _ := json.Marshal(x)
		list = append(list, string(b))
	}
	return what + " is " + strings.Join(list, " or ")
}

func explainNetwork(w io.Writer, r schemas.NetworkRule) {
	var b strings.Builder
	fmt.Fprintf(&b, "  %d. %s: %s ", r.Number, r.ID, r.Action)
	switch {
	case r.Family == schemas.FamilyAny:
		b.WriteString("every address")
	case r.Family != schemas.FamilyUnix:
		b.WriteString(r.Prefix)
	case strings.HasPrefix(r.Path, "@"):
		b.WriteString("unix socket " + plainQuote(r.Path))
	default:
		b.WriteString("unix sockets at and below " + plainQuote(r.Path))
	}
	for i, p := range r.Ports {
		b.WriteString([]string{", port ", " or "}[min(i, 1)])
		if fmt.Fprint(&b, p[0]); p[0] != p[1] {
			fmt.Fprintf(&b, "-%d", p[1])
		}
	}
	if len(r.Protocols) > 0 {
		b.WriteString(", by " + strings.Join(r.Protocols, " or "))
	}
	b.WriteString(", on " + strings.Join(r.On, " or "))
	fmt.Fprintln(w, b.String())
}

func quoteAll(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, plainQuote(s))
	}
	return strings.Join(out, ", ")
}

// plainQuote shows a text of the policy, quoted only where it would be unclear.
func plainQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r == 0x7f || r > 0x7e }) < 0 {
		return s
	}
	return fmt.Sprintf("%q", s)
}

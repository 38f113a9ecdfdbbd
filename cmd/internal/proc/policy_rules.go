package proc

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// The schema x07.os.process.policy@0.1.0: limits, and rules that allow. The first rule that a request fits in all
// allows it; rules that select by digest come after all that select by path.

const (
	maxText     = 4096
	maxOutput   = 16 << 20
	maxBoth     = 32 << 20
	maxTimeout  = 600_000 // ms
	maxArgTotal = 1 << 20
)

// ruleLimits are upper bounds of a request and its limits.
type ruleLimits struct{ timeout, stdout, stderr, total, stdin, env, args uint64 }

type execRule struct {
	id           string
	path, sha256 string // one of them
	mode         string
	args         []string
	roots        []string
	set, denied  []string
	limits       ruleLimits
}

type ruleList struct {
	allow  bool // the default
	limits ruleLimits
	rules  []execRule
}

var (
	identForm = pattern.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	nameForm  = pattern.New(`^[A-Z_][A-Z0-9_]{0,63}$`)
	hexForm   = pattern.New(`^[0-9a-f]{64}$`)
)

func (r *policyReader) rules(doc *yaml.Node, p *Policy) {
	top := r.Object(doc, "the policy", "schema_version", "process")
	if !r.required(doc, top, "the policy", "process") {
		return
	}
	n := top["process"].Value
	o := r.Object(n, "process", "default_action", "deny_shell", "limits", "allow")
	if !r.required(n, o, "process", "default_action", "deny_shell", "limits", "allow") {
		return
	}
	l := &ruleList{}
	action, _ := r.Word(o["default_action"].Value, "default_action", "deny", "allow")
	l.allow = action == "allow"
	if !r.boolean(o, "deny_shell", false) {
		r.Bad(o["deny_shell"].Value, "deny_shell is not true", "true: there is no shell", "true")
	}
	n = o["limits"].Value
	limits := []string{"max_concurrent_children", "timeout_ms_max", "max_stdout_bytes_max", "max_stderr_bytes_max", "max_total_bytes_max", "max_stdin_bytes_max", "max_env_entries_max", "max_arg_bytes_max"}
	if x := r.Object(n, "limits", limits...); r.required(n, x, "limits", limits...) {
		p.MaxLive = uint32(r.number(x, limits[0], 64, 0))
		l.limits = ruleLimits{r.number(x, limits[1], maxTimeout, 0), r.number(x, limits[2], maxOutput, 0), r.number(x, limits[3], maxOutput, 0),
			r.number(x, limits[4], maxBoth, 0), r.number(x, limits[5], maxOutput, 0), r.number(x, limits[6], MaxEnv, 0), r.number(x, limits[7], maxArgTotal, 0)}
	}
	allow := o["allow"].Value
	if allow.Kind != yaml.SequenceNode {
		r.Bad(allow, "allow is "+strict.Kind(allow), "a list of rules", "")
		return
	}
	if len(allow.Content) > 256 {
		r.Bad(allow, fmt.Sprintf("%d rules", len(allow.Content)), "at most 256", "")
		return
	}
	for _, n := range allow.Content {
		l.rules = append(l.rules, r.rule(n))
	}
	p.decider = l
}

func (r *policyReader) rule(n *yaml.Node) (x execRule) {
	o := r.Object(n, "the rule", "id", "exec", "args", "cwd_roots", "env", "caps_max")
	if !r.required(n, o, "the rule", "id", "exec", "args", "cwd_roots", "env", "caps_max") {
		return x
	}
	if x.id, _ = r.Text(o["id"].Value, "id"); !identForm.MatchString(x.id) {
		r.Bad(o["id"].Value, "id is "+strict.Quote(x.id), "a-z 0-9, then up to 63 of a-z 0-9 . _ -", "")
	}
	r.exec(o["exec"].Value, &x)
	r.args(o["args"].Value, &x)
	x.roots = r.texts(o, "cwd_roots", 32, maxText, notEmpty)
	n = o["env"].Value
	names := []string{"inherit_allowlist", "set_allowlist", "denylist"}
	if e := r.Object(n, "env", append(names, "max_entries")...); r.required(n, e, "env", append(names, "max_entries")...) {
		r.texts(e, names[0], 128, 64, isName) // nothing is inherited: the flags of a request must be 0
		x.set, x.denied = r.texts(e, names[1], 128, 64, isName), r.texts(e, names[2], 128, 64, isName)
		x.limits.env = r.number(e, "max_entries", MaxEnv, 0)
	}
	n = o["caps_max"].Value
	caps := []string{"timeout_ms", "max_stdout_bytes", "max_stderr_bytes", "max_total_bytes", "max_stdin_bytes"}
	if c := r.Object(n, "caps_max", caps...); r.required(n, c, "caps_max", caps...) {
		x.limits.timeout, x.limits.stdout, x.limits.stderr = r.number(c, caps[0], maxTimeout, 0), r.number(c, caps[1], maxOutput, 0), r.number(c, caps[2], maxOutput, 0)
		x.limits.total, x.limits.stdin, x.limits.args = r.number(c, caps[3], maxBoth, 0), r.number(c, caps[4], maxOutput, 0), NoLimit
	}
	return x
}

func (r *policyReader) exec(n *yaml.Node, x *execRule) {
	o := r.Object(n, "exec", "kind", "path", "sha256_hex")
	if !r.required(n, o, "exec", "kind") {
		return
	}
	key := map[string]string{"path": "path", "sha256": "sha256_hex"}
	kind, ok := r.Word(o["kind"].Value, "kind", "path", "sha256")
	if !ok || !r.required(n, o, "exec", key[kind]) {
		return
	}
	if len(o) > 2 {
		r.Bad(n, "exec of kind "+kind+" with path and sha256_hex", "only "+key[kind], "")
	}
	s, ok := r.Text(o[key[kind]].Value, key[kind])
	switch {
	case !ok:
	case kind == "sha256" && !hexForm.MatchString(s):
		r.Bad(o[key[kind]].Value, "sha256_hex is "+strict.Quote(s), "64 lower-case hex digits", "")
	case kind == "sha256":
		x.sha256 = s
	case s == "" || len(s) > maxText:
		r.Bad(o[key[kind]].Value, fmt.Sprintf("a path of %d bytes", len(s)), fmt.Sprintf("1 to %d", maxText), "")
	default:
		x.path = cleaned([]byte(s))
	}
}

func (r *policyReader) args(n *yaml.Node, x *execRule) {
	o := r.Object(n, "args", "mode", "exact", "prefix")
	if !r.required(n, o, "args", "mode") {
		return
	}
	x.mode, _ = r.Word(o["mode"].Value, "mode", "any", "exact", "prefix")
	exact, prefix := r.texts(o, "exact", MaxArgs, maxText, nil), r.texts(o, "prefix", MaxArgs, maxText, nil)
	switch x.mode {
	case "exact":
		r.required(n, o, "args", "exact")
		x.args = exact
	case "prefix":
		r.required(n, o, "args", "prefix")
		x.args = prefix
	}
}

func isName(s string) string {
	if !nameForm.MatchString(s) {
		return "expected A-Z or _, then up to 63 of A-Z 0-9 _"
	}
	return ""
}

func notEmpty(s string) string {
	if s == "" {
		return "expected a path"
	}
	return ""
}

func (l *ruleList) decide(q *Request, c *Caps) Verdict {
	timeout, why := l.limits.fit(q, c)
	if why != "" {
		return denyLimit(why)
	}
	program := cleaned(q.Argv[0])
	var all []Verdict
	for _, byDigest := range []bool{false, true} {
		for i := range l.rules {
			x := &l.rules[i]
			if (x.sha256 != "") != byDigest || !byDigest && x.path != program || !x.fits(q) {
				continue
			}
			of := c
			if c.TimeoutMS == 0 { // what the limits gave it
				of = &Caps{c.MaxStdout, c.MaxStderr, 0, c.MaxTotal}
			}
			if most, no := x.limits.fit(q, of); no == "" {
				all = append(all, Verdict{Allow: true, RuleID: x.id, Program: program, SHA256: x.sha256, TimeoutMS: min(most, timeout)})
				if !byDigest {
					return all[0]
				}
			}
		}
	}
	if l.allow {
		all = append(all, Verdict{Allow: true, Program: program, TimeoutMS: timeout})
	}
	if len(all) == 0 {
		return deny("no rule allows it")
	}
	all[0].Next = all[1:]
	return all[0]
}

// fits reports whether the arguments, the directory and the variables are those of the rule.
func (x *execRule) fits(q *Request) bool {
	args := q.Argv[1:]
	switch {
	case x.mode == "any":
	case x.mode == "exact" && len(args) != len(x.args), len(args) < len(x.args):
		return false
	default:
		for i, want := range x.args {
			if string(args[i]) != want {
				return false
			}
		}
	}
	if len(q.Cwd) > 0 && !slices.ContainsFunc(x.roots, func(root string) bool { return below(cleaned(q.Cwd), cleaned([]byte(root))) }) {
		return false
	}
	return !slices.ContainsFunc(q.Env, func(v Var) bool {
		return slices.Contains(x.denied, string(v.Key)) || !slices.Contains(x.set, string(v.Key))
	})
}

// fit compares a request with upper bounds. The result is its time in ms: that of the bounds where it has none; why
// says what is above them. No bound makes a limit of a request smaller.
func (l *ruleLimits) fit(q *Request, c *Caps) (timeout uint32, why string) {
	args := 0
	for _, a := range q.Argv {
		args += len(a)
	}
	timeout = c.TimeoutMS
	if timeout == 0 {
		timeout = uint32(l.timeout)
	}
	for _, x := range []struct {
		have, most uint64
		what       string
	}{
		{uint64(timeout), l.timeout, "timeout_ms"}, {uint64(c.MaxStdout), l.stdout, "max_stdout_bytes"}, {uint64(c.MaxStderr), l.stderr, "max_stderr_bytes"},
		{c.Total(), l.total, "max_total_bytes"}, {uint64(len(q.Stdin)), l.stdin, "standard input"}, {uint64(len(q.Env)), l.env, "the number of variables"}, {uint64(args), l.args, "the size of the arguments"},
	} {
		if x.have > x.most {
			return 0, fmt.Sprintf("%s is %d, above %d", x.what, x.have, x.most)
		}
	}
	if timeout == 0 {
		return 0, "no time is allowed"
	}
	return timeout, ""
}

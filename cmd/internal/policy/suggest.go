package policy

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Suggest prints the smallest policy that allows what a session did: each tool with exactly
// the arguments that it was called with, each method, and each resource. calls are the
// decisions of its log, requests those about other requests.
func Suggest(w io.Writer, calls []*schemas.ToolDecision, requests []*schemas.RequestDecision) {
	type used struct {
		digests, targets []string
		any, redacted    bool
	}
	tools, resources, methods := map[string]*used{}, map[string]bool{}, map[string]bool{}
	for _, d := range calls {
		if d.Decision != schemas.DecisionAllow {
			continue
		}
		u := tools[d.Tool]
		if u == nil {
			u = &used{}
			tools[d.Tool] = u
		}
		u.digests, u.targets = append(u.digests, d.ArgumentsDigest), append(u.targets, d.Targets...)
		u.any = u.any || d.ArgumentsDigest == ""
		u.redacted = u.redacted || d.Redacted != nil
	}
	for _, d := range requests {
		switch {
		case d.Decision != schemas.DecisionAllow || slices.Contains(protocol, d.Method):
		case strings.HasPrefix(d.Method, "resources/"):
			resources[d.Target] = true
		default:
			methods[d.Method] = true
		}
	}
	fmt.Fprintf(w, "schema: %s\ndefault: deny\nrules:%s\n", schemas.SchemaPolicyFile, map[bool]string{true: " []"}[len(tools) == 0])
	for i, name := range sortedNames(tools) {
		u := tools[name]
		slices.Sort(u.targets)
		if u.targets = slices.Compact(u.targets); len(u.targets) > 0 {
			fmt.Fprintf(w, "  # it named %s\n", yamlText(strings.Join(u.targets[:min(len(u.targets), 8)], " ")))
		}
		if u.redacted {
			fmt.Fprintln(w, "  # the log does not have all arguments, so it may have any")
		}
		fmt.Fprintf(w, "  - id: tool-%d\n    allow: %s\n", i+1, yamlText(escapeGlob(name)))
		slices.Sort(u.digests)
		if u.digests = slices.Compact(u.digests); !u.any {
			fmt.Fprintf(w, "    digests: [%s]\n", strings.Join(u.digests, ", "))
		}
	}
	section := func(what string, names map[string]bool) {
		if len(names) == 0 {
			return
		}
		var list []string
		for _, s := range sortedNames(names) {
			if file, ok := fileURI(s); ok {
				list = append(list, yamlText(file))
			} else {
				list = append(list, yamlText(escapeGlob(s)))
			}
		}
		fmt.Fprintf(w, "%s:\n  - id: %s\n    allow: [%s]\n", what, what, strings.Join(list, ", "))
	}
	section("resources", resources)
	section("methods", methods)
}

func sortedNames[V any](m map[string]V) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// escapeGlob is the pattern of exactly one text.
func escapeGlob(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(foreign+`*?\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// yamlText is a text in quotes, in which nothing reads differently from how it is shown.
func yamlText(s string) string { return strconv.QuoteToASCII(s) }

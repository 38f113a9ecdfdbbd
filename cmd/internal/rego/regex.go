package rego

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

var regexBuiltins = []builtin{
	{"regex.split", []kind{str, str}, func(c *call, a []any) (any, error) {
		re, err := c.regex(a[0].(string), a[1].(string))
		if err != nil {
			return nil, err
		}
		return values(re.Split(a[1].(string), -1)), nil
	}},
	{"regex.find_n", []kind{str, str, num}, func(c *call, a []any) (any, error) {
		n, err := integer(a[2])
		if err != nil {
			return nil, err
		}
		re, err := c.regex(a[0].(string), a[1].(string))
		if err != nil {
			return nil, err
		}
		return values(re.FindAllString(a[1].(string), n)), nil
	}},
	{"regex.replace", []kind{str, str, str}, regexReplace},
	{"regex.template_match", []kind{str, str, str, str}, templateMatch},
	{"glob.quote_meta", []kind{str}, func(_ *call, a []any) (any, error) { return globQuoter.Replace(a[0].(string)), nil }},
}

// Bounds of one regular expression over one text. A search takes time for each instruction and each byte,
// and cannot be stopped.
const (
	maxSteps  = 1 << 27
	maxPlaces = 1 << 24 // beginnings and ends of groups
)

// regex compiles an expression that will look at a text.
func (c *call) regex(pattern, text string) (*regexp.Regexp, error) {
	if err := c.affordable(pattern, text); err != nil {
		return nil, err
	}
	return regexp.Compile(pattern)
}

func (c *call) affordable(pattern, text string) error {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	groups := tree.MaxCap() + 1
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return err
	}
	if steps := len(program.Inst) * (len(text) + 1); steps > maxSteps {
		return c.tooMuch("an expression of %d instructions over %d bytes takes too long", len(program.Inst), len(text))
	}
	if places := 2 * groups * (len(text) + 1); places > maxPlaces {
		return c.tooMuch("an expression with %d groups over %d bytes takes too much memory", groups, len(text))
	}
	return nil
}

func regexReplace(c *call, a []any) (any, error) {
	base, value := a[0].(string), []byte(a[2].(string))
	re, err := c.regex(a[1].(string), base)
	if err != nil {
		return nil, err
	}
	var out []byte
	last := 0
	for _, match := range re.FindAllSubmatchIndex([]byte(base), -1) {
		out = append(out, base[last:match[0]]...)
		out = re.Expand(out, value, []byte(base), match)
		if last = match[1]; len(out) > c.room() {
			return nil, c.tooMuch("the result has more than %d bytes", c.room())
		}
	}
	return string(append(out, base[last:]...)), nil
}

// templateMatch matches a text with a template in which what is between two delimiters is an expression.
func templateMatch(c *call, a []any) (any, error) {
	template, text, open, end := a[0].(string), a[1].(string), a[2].(string), a[3].(string)
	if len(open) != 1 || len(end) != 1 {
		return nil, errors.New("a delimiter is one byte")
	}
	var pattern strings.Builder
	pattern.WriteByte('^')
	from, depth := 0, 0
	for i := range len(template) {
		switch template[i] {
		case open[0]:
			if depth++; depth == 1 {
				pattern.WriteString(regexp.QuoteMeta(template[from:i]))
				from = i + 1
			}
		case end[0]:
			if depth--; depth < 0 {
				return nil, errors.New("a delimiter ends what did not begin")
			}
			if depth == 0 {
				part := template[from:i]
				if _, err := syntax.Parse("^"+part+"$", syntax.Perl); err != nil {
					return nil, err
				}
				fmt.Fprintf(&pattern, "(%s)", part)
				from = i + 1
			}
		}
	}
	if depth != 0 {
		return nil, errors.New("a delimiter has no end")
	}
	pattern.WriteString(regexp.QuoteMeta(template[from:]) + "$")
	re, err := c.regex(pattern.String(), text)
	if err != nil {
		return nil, err
	}
	return re.MatchString(text), nil
}

// globQuoter escapes what is special in a glob.
var globQuoter = strings.NewReplacer("*", `\*`, "?", `\?`, `\`, `\\`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

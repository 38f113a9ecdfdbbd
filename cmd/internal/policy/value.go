package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Decode reads one JSON value for Call.
func Decode(b []byte) (any, error) { return jsonpath.Decode(b) }

// Digest is the SHA-256 of arguments in the form of RFC 8785, as sha256:HEX; "" if they
// have no such form. raw is one JSON object, or nothing for a call without arguments.
func Digest(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	v := jsontext.Value(bytes.Clone(raw))
	if v.Canonicalize() != nil {
		return ""
	}
	return schemas.DigestOf([]byte(v))
}

var jsonNumber = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// value reads a JSON value of a condition.
func (r *reader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, r.value(c))
		}
		return list
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if k, ok := r.Text(n.Content[i], "a key"); ok {
				m[k] = r.value(n.Content[i+1])
			}
		}
		return m
	case yaml.AliasNode:
		return nil // already reported
	}
	switch n.ShortTag() {
	case "!!str":
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		if n.Style&quoted != 0 || !jsonNumber.MatchString(n.Value) {
			return n.Value
		}
		r.Bad(n, "the number "+strict.Quote(n.Value)+" is too large for most servers", "a number that fits into a 64-bit float",
			strconv.Quote(n.Value)+" if it is a string")
		return nil
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return n.Value == "true"
		}
	case "!!null":
		if n.Value == "null" {
			return nil
		}
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			if _, err := parseDecimal(n.Value); err == nil {
				return json.Number(n.Value)
			}
		}
	}
	r.Bad(n, "a value is "+strict.Kind(n)+", which is written differently in JSON", "a JSON value", strconv.Quote(n.Value)+" if it is a string")
	return nil
}

// number is the text of a number from Decode, or of another number type that a caller may
// have used.
func number(v any) (string, bool) {
	switch n := v.(type) {
	case json.Number:
		return string(n), true
	case int:
		return strconv.Itoa(n), true
	case int64:
		return strconv.FormatInt(n, 10), true
	case uint64:
		return strconv.FormatUint(n, 10), true
	case float64:
		return strconv.FormatFloat(n, 'g', -1, 64), true
	case *big.Int:
		return n.String(), true
	}
	return "", false
}

// decimal is a number: digits without zeros at either end, times ten to the power
// of exp. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// maxNumber is the longest number that is read.
const maxNumber = 1000

var errNumber = errors.New("a number is too long, not valid, or its exponent is too large")

func parseDecimal(s string) (decimal, error) {
	if len(s) > maxNumber || !jsonNumber.MatchString(s) {
		return decimal{}, errNumber
	}
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > 1e9 || e < -1e9 {
			return decimal{}, errNumber
		}
		s, d.exp = s[:i], e
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := whole + fraction
	d.exp -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exp += len(digits) - len(d.digits)
	if d.digits == "" {
		return decimal{}, nil
	}
	return d, nil
}

var errClose = errors.New("two different numbers are equal as 64-bit floats, which most servers use")

// equalNumbers compares by value: 1, 1.0 and 1e0 are equal. Two different numbers that are
// equal in floating point are an error, because many servers read them as equal.
func equalNumbers(a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	x, err := parseDecimal(a)
	if err != nil {
		return false, err
	}
	y, err := parseDecimal(b)
	if err != nil {
		return false, err
	}
	if x == y {
		return true, nil
	}
	f, _ := strconv.ParseFloat(a, 64)
	g, _ := strconv.ParseFloat(b, 64)
	if f == g {
		return false, errClose
	}
	return false, nil
}

// equal compares two JSON values: strings byte by byte, numbers by value, arrays in
// order, objects by keys.
func equal(a, b any) (bool, error) { return equalAt(a, b, 0) }

func equalAt(a, b any, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errDeep
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return all(len(x), func(i int) (bool, error) { return equalAt(x[i], y[i], depth+1) })
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		keys := sortedKeys(x)
		return all(len(keys), func(i int) (bool, error) {
			v, ok := y[keys[i]]
			if !ok {
				return false, nil
			}
			return equalAt(x[keys[i]], v, depth+1)
		})
	}
	x, ok := number(a)
	if !ok {
		return false, fmt.Errorf("a value of type %T is not JSON", a)
	}
	if y, ok := number(b); ok {
		return equalNumbers(x, y)
	}
	return false, nil
}

// all is false if one result is false, and an error only if none is false.
func all(n int, f func(i int) (bool, error)) (bool, error) {
	var unclear error
	for i := range n {
		ok, err := f(i)
		if err != nil {
			unclear = err
		} else if !ok {
			return false, nil
		}
	}
	return unclear == nil, unclear
}

// isIn reports whether a value is in a list. The result is an error only if no element is
// equal and the comparison with one of them is an error.
func isIn(v any, list []any) (bool, error) {
	var unclear error
	for _, x := range list {
		ok, err := equal(x, v)
		if ok {
			return true, nil
		}
		if err != nil {
			unclear = err
		}
	}
	return false, unclear
}

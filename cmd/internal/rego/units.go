package rego

import (
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strings"

	"github.com/runner-evidence/runner/schemas/pattern"
)

var unitBuiltins = []builtin{
	{"units.parse", []kind{str}, parseUnits},
	{"units.parse_bytes", []kind{str}, parseBytes},
	{"numbers.range_step", []kind{num, num, num}, rangeStep},
}

// amount is a number with an exponent only where digits or a sign follow the e, and a unit. E is a unit, too.
var amount = pattern.New(`(?s)^((?:[0-9.+-]|[eE][+-]?[0-9]+|[eE][+-])*)(.*)$`)

// split takes a quantity apart. OPA takes quotes out of it.
func split(s string) (n, unit string, err error) {
	s = strings.ReplaceAll(s, `"`, "")
	if strings.Contains(s, " ") {
		return "", "", errors.New("a space in a quantity")
	}
	parts := amount.FindStringSubmatch(s)
	n, unit = parts[1], parts[2]
	const exponent = 6 // digits
	for _, e := range regexp.MustCompile(`[eE][+-]?([0-9]+)`).FindAllStringSubmatch(n, -1) {
		if len(e[1]) > exponent {
			return "", "", errors.New("too large an exponent")
		}
	}
	if n == "" {
		return "", "", errors.New("no number")
	}
	return n, unit, nil
}

// powers of 1000 and of 1024, by the letter of the unit.
const prefixes = "kmgtpe"

// factor is what a letter, with or without i, multiplies by.
func factor(letter string, binary bool) (*big.Int, bool) {
	i := strings.Index(prefixes, letter)
	if len(letter) != 1 || i < 0 {
		return nil, false
	}
	base := int64(1000)
	if binary {
		base = 1024
	}
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(i+1)), nil), true
}

// parseUnits reads a quantity. Only m alone, which is a thousandth, depends on its case.
func parseUnits(_ *call, a []any) (any, error) {
	n, unit, err := split(a[0].(string))
	if err != nil {
		return nil, err
	}
	by := big.NewRat(1, 1)
	switch letter, binary := strings.CutSuffix(strings.ToLower(unit), "i"); {
	case unit == "":
	case unit == "m":
		by.SetFloat64(0.001) // not a thousandth: what OPA multiplies by
	default:
		f, known := factor(letter, binary)
		if !known {
			return nil, errors.New("an unknown unit")
		}
		by.SetInt(f)
	}
	r, is := new(big.Rat).SetString(n)
	if !is {
		return nil, errors.New("no number")
	}
	if r.Mul(r, by); r.IsInt() {
		return json.Number(r.Num().String()), nil
	}
	return json.Number(r.FloatString(10)), nil
}

// parseBytes reads a number of bytes; fractions of one are cut off.
func parseBytes(_ *call, a []any) (any, error) {
	n, unit, err := split(strings.ToLower(a[0].(string)))
	if err != nil {
		return nil, err
	}
	by := big.NewInt(1)
	if unit != "" {
		letter, binary := strings.CutSuffix(strings.TrimSuffix(unit, "b"), "i")
		known := false
		if by, known = factor(letter, binary); !known {
			return nil, errors.New("an unknown unit")
		}
	}
	f, is := new(big.Float).SetString(n)
	if !is {
		return nil, errors.New("no number")
	}
	total, _ := f.Mul(f, new(big.Float).SetInt(by).SetPrec(64)).Int(nil)
	if total == nil {
		return nil, errors.New("no number")
	}
	return json.Number(total.String()), nil
}

// rangeStep counts from one number to another, up or down.
func rangeStep(c *call, a []any) (any, error) {
	var n [3]*big.Int
	for i := range n {
		v, is := whole(a[i].(json.Number))
		if !is {
			return nil, errType
		}
		n[i] = v
	}
	from, to, step := n[0], n[1], n[2]
	if step.Sign() <= 0 {
		return nil, errors.New("no step up")
	}
	const most = 1 << 20
	distance := new(big.Int).Sub(to, from)
	count := new(big.Int).Div(new(big.Int).Abs(distance), step)
	if count.CmpAbs(big.NewInt(most)) >= 0 {
		return nil, c.tooMuch("%s numbers, expected at most %d", shown(count.String()), most)
	}
	if distance.Sign() < 0 {
		step = new(big.Int).Neg(step)
	}
	list := []any{}
	for range count.Int64() + 1 {
		list = append(list, json.Number(from.String()))
		from = new(big.Int).Add(from, step)
	}
	return list, nil
}

package rego

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number as sign, digits and the place of its point: 0.DIGITS × 10^exponent. The digits
// neither begin nor end with 0, and zero has none.
type decimal struct {
	sign     int // -1, 0, 1
	digits   string
	exponent int64
}

// decimalOf reads the text of a JSON number. Its size does not depend on the exponent, so that 1e999999999
// costs nothing.
func decimalOf(text string) decimal {
	sign := 1
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = rest, -1
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.ParseInt(power, 10, 64) // bounded by maxExponent
	digits := whole + fraction
	exponent += int64(len(whole))
	short := strings.TrimLeft(digits, "0")
	exponent -= int64(len(digits) - len(short))
	if short = strings.TrimRight(short, "0"); short == "" {
		return decimal{}
	}
	return decimal{sign, short, exponent}
}

func compareNumbers(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, y := decimalOf(string(a)), decimalOf(string(b))
	if c := cmp.Compare(x.sign, y.sign); c != 0 || x.sign == 0 {
		return c
	}
	c := cmp.Compare(x.exponent, y.exponent)
	if c == 0 {
		c = strings.Compare(x.digits, y.digits)
	}
	return c * x.sign
}

// whole is a number as an integer, if it is one that is written in at most maxDigits digits.
func whole(n json.Number) (*big.Int, bool) {
	d := decimalOf(string(n))
	if d.sign == 0 {
		return new(big.Int), true
	}
	if d.exponent < int64(len(d.digits)) || d.exponent > maxDigits {
		return nil, false
	}
	i, is := new(big.Int).SetString(d.digits+strings.Repeat("0", int(d.exponent)-len(d.digits)), 10)
	if is && d.sign < 0 {
		i.Neg(i)
	}
	return i, is
}

// maxDigits bounds an integer that is computed with.
const maxDigits = 4096

func number(i int64) json.Number { return json.Number(strconv.FormatInt(i, 10)) }

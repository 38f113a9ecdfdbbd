package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

var stringBuiltins = []builtin{
	{"sprintf", []kind{str, arr}, sprintf},
	{"indexof_n", []kind{str, str}, indexofN},
	{"strings.count", []kind{str, str}, func(_ *call, a []any) (any, error) {
		return number(int64(strings.Count(a[0].(string), a[1].(string)))), nil
	}},
	{"strings.split_n", []kind{str, str, num}, splitN},
	{"strings.any_prefix_match", []kind{anything, anything}, anyMatch(strings.HasPrefix)},
	{"strings.any_suffix_match", []kind{anything, anything}, anyMatch(strings.HasSuffix)},
}

// integer is an argument that must be an integer.
func integer(v any) (int, error) {
	n, _ := v.(json.Number)
	i, is := whole(n)
	if !is || !i.IsInt64() {
		return 0, errType
	}
	return int(i.Int64()), nil
}

// sprintf formats as Go's fmt does: integers as such, other numbers as float64, other values as their text.
func sprintf(c *call, a []any) (any, error) {
	format, list := a[0].(string), a[1].([]any)
	args := make([]any, len(list))
	longest := 0
	for i, v := range list {
		args[i] = formatted(v)
		if s, is := args[i].(string); is {
			longest = max(longest, len(s))
		}
	}
	if n := formattedSize(format, args, longest); n > c.room() {
		return nil, c.tooMuch("the result may have %d bytes, expected at most %d", n, c.room())
	}
	return fmt.Sprintf(format, args...), nil
}

func formatted(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			if f, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsInf(f, 0) {
				return f
			}
			return string(v)
		}
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		if len(v) <= maxDigits {
			if i, is := new(big.Int).SetString(string(v), 10); is {
				return i
			}
		}
		return string(v)
	}
	return written(v)
}

// formattedSize is the most that a format can make of arguments: for each verb its width and precision,
// and the longest argument with every byte escaped.
func formattedSize(format string, args []any, longest int) int {
	const mostStar, mostWidth = 1_000_000, 10_000_009 // what fmt takes; larger ones it names as bad
	const escaped = 10                                // bytes that a byte can become
	size, star, big := len(format), 0, false
	for _, v := range args {
		if i, is := v.(int64); is && i >= -mostStar && i <= mostStar {
			star = max(star, int(i), int(-i))
		}
		big = big || isBig(v)
	}
	for _, verb := range strings.Split(format, "%")[1:] {
		// a verb takes at most what is written; width and precision are its only numbers
		for _, n := range strings.FieldsFunc(verb, func(r rune) bool { return r < '0' || r > '9' }) {
			if w, err := strconv.Atoi(n); err == nil && w <= mostWidth {
				size += w
			}
		}
		size += strings.Count(verb, "*")*star + min(longest*escaped, math.MaxInt32) + 512 // a float64 has 309 digits before the point
		if big {                                                                          // in base 2
			size += 4 * maxDigits
		}
		if size > math.MaxInt32 {
			break
		}
	}
	return size
}

func isBig(v any) bool {
	_, is := v.(*big.Int)
	return is
}

func indexofN(_ *call, a []any) (any, error) {
	base, search := []rune(a[0].(string)), []rune(a[1].(string))
	if len(search) == 0 {
		return nil, errors.New("nothing to look for")
	}
	found := []any{}
	for i := 0; i+len(search) <= len(base); i++ {
		if string(base[i:i+len(search)]) == string(search) {
			found = append(found, number(int64(i)))
		}
	}
	return found, nil
}

// splitN gives the first n parts, or the last ones if n is negative.
func splitN(_ *call, a []any) (any, error) {
	n, err := integer(a[2])
	if err != nil {
		return nil, err
	}
	s, separator := a[0].(string), a[1].(string)
	if n < 0 {
		parts := strings.Split(s, separator)
		return values(parts[max(len(parts)+n, 0):]), nil
	}
	limit := n + 1
	if limit < 0 {
		limit = -1
	}
	parts := strings.SplitN(s, separator, limit)
	return values(parts[:min(n, len(parts))]), nil
}

// anyMatch tells whether any of some strings begins or ends with any of others.
func anyMatch(has func(s, affix string) bool) func(*call, []any) (any, error) {
	return func(c *call, a []any) (any, error) {
		all, err := oneOrMore(a[0])
		if err != nil {
			return nil, err
		}
		affixes, err := oneOrMore(a[1])
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if err := c.ctx.Err(); err != nil {
				return nil, err
			}
			for _, affix := range affixes {
				if has(s, affix) {
					return true, nil
				}
			}
		}
		return false, nil
	}
}

func oneOrMore(v any) ([]string, error) {
	if s, is := v.(string); is {
		return []string{s}, nil
	}
	return texts(v)
}

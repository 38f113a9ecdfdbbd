package rego

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas/pattern"
)

var versionBuiltins = []builtin{
	{"semver.is_valid", []kind{anything}, func(_ *call, a []any) (any, error) {
		s, is := a[0].(string)
		_, err := parseVersion(s)
		return is && err == nil, nil
	}},
	{"semver.compare", []kind{str, str}, func(_ *call, a []any) (any, error) {
		x, err := parseVersion(a[0].(string))
		if err != nil {
			return nil, err
		}
		y, err := parseVersion(a[1].(string))
		if err != nil {
			return nil, err
		}
		return number(int64(x.compare(y))), nil
	}},
}

// version is one of Semantic Versioning 2.0.0, of which the build plays no part in the order.
type version struct {
	core [3]int64
	pre  []string
}

// semver also takes a v before the version, as OPA does.
var semver = pattern.New(`^v?([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)

func parseVersion(s string) (v version, err error) {
	parts := semver.FindStringSubmatch(s)
	if parts == nil {
		return v, errors.New("no version")
	}
	for i := range v.core {
		text := parts[i+1]
		if v.core[i], err = strconv.ParseInt(text, 10, 64); err != nil || leadingZero(text) {
			return v, errors.New("no number of a version")
		}
	}
	if parts[4] != "" {
		v.pre = strings.Split(parts[4], ".")
	}
	for _, id := range v.pre {
		if digits(id) && leadingZero(id) {
			return v, errors.New("a number with a 0 before it")
		}
	}
	return v, nil
}

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' }

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (v version) compare(w version) int {
	for i := range v.core {
		if c := cmp.Compare(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}
	if len(v.pre) == 0 || len(w.pre) == 0 { // a version is after what comes before it
		return cmp.Compare(len(w.pre), len(v.pre)) * min(1, len(v.pre)+len(w.pre))
	}
	for i := range min(len(v.pre), len(w.pre)) {
		if c := compareIDs(v.pre[i], w.pre[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(v.pre), len(w.pre))
}

// compareIDs takes numbers before words.
func compareIDs(a, b string) int {
	switch x, y := digits(a), digits(b); {
	case x && y: // without a 0 before them, the longer one is greater
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
	case x:
		return -1
	case y:
		return 1
	}
	return strings.Compare(a, b)
}

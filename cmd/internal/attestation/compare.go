package attestation

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas"
)

// same compares two documents value by value, numbers by their digits. The error names the first
// difference.
func same(at string, said, is jsontext.Value) error {
	if said.Kind() != is.Kind() {
		return differ(at, said, is)
	}
	switch is.Kind() {
	case '{':
		return sameObject(at, said, is)
	case '[':
		return sameList(at, said, is)
	case '"':
		var a, b string
		if err := both(said, is, &a, &b); err != nil || a != b {
			return differ(at, said, is)
		}
	default:
		if !bytes.Equal(bytes.TrimSpace(said), bytes.TrimSpace(is)) {
			return differ(at, said, is)
		}
	}
	return nil
}

func sameObject(at string, said, is jsontext.Value) error {
	var a, b map[string]jsontext.Value
	if err := both(said, is, &a, &b); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		below := at + "." + fmt.Sprintf("%.60s", key)
		x, said := a[key]
		y, is := b[key]
		switch {
		case !is:
			return fmt.Errorf("%s is in the statement, the archive gives none", below)
		case !said:
			return fmt.Errorf("%s is not in the statement, the archive gives %s", below, short(y))
		}
		if err := same(below, x, y); err != nil {
			return err
		}
	}
	return nil
}

func sameList(at string, said, is jsontext.Value) error {
	var a, b []jsontext.Value
	if err := both(said, is, &a, &b); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if len(a) != len(b) {
		return fmt.Errorf("%s has %d values in the statement, the archive gives %d", at, len(a), len(b))
	}
	for i := range a {
		if err := same(fmt.Sprintf("%s[%d]", at, i), a[i], b[i]); err != nil {
			return err
		}
	}
	return nil
}

// both decodes two values into a and b.
func both(said, is jsontext.Value, a, b any) error {
	if err := schemas.UnmarshalOpen(said, a); err != nil {
		return err
	}
	return schemas.UnmarshalOpen(is, b)
}

func differ(at string, said, is jsontext.Value) error {
	return fmt.Errorf("%s is %s in the statement, the archive gives %s", at, short(said), short(is))
}

// short is the beginning of a value.
func short(v jsontext.Value) string {
	if len(v) > 120 {
		return fmt.Sprintf("%.120s…", v)
	}
	return string(v)
}

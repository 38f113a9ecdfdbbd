package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
)

// canonicalObject is one JSON object in the contract's byte form (README.md), for objects whose keys the contract does
// not know: keys are in byte order, and a number has the text that it was written with, so that it loses no digit.
// depth is how many objects and arrays may be in one another.
func canonicalObject(b []byte, depth int) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if d.PeekKind() != '{' {
		return nil, errors.New("expected an object")
	}
	return appendCanonical(make([]byte, 0, len(b)), d, depth)
}

func appendCanonical(dst []byte, d *jsontext.Decoder, depth int) ([]byte, error) {
	switch kind := d.PeekKind(); kind {
	case '{', '[':
		if depth == 0 {
			return nil, errors.New("too many objects and arrays in one another")
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		if kind == '{' {
			return appendMembers(dst, d, depth-1)
		}
		return appendElements(dst, d, depth-1)
	case '"':
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		return AppendQuote(dst, t.String()), nil
	}
	v, err := d.ReadValue() // a number, true, false, null, or no value
	if err != nil {
		return nil, err
	}
	if v.Kind() == '0' {
		if _, err := strconv.ParseFloat(string(v), 64); err != nil {
			return nil, fmt.Errorf("the number %.100s is beyond a 64-bit float", v)
		}
	}
	return append(dst, v...), nil
}

func appendMembers(dst []byte, d *jsontext.Decoder, depth int) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var list []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		if m.value, err = appendCanonical(nil, d, depth); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(AppendQuote(dst, m.name), ':'), m.value...)
	}
	return append(dst, '}'), nil
}

func appendElements(dst []byte, d *jsontext.Decoder, depth int) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := 0; d.PeekKind() != ']'; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendCanonical(dst, d, depth); err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	return append(dst, ']'), nil
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// object is a JSON object in its own order of keys.
type object struct {
	keys   []string
	values []any
}

// tree decodes one JSON value; objects keep their order, numbers their digits.
func tree(t *testing.T, d *json.Decoder) any {
	tok, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch tok {
	case json.Delim('{'):
		o := &object{}
		for d.More() {
			k, _ := d.Token()
			o.keys, o.values = append(o.keys, k.(string)), append(o.values, tree(t, d))
		}
		d.Token()
		return o
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, tree(t, d))
		}
		d.Token()
		return &list
	}
	return tok
}

// render is the canonical text of a tree.
func render(v any) string {
	switch v := v.(type) {
	case *object:
		var parts []string
		for i, k := range v.keys {
			parts = append(parts, render(k)+":"+render(v.values[i]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *[]any:
		var parts []string
		for _, e := range *v {
			parts = append(parts, render(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case json.Number:
		return v.String()
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	}
	return string(schemas.AppendQuote(nil, []byte(v.(string))))
}

func parseTree(t *testing.T, text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	return tree(t, d)
}

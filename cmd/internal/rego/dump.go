package rego

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// dump writes a value so that the module can read it: its own form, in one order, without spaces.
func dump(v any) string {
	var b strings.Builder
	writer{&b, "", quote}.value(v)
	return b.String()
}

// written is a value as OPA prints it: with a space after , and :, and with the escapes of Go.
func written(v any) string {
	var b strings.Builder
	writer{&b, " ", func(b *strings.Builder, s string) { b.WriteString(strconv.Quote(s)) }}.value(v)
	return b.String()
}

// toJSON is a value as JSON: a set becomes an array in its order, and a key that is no string its text.
// Two keys that become the same one are an error: one of them would be lost.
func toJSON(v any) (string, error) {
	plain, err := plainKeys(v)
	if err != nil {
		return "", err
	}
	return dump(plain), nil
}

// plainKeys is the value with sets as arrays and strings as keys.
func plainKeys(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		return plainList(v)
	case set:
		return plainList(v)
	case object:
		members := make([]member, len(v))
		for i, m := range v {
			key, is := m.key.(string)
			if !is {
				text, err := toJSON(m.key)
				if err != nil {
					return nil, err
				}
				key = text
			}
			value, err := plainKeys(m.value)
			if err != nil {
				return nil, err
			}
			members[i] = member{key, value}
		}
		o := newObject(members...)
		if len(o) < len(members) {
			return nil, fmt.Errorf("an object has two keys that are the same in JSON, as 1 and \"1\" are")
		}
		return o, nil
	}
	return v, nil
}

func plainList(list []any) (any, error) {
	plain := make([]any, len(list))
	for i, v := range list {
		var err error
		if plain[i], err = plainKeys(v); err != nil {
			return nil, err
		}
	}
	return plain, nil
}

type writer struct {
	*strings.Builder
	space string                         // after , and :
	quote func(*strings.Builder, string) // writes a string
}

func (w writer) value(v any) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		fmt.Fprint(w, v)
	case json.Number:
		w.WriteString(string(v))
	case string:
		w.quote(w.Builder, v)
	case []any:
		w.list('[', v, ']')
	case set:
		if len(v) == 0 {
			w.WriteString("set()")
			return
		}
		w.list('{', v, '}')
	case object:
		w.WriteByte('{')
		for i, m := range v {
			w.next(i)
			w.value(m.key)
			w.WriteString(":" + w.space)
			w.value(m.value)
		}
		w.WriteByte('}')
	}
}

func (w writer) next(i int) {
	if i > 0 {
		w.WriteString("," + w.space)
	}
}

func (w writer) list(open byte, members []any, end byte) {
	w.WriteByte(open)
	for i, v := range members {
		w.next(i)
		w.value(v)
	}
	w.WriteByte(end)
}

// quote writes a JSON string with the escapes that OPA uses, and no others.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[from:i])
		from = i + 1
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(b, `\u%04x`, c)
		}
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}

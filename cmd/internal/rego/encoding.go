package rego

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
)

var encodingBuiltins = []builtin{
	{"base64url.encode_no_pad", []kind{str}, text1(func(s string) (string, error) { return base64.RawURLEncoding.EncodeToString([]byte(s)), nil })},
	{"hex.encode", []kind{str}, text1(func(s string) (string, error) { return hex.EncodeToString([]byte(s)), nil })},
	{"hex.decode", []kind{str}, text1(func(s string) (string, error) { b, err := hex.DecodeString(s); return string(b), err })},
	{"urlquery.encode", []kind{str}, text1(func(s string) (string, error) { return url.QueryEscape(s), nil })},
	{"urlquery.decode", []kind{str}, text1(url.QueryUnescape)},
	{"urlquery.encode_object", []kind{obj}, queryOf},
	{"urlquery.decode_object", []kind{str}, func(_ *call, a []any) (any, error) {
		query, err := url.ParseQuery(a[0].(string))
		if err != nil {
			return nil, err
		}
		var all []member
		for k, list := range query {
			all = append(all, member{k, values(list)})
		}
		return newObject(all...), nil
	}},
	{"uri.is_valid", []kind{anything}, func(_ *call, a []any) (any, error) {
		s, is := a[0].(string)
		_, err := url.Parse(s)
		return is && s != "" && err == nil, nil
	}},
	{"uri.parse", []kind{str}, parseURI},
	{"json.marshal_with_options", []kind{anything, obj}, marshalWith},
	{"yaml.marshal", []kind{anything}, yamlMarshal},
	{"yaml.unmarshal", []kind{str}, func(c *call, a []any) (any, error) { return c.yaml(a[0].(string)) }},
	{"yaml.is_valid", []kind{anything}, func(c *call, a []any) (any, error) {
		s, is := a[0].(string)
		if !is {
			return false, nil
		}
		_, err := c.yaml(s)
		if isFault(err) {
			return nil, err
		}
		return err == nil, nil
	}},
}

// text1 makes a builtin of a function from a string to a string.
func text1(f func(string) (string, error)) func(*call, []any) (any, error) {
	return func(_ *call, a []any) (any, error) {
		s, err := f(a[0].(string))
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// queryOf writes strings, or arrays or sets of strings, as a query of a URL.
func queryOf(_ *call, a []any) (any, error) {
	plain, err := plainKeys(a[0])
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for _, m := range plain.(object) {
		list, err := oneOrMore(m.value)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			query[m.key.(string)] = list
		}
	}
	return query.Encode(), nil
}

func parseURI(_ *call, a []any) (any, error) {
	u, err := url.Parse(a[0].(string))
	if err != nil {
		return nil, err
	}
	raw := u.RawPath
	if raw == "" {
		raw = u.Path
	}
	var parts []member
	for _, part := range []struct{ name, value string }{{"scheme", u.Scheme}, {"hostname", u.Hostname()}, {"port", u.Port()},
		{"path", u.Path}, {"raw_path", raw}, {"raw_query", u.RawQuery}, {"fragment", u.Fragment}} {
		if part.value != "" {
			parts = append(parts, member{part.name, part.value})
		}
	}
	return newObject(parts...), nil
}

// marshalled is a value as Go's encoding/json writes it.
func marshalled(v any) ([]byte, error) {
	plain, err := plainKeys(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(goValue(plain))
}

// goValue is a value with maps for objects.
func goValue(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = goValue(v[i])
		}
		return list
	case object:
		all := make(map[string]any, len(v))
		for _, m := range v {
			all[m.key.(string)] = goValue(m.value)
		}
		return all
	}
	return v
}

func marshalWith(_ *call, a []any) (any, error) {
	b, err := marshalled(a[0])
	if err != nil {
		return nil, err
	}
	indent, prefix, pretty, said := "\t", "", false, false
	for _, m := range a[1].(object) {
		s, isString := m.value.(string)
		yes, isBool := m.value.(bool)
		switch {
		case m.key == "indent" && isString:
			indent, pretty = s, pretty || !said
		case m.key == "prefix" && isString:
			prefix, pretty = s, pretty || !said
		case m.key == "pretty" && isBool: // sorted after the others, it decides
			pretty, said = yes, true
		default:
			return nil, errType
		}
	}
	if pretty {
		var out bytes.Buffer
		if err := json.Indent(&out, b, prefix, indent); err != nil {
			return nil, err
		}
		b = append([]byte(prefix), out.Bytes()...)
	}
	return string(b), nil
}
